package machine

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// AttentionMemo is the memo that an inbox reads: set while a person is needed.
const AttentionMemo = "steward_attention"

// View is what an operator sees of a state. Keywords, Numbers and Attention are written to the history where they change: what
// an open run shows of one state must stay the same until it carries another rules version. Details and what goes into
// answers may change with any release.
type View struct {
	// Details is a Markdown page. It costs no history.
	Details string
	// Status, Revision and Current go into answers; Current only when the decision is not an accept.
	Status   string
	Revision int64
	Current  any
	// Keywords and Numbers are search attributes by name. An empty keyword and an absent name unset the attribute.
	Keywords map[string]string
	Numbers  map[string]int64
	// Attention is the memo AttentionMemo; nil clears it.
	Attention any
}

// published is what the server was last told.
type published struct {
	Keywords  map[string]string `json:"keywords,omitempty"`
	Numbers   map[string]int64  `json:"numbers,omitempty"`
	Attention string            `json:"attention,omitempty"`
}

// publish shows the state: details always, search attributes and memo only where they changed, each in at most one event.
func (m *machine[S, E]) publish(ctx workflow.Context) {
	view := m.View(m.carry.State, m.book())
	workflow.SetCurrentDetails(ctx, view.Details+m.refusedSignals())
	if updates := m.carry.Published.attributes(view); len(updates) > 0 {
		if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
			panic(fmt.Sprintf("machine: search attributes: %v", err))
		}
	}
	if m.carry.Published.attention(view) {
		if err := workflow.UpsertMemo(ctx, map[string]any{AttentionMemo: view.Attention}); err != nil {
			panic(fmt.Sprintf("machine: memo: %v", err))
		}
	}
}

// attributes are the updates that lead from what was published to what the view says, and notes them as published.
func (p *published) attributes(view View) []temporal.SearchAttributeUpdate {
	var updates []temporal.SearchAttributeUpdate
	keywords := make(map[string]string, len(view.Keywords))
	for _, name := range workflow.DeterministicKeys(view.Keywords) {
		value := view.Keywords[name]
		if value == "" {
			continue
		}
		keywords[name] = value
		if old, ok := p.Keywords[name]; !ok || old != value {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(name).ValueSet(value))
		}
	}
	for _, name := range workflow.DeterministicKeys(p.Keywords) {
		if _, kept := keywords[name]; !kept {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(name).ValueUnset())
		}
	}
	numbers := make(map[string]int64, len(view.Numbers))
	for _, name := range workflow.DeterministicKeys(view.Numbers) {
		value := view.Numbers[name]
		numbers[name] = value
		if old, ok := p.Numbers[name]; !ok || old != value {
			updates = append(updates, temporal.NewSearchAttributeKeyInt64(name).ValueSet(value))
		}
	}
	for _, name := range workflow.DeterministicKeys(p.Numbers) {
		if _, kept := numbers[name]; !kept {
			updates = append(updates, temporal.NewSearchAttributeKeyInt64(name).ValueUnset())
		}
	}
	p.Keywords, p.Numbers = keywords, numbers
	return updates
}

// attention tells whether the memo has to be written, and notes it as published.
func (p *published) attention(view View) bool {
	text := ""
	if view.Attention != nil {
		data, err := json.Marshal(view.Attention)
		if err != nil {
			panic(fmt.Sprintf("machine: memo: %v", err))
		}
		text = string(data)
	}
	changed := text != p.Attention
	p.Attention = text
	return changed
}
