package chatlab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
)

// Facts is what a reply template can use: what the user message carried, and where the site runs.
type Facts struct {
	Text           string            // the whole message
	Number         int               // 1 for the first message of the conversation
	EffectID       string            // fx_… of the last marker line `[steward fx_…]`
	Challenge      string            // first 7 hex digits of sha256(EffectID)
	ConversationID string            // from the line `conversation_id: …`
	TaskID         string            // from the line `task_id: …`
	Scope          string            // from the line `active_scope: …`
	ChatID         string            // the site's own id of the conversation
	URL            string            // of the site
	Dir            string            // Options.Dir
	Vars           map[string]string // Options.Vars
}

var (
	markerLine = regexp.MustCompile(`\[steward (fx_[0-9a-f]{16})\]`)
	effectID   = regexp.MustCompile(`fx_[0-9a-f]{16}`)
)

// factsOf reads a user message. A fact that it does not carry is empty.
func factsOf(message string) Facts {
	f := Facts{
		Text:           message,
		ConversationID: lineValue(message, "conversation_id"),
		TaskID:         lineValue(message, "task_id"),
		Scope:          lineValue(message, "active_scope"),
	}
	if marks := markerLine.FindAllStringSubmatch(message, -1); marks != nil {
		f.EffectID = marks[len(marks)-1][1]
	} else {
		f.EffectID = effectID.FindString(lineValue(message, "source_effect_id"))
	}
	sum := sha256.Sum256([]byte(f.EffectID))
	f.Challenge = hex.EncodeToString(sum[:])[:7]
	return f
}

// lineValue is the value of the last line `key: value`; a value may stand in quotes or backticks.
func lineValue(message, key string) string {
	line := regexp.MustCompile(`(?m)^[ \t>*-]*` + key + `:[ \t]*(.+?)[ \t]*$`)
	found := line.FindAllStringSubmatch(message, -1)
	if found == nil {
		return ""
	}
	return strings.Trim(found[len(found)-1][1], "\"'`")
}

// Template is a text/template over Facts with the helpers of README.md.
type Template struct{ parsed *template.Template }

// UnmarshalYAML implements yaml.Unmarshaler.
func (t *Template) UnmarshalYAML(n *yaml.Node) error {
	var source string
	if err := n.Decode(&source); err != nil {
		return err
	}
	parsed, err := template.New("template").Option("missingkey=error").Funcs(helpers(Facts{})).Parse(source)
	if err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	t.parsed = parsed
	return nil
}

func (t Template) render(f Facts) (string, error) {
	if t.parsed == nil {
		return "", nil
	}
	bound, err := t.parsed.Clone()
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := bound.Funcs(helpers(f)).Execute(&out, f); err != nil {
		return "", err
	}
	return out.String(), nil
}

// helpers are the functions of a template, bound to one message.
func helpers(f Facts) template.FuncMap {
	block := func(action, checkpoint, reason string, evidence ...[]string) string {
		return receiptBlock(f.receipt(action, checkpoint, reason, evidence...))
	}
	needsUser := func(checkpoint, reason, kind, ask, tried string) string {
		r := f.receipt("NEEDS_USER", checkpoint, reason)
		r.UserAction = &userAction{kind, ask, tried}
		return receiptBlock(r)
	}
	return template.FuncMap{
		"receipt": func(action, checkpoint, reason string, evidence ...[]string) string {
			return fence(block(action, checkpoint, reason, evidence...))
		},
		"bare_receipt": block,
		"needs_user": func(checkpoint, reason, kind, ask, tried string) string {
			return fence(needsUser(checkpoint, reason, kind, ask, tried))
		},
		"compact": func(letter string) string { return letter + " " + f.Challenge },
		"list":    func(items ...string) []string { return items },
		"replace": func(old, with, in string) string { return strings.ReplaceAll(in, old, with) },
		"filler":  filler,
	}
}

// receipt is the body of the block form.
type receipt struct {
	Action         string      `json:"action"`
	ConversationID string      `json:"conversation_id"`
	TaskID         string      `json:"task_id"`
	State          string      `json:"supervisor_state"`
	Scope          string      `json:"active_scope"`
	EffectID       string      `json:"source_effect_id"`
	Checkpoint     string      `json:"checkpoint"`
	Reason         string      `json:"reason"`
	Evidence       []string    `json:"evidence"`
	UserAction     *userAction `json:"user_action,omitempty"`
}

type userAction struct {
	Kind  string `json:"kind"`
	Ask   string `json:"ask"`
	Tried string `json:"tried"`
}

func (f Facts) receipt(action, checkpoint, reason string, evidence ...[]string) receipt {
	states := map[string]string{"CONTINUE": "running", "DONE": "done", "NEEDS_USER": "needs_user"}
	r := receipt{
		Action: action, State: states[action], Checkpoint: checkpoint, Reason: reason, Evidence: []string{},
		ConversationID: f.ConversationID, TaskID: f.TaskID, Scope: f.Scope, EffectID: f.EffectID,
	}
	for _, items := range evidence {
		r.Evidence = append(r.Evidence, items...)
	}
	return r
}

func receiptBlock(r receipt) string {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		panic(err) // strings only: cannot fail
	}
	return "<<<FORGE_WORKFLOW_SUPERVISOR_V1>>>\n" + body.String() + "<<<END_FORGE_WORKFLOW_SUPERVISOR_V1>>>"
}

func fence(block string) string { return "```text\n" + block + "\n```" }

// filler is meaningless prose of exactly n bytes, in paragraphs.
func filler(n int) string {
	const paragraph = "The build is green on this branch and the next change is small. " +
		"Each package keeps its own tests, so a failure names the place where it happened. " +
		"Nothing here decides anything; it only takes up room.\n\n"
	return strings.Repeat(paragraph, n/len(paragraph)+1)[:n]
}
