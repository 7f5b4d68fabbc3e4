package browser

import "time"

// noted is the digest of the text that we put into a conversation's composer last; empty when there is none.
func (t *tabs) noted(key string) string {
	if note := t.record(key).Note; note != nil {
		return note.Digest
	}
	return ""
}

// record is what the tab file knows of one conversation's tab. It is written before the tab is navigated.
type record struct {
	URL    string     `json:"url"`
	Target string     `json:"target,omitempty"`
	Token  string     `json:"token,omitempty"`
	Run    string     `json:"run,omitempty"`
	Note   *draftNote `json:"note,omitempty"`
	// Born is the effect whose message created the conversation.
	Born string    `json:"born,omitempty"`
	Used time.Time `json:"used"`
}

// draftNote is what we put into the composer, noted before it is typed.
type draftNote struct {
	Effect string `json:"effect"`
	Length int    `json:"length"`
	Digest string `json:"digest"`
	// Cleared: it was taken for our residue once already.
	Cleared bool `json:"cleared,omitempty"`
}

// maxRecords bounds the tab file; the ones used longest ago go first.
const maxRecords = 2000

func openTabs(b *Browser, path string) (*tabs, error) {
	t := &tabs{browser: b, path: path, records: map[string]*record{}, open: map[string]*tab{}}
	return t, readJSON(path, &t.records)
}

// change edits one record and writes the file.
func (t *tabs) change(key string, edit func(*record)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.records[key]
	if r == nil {
		r = &record{}
		t.records[key] = r
	}
	edit(r)
	r.Used = now()
	t.trim()
	return writeJSON(t.path, t.records)
}

func (t *tabs) trim() {
	for len(t.records) > maxRecords {
		oldest := ""
		for key, r := range t.records {
			if t.open[key] == nil && (oldest == "" || r.Used.Before(t.records[oldest].Used)) {
				oldest = key
			}
		}
		if oldest == "" {
			return
		}
		delete(t.records, oldest)
	}
}

func (t *tabs) record(key string) record {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.records[key]; r != nil {
		return *r
	}
	return record{}
}

// bind moves the tab of a new conversation to its durable id.
func (t *tabs) bind(tb *tab, key, url string) error {
	t.mu.Lock()
	old := tb.key
	if old == key {
		t.mu.Unlock()
		return nil
	}
	if r := t.records[old]; r != nil {
		r.URL = url
		t.records[key] = r
		delete(t.records, old)
	}
	if t.open[old] == tb {
		delete(t.open, old)
		t.open[key] = tb
	}
	tb.key = key
	t.mu.Unlock()
	return t.change(key, func(r *record) { r.URL = url })
}
