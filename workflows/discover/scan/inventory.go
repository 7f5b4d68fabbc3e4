package scan

import (
	"slices"
	"time"
)

// Conversation is one that the page of the project lists, proven to belong to it by its own address. Its title is a hint for
// people and decides nothing.
type Conversation struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Title string `json:"title,omitempty"`
	// CreatedAt is when it was created, as its id tells; zero when it does not.
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// Standing is what a scan made of a conversation.
type Standing string

const (
	// Enrolled: this scan started its run.
	Enrolled Standing = "enrolled"
	// Known: it has a run, or had one.
	Known Standing = "known"
	// Supervised: it holds a message of Steward, though no run of it is known any more.
	Supervised Standing = "supervised"
	// Excluded: the input excludes it. NotChosen: the input does not choose it.
	Excluded  Standing = "excluded"
	NotChosen Standing = "not_chosen"
	// Undated: nobody can say whether it was created after the time.
	Undated Standing = "undated"
	// Candidate: it is chosen, and looked into next.
	Candidate Standing = "candidate"
	// Postponed: it is chosen, and the bound of this scan was reached.
	Postponed Standing = "postponed"
	// Unreadable: its page could not be read. Moved: its own page is not one of the project.
	Unreadable Standing = "unreadable"
	Moved      Standing = "moved"
	// Refused: its run could not be started.
	Refused Standing = "refused"
)

// Entry is a conversation of the inventory.
type Entry struct {
	Conversation
	Standing  Standing  `json:"standing"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	// Run is the workflow id of its run, Detail why it stands as it does.
	Run    string `json:"run,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// MaxInventory bounds the inventory that a scan hands to the next.
const MaxInventory = 500

// Result is what one scan saw and did; the next scan of the same schedule gets it.
type Result struct {
	Site    string    `json:"site"`
	Browser string    `json:"browser"`
	Project string    `json:"project"`
	PageURL string    `json:"page_url"`
	At      time.Time `json:"at"`
	// Listed counts the conversations that the page listed. Complete: these are all of them.
	Listed   int  `json:"listed"`
	Complete bool `json:"complete"`
	// Contradictions counts the sightings that were not used, because their address names another project.
	Contradictions int `json:"contradictions,omitempty"`
	// Started are the workflow ids of the runs that this scan started.
	Started   []string `json:"started,omitempty"`
	Inventory []Entry  `json:"inventory,omitempty"`
}

// Stands judges a conversation by the input and by what an earlier scan found, before anybody looked into it. Whether it has
// a run is for the server to say.
func (s Scan) Stands(c Conversation, before *Entry) Standing {
	switch {
	case slices.Contains(s.Exclude, c.ID):
		return Excluded
	case before != nil && before.Standing == Supervised:
		return Supervised
	case len(s.Enroll.Listed) > 0:
		if slices.Contains(s.Enroll.Listed, c.ID) {
			return Candidate
		}
		return NotChosen
	case c.CreatedAt.IsZero():
		return Undated
	}
	after, err := time.Parse(time.RFC3339, s.Enroll.CreatedAfter)
	if err != nil || !c.CreatedAt.After(after) {
		return NotChosen
	}
	return Candidate
}

// Merge joins what a scan saw with the inventory before it. What is not listed any more is kept: a missing line is no
// deletion. A conversation that is listed without a title keeps the one that it had.
func Merge(before []Entry, seen []Conversation, at time.Time) []Entry {
	merged := make([]Entry, 0, len(seen)+len(before))
	for _, c := range seen {
		e := Entry{Conversation: c, FirstSeen: at, LastSeen: at}
		if old := Find(before, c.ID); old != nil {
			e.FirstSeen, e.Run = old.FirstSeen, old.Run
			if e.Title == "" {
				e.Title = old.Title
			}
		}
		merged = append(merged, e)
	}
	for _, e := range before {
		if Find(merged, e.ID) == nil {
			merged = append(merged, e)
		}
	}
	return merged[:min(len(merged), MaxInventory)]
}

// Find is the entry of a conversation; nil when there is none.
func Find(inventory []Entry, id string) *Entry {
	if i := slices.IndexFunc(inventory, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return &inventory[i]
	}
	return nil
}
