package chatlab

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"

	kindUser     = "user"
	kindMarkdown = "markdown"
	kindBare     = "bare"
	kindThought  = "thought"
	kindTool     = "tool"
)

// turn is one turn of a conversation as the page shows it.
type turn struct {
	ID        string  `json:"id"`
	Role      string  `json:"role"`
	Nodes     []*node `json:"nodes"`
	Thinking  bool    `json:"thinking,omitempty"`
	Reasoning string  `json:"reasoning,omitempty"`
	Stop      bool    `json:"stop,omitempty"` // the stop button shows
	Busy      bool    `json:"busy,omitempty"` // aria-busy
	Bar       bool    `json:"bar,omitempty"`  // action bar
	Done      bool    `json:"done,omitempty"`
	Note      *note   `json:"note,omitempty"`
}

// node is one role node of a turn.
type node struct {
	ID      string `json:"id"`
	Kind    string `json:"kind"`
	Role    string `json:"role"`
	Text    string `json:"text"`
	Name    string `json:"name,omitempty"`
	Running bool   `json:"running,omitempty"`
	Seconds int    `json:"seconds,omitempty"`
}

// note is a status region inside a turn.
type note struct {
	Kind      string `json:"kind"`
	AutoRetry int64  `json:"auto_retry_ms,omitempty"`
}

func newTurn(role string, nodes ...*node) *turn {
	return &turn{ID: uuid.NewString(), Role: role, Nodes: append([]*node{}, nodes...)}
}

func userTurn(messageID, text string) *turn {
	t := newTurn(roleUser, &node{ID: messageID, Kind: kindUser, Role: roleUser, Text: text})
	t.Done = true
	return t
}

func answeredTurn(text string) *turn {
	t := newTurn(roleAssistant, &node{ID: uuid.NewString(), Kind: kindMarkdown, Role: roleAssistant, Text: text})
	t.Done, t.Bar = true, true
	return t
}

func (t *turn) find(id string) *node {
	return t.Nodes[slices.IndexFunc(t.Nodes, func(n *node) bool { return n.ID == id })]
}

// text is the turn's text without tool cards and labels.
func (t *turn) text() string {
	var parts []string
	for _, n := range t.Nodes {
		if n.Kind == kindUser || n.Kind == kindMarkdown || n.Kind == kindBare {
			parts = append(parts, n.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// historyTurns builds the turns that a conversation starts with.
func historyTurns(seed Seed) []*turn {
	var turns []*turn
	for i := range seed.Turns {
		if i%2 == 0 {
			turns = append(turns, userTurn(uuid.NewString(), fmt.Sprintf("Earlier question %d.", i/2+1)))
		} else {
			turns = append(turns, answeredTurn(fmt.Sprintf("Earlier answer %d.\n\n%s", i/2+1, filler(300))))
		}
	}
	for _, m := range seed.History {
		if m.Role == roleUser {
			turns = append(turns, userTurn(uuid.NewString(), m.Text))
		} else {
			turns = append(turns, answeredTurn(m.Text))
		}
	}
	return turns
}
