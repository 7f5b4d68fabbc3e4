package receipt

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// keys of a block and of its user_action, with the largest number of characters of a string value.
var keys = map[string]int{
	"action": MaxID, "conversation_id": MaxID, "task_id": MaxID, "supervisor_state": MaxID, "active_scope": MaxID,
	"source_effect_id": MaxID, "checkpoint": MaxText, "reason": MaxText, "evidence": MaxEvidenceItem, "user_action": 0,
	"kind": MaxID, "ask": MaxText, "tried": MaxText,
}

var (
	blockKeys = []string{
		"action", "conversation_id", "task_id", "supervisor_state", "active_scope", "source_effect_id", "checkpoint", "reason",
		"evidence", "user_action",
	}
	userActionKeys = []string{"kind", "ask", "tried"}
)

// wire is the canonical receipt: its JSON encoding is what Digest hashes.
type wire struct {
	Action          Action      `json:"action"`
	ConversationID  string      `json:"conversation_id"`
	TaskID          string      `json:"task_id"`
	SupervisorState string      `json:"supervisor_state"`
	ActiveScope     string      `json:"active_scope"`
	SourceEffectID  string      `json:"source_effect_id"`
	Checkpoint      string      `json:"checkpoint"`
	Reason          string      `json:"reason"`
	Evidence        []string    `json:"evidence"`
	UserAction      *UserAction `json:"user_action,omitempty"`
}

// checker collects what is wrong with a block.
type checker struct{ faults []fault }

func (c *checker) fault(code, text string) {
	c.faults = append(c.faults, fault{code, text})
}

// check makes a receipt of the members of a block, or says everything that is wrong with them, keys first.
func check(members []member, want Want) (*Receipt, []fault) {
	var c checker
	values := c.keys("", members, blockKeys, "user_action")
	w := wire{
		Action:          Action(c.text(values, "action")),
		ConversationID:  c.text(values, "conversation_id"),
		TaskID:          c.text(values, "task_id"),
		SupervisorState: c.text(values, "supervisor_state"),
		ActiveScope:     c.text(values, "active_scope"),
		SourceEffectID:  c.text(values, "source_effect_id"),
		Checkpoint:      c.text(values, "checkpoint"),
		Reason:          c.text(values, "reason"),
		Evidence:        c.evidence(values),
	}
	w.UserAction = c.userAction(values, w.Action)
	c.meaning(w, want)
	if len(c.faults) > 0 {
		slices.SortStableFunc(c.faults, func(a, b fault) int { return rank[a.code] - rank[b.code] })
		return nil, c.faults
	}
	canonical, err := json.Marshal(w)
	if err != nil {
		panic(err) // strings always encode
	}
	return &Receipt{
		Form: Block, Action: w.Action, Scope: w.ActiveScope, Checkpoint: w.Checkpoint, Reason: w.Reason, Evidence: w.Evidence,
		UserAction: w.UserAction, Digest: digest(string(canonical)),
	}, nil
}

// rank orders faults like Codes does.
var rank = func() map[string]int {
	order := map[string]int{}
	for i, c := range Codes {
		order[c.Code] = i
	}
	return order
}()

// keys checks the keys of the object at path and returns the values of those that are known. All but the optional one
// are required.
func (c *checker) keys(path string, members []member, known []string, optional string) map[string]any {
	values := make(map[string]any, len(members))
	for _, m := range members {
		_, again := values[m.key]
		switch {
		case !slices.Contains(known, m.key):
			c.fault(CodeKeyUnknown, "the key "+quote(path+m.key)+" is not part of the receipt")
		case again:
			c.fault(CodeKeyDuplicate, "the key "+path+m.key+" appears twice")
		default:
			values[m.key] = m.value
		}
	}
	for _, key := range known {
		if _, ok := values[key]; !ok && key != optional {
			c.fault(CodeKeyMissing, "the key "+path+key+" is missing")
		}
	}
	return values
}

// text is the trimmed string of a key. A missing key was reported before.
func (c *checker) text(values map[string]any, key string) string {
	v, ok := values[key]
	if !ok {
		return ""
	}
	return c.trimmed(v, key, key)
}

func (c *checker) trimmed(v any, name, key string) string {
	s, ok := v.(string)
	if !ok {
		c.fault(CodeValue, name+" must be a string")
		return ""
	}
	s = strings.TrimFunc(s, blank)
	if s == "" {
		c.fault(CodeValue, name+" is empty")
	}
	if len(s) > keys[key] && utf8.RuneCountInString(s) > keys[key] {
		c.fault(CodeLimit, name+" is longer than "+strconv.Itoa(keys[key])+" characters")
	}
	return s
}

func (c *checker) evidence(values map[string]any) []string {
	v, ok := values["evidence"]
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		c.fault(CodeValue, "evidence must be an array of strings")
		return nil
	}
	if len(list) > MaxEvidence {
		c.fault(CodeLimit, "evidence has "+strconv.Itoa(len(list))+" items; at most "+strconv.Itoa(MaxEvidence)+" are allowed")
		return nil
	}
	items := make([]string, 0, len(list))
	for i, item := range list {
		items = append(items, c.trimmed(item, "evidence item "+strconv.Itoa(i+1), "evidence"))
	}
	return items
}

func (c *checker) userAction(values map[string]any, action Action) *UserAction {
	v, ok := values["user_action"]
	switch {
	case !ok && action == NeedsUser:
		c.fault(CodeUserAction, "NEEDS_USER needs a user_action with kind, ask and tried")
		return nil
	case !ok:
		return nil
	case action != NeedsUser && action.State() != "":
		c.fault(CodeUserAction, "user_action belongs to NEEDS_USER only")
		return nil
	}
	members, ok := v.([]member)
	if !ok {
		c.fault(CodeUserAction, "user_action must be an object with kind, ask and tried")
		return nil
	}
	inner := c.keys("user_action.", members, userActionKeys, "")
	return &UserAction{Kind: c.text(inner, "kind"), Ask: c.text(inner, "ask"), Tried: c.text(inner, "tried")}
}

// meaning checks that the action is known, that the state belongs to it, and that every identity is the registered one.
func (c *checker) meaning(w wire, want Want) {
	switch state := w.Action.State(); {
	case w.Action == "":
	case state == "":
		c.fault(CodeAction, "action is "+quote(string(w.Action))+"; it must be CONTINUE, DONE or NEEDS_USER")
	case w.SupervisorState != "" && w.SupervisorState != state:
		c.fault(CodeState, "supervisor_state is "+quote(w.SupervisorState)+"; with "+string(w.Action)+" it must be "+state)
	}
	alias := want.ConversationAlias != "" && w.ConversationID == want.ConversationAlias
	for _, id := range []struct {
		key, got string
		equal    bool
	}{
		{"conversation_id", w.ConversationID, alias || w.ConversationID == want.ConversationID},
		{"task_id", w.TaskID, w.TaskID == want.TaskID},
		{"active_scope", w.ActiveScope, want.ProposeScope || w.ActiveScope == want.Scope},
		{"source_effect_id", w.SourceEffectID, w.SourceEffectID == want.EffectID},
	} {
		if !id.equal && id.got != "" {
			c.fault(CodeIdentity, id.key+" is "+quote(id.got)+", not the one in the message")
		}
	}
}
