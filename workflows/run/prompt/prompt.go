// Package prompt renders the fixed messages that a run sends. A template decides what is asked; nothing that an assistant
// wrote is ever executed as a prompt, it is at most quoted. Rendering is pure: the same Params give the same text, so an
// effect can be rendered again and compared by its digest. (Workflow Supervisor, Assistant completion proposal protocol.)
package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"steward/workflows/run/receipt"
)

// Kind is the template of a message; the words are those of the effect kinds.
type Kind string

// The kinds.
const (
	// Enrollment puts an existing conversation to work on the goal.
	Enrollment Kind = "enrollment"
	// Bootstrap is the first message of a new conversation.
	Bootstrap Kind = "bootstrap"
	// Adopt asks a discovered conversation what it works on, without changing anything.
	Adopt Kind = "adopt"
	// Continuation asks to keep working.
	Continuation Kind = "continuation"
	// Correction names what failed: a rejected DONE or NEEDS_USER, or (with Params.Protocol) the receipt itself.
	Correction Kind = "correction"
	// Stagnation asks for the root cause after receipts that show no progress.
	Stagnation Kind = "stagnation"
	// Recovery goes on after a turn that the provider lost.
	Recovery Kind = "recovery"
	// Resume goes on after a person answered, or wrote into the conversation.
	Resume Kind = "resume"
)

// Kinds are all kinds.
var Kinds = []Kind{Enrollment, Bootstrap, Adopt, Continuation, Correction, Stagnation, Recovery, Resume}

// Current is the version of the templates that new effects use. The text of a version never changes.
const Current = 1

// MaxBytes is the longest text that Render returns.
const MaxBytes = 32 << 10

// Limits of the variable parts, in bytes of UTF-8; what is longer is cut. The objective gets what the rest leaves.
const (
	maxLine    = 1 << 10 // mention, outcome, an identity
	maxContext = 5 << 10 // workspace, tools
	maxFailed  = 16      // items
	maxFailure = 600     // bytes of an item
	maxNote    = 4 << 10
	maxQuote   = 2 << 10
)

// Workspace is where the assistant's tools work. It is a hint and allocates nothing.
type Workspace struct {
	Repo     string
	Checkout string
}

// Params fill a template. Empty hints leave out their lines.
type Params struct {
	Kind    Kind
	Version int
	// Protocol makes a correction about the receipt of the last answer alone, not about the work.
	Protocol bool

	// Outcome is one line and part of every message; Objective may have many lines, and a continuation does not repeat it.
	Outcome   string
	Objective string
	Mention   string // tool mention of the chat app
	Workspace *Workspace
	Tools     []string

	// Identities that the receipt has to repeat. For Adopt the scope is a proposal.
	ConversationID string
	TaskID         string
	Scope          string
	EffectID       string

	// Form of the receipt that is asked for.
	Form receipt.Form
	// MinEvidence is how many evidence items a DONE must name.
	MinEvidence int
	// Failed is what a correction names, one line each.
	Failed []string
	// Note is what an operator adds.
	Note string
	// Quote is text of the assistant, repeated as a quotation.
	Quote string
}

// Render makes the text of a message: at most MaxBytes, lines without trailing white space, the marker as its last line.
// The only errors are an unknown version and an unknown kind.
func Render(p Params) (string, error) {
	template, err := templateOf(p.Kind, p.Version, p.Protocol, p.Form)
	if err != nil {
		return "", err
	}
	values := p.values()
	if !strings.Contains(template, "{goal}") {
		return fill(template, values), nil
	}
	const intro = "The goal:\n"
	room := MaxBytes - len(fill(template, values)) - len(intro) - len("\n\n\n\n")
	if objective := clip(text(p.Objective), room); objective != "" {
		values["goal"] = intro + objective
	}
	return fill(template, values), nil
}

func (p Params) values() map[string]string {
	v := map[string]string{
		"mention":         clip(line(p.Mention), maxLine),
		"outcome":         clip(line(p.Outcome), maxLine),
		"tools":           clip(line(strings.Join(p.Tools, ", ")), maxContext),
		"conversation_id": clip(line(p.ConversationID), maxLine),
		"task_id":         clip(line(p.TaskID), maxLine),
		"active_scope":    clip(line(p.Scope), maxLine),
		"effect_id":       clip(line(p.EffectID), maxLine),
		"marker":          Marker(clip(line(p.EffectID), maxLine)),
		"challenge":       receipt.Challenge(p.EffectID),
		"start":           receipt.StartMarker,
		"end":             receipt.EndMarker,
		"quote":           clip(quotable(p.Quote), maxQuote),
		"failed":          failed(p.Failed),
	}
	if note := clip(text(p.Note), maxNote); note != "" {
		v["note"] = "Note from the operator:\n" + note
	}
	if p.Workspace != nil {
		v["workspace"] = clip(workspace(*p.Workspace), maxContext)
	}
	if p.MinEvidence > 0 {
		v["min_evidence"] = strconv.Itoa(p.MinEvidence)
	}
	return v
}

func workspace(w Workspace) string {
	repo, checkout := line(w.Repo), line(w.Checkout)
	switch {
	case repo == "" && checkout == "":
		return ""
	case checkout == "":
		return "repository " + repo
	case repo == "":
		return "checkout " + checkout
	}
	return "repository " + repo + ", checkout " + checkout
}

// failed is one line for each item, and the number of those beyond the limit.
func failed(items []string) string {
	var list []string
	for i, item := range items {
		if i == maxFailed {
			list = append(list, "Failed: "+strconv.Itoa(len(items)-maxFailed)+" more")
			break
		}
		if item = clip(quotable(item), maxFailure); item != "" {
			list = append(list, "Failed: "+item)
		}
	}
	return strings.Join(list, "\n")
}

// Digest is the sha256 of a text, in hex.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Marker is the machine-readable mark of an effect in its message. It is plain text in every rendering.
func Marker(effectID string) string {
	return markerOpen + " " + effectID + "]"
}

// TemplateDigest is the digest of everything fixed that a kind of message may consist of; empty for an unknown kind or
// version.
func TemplateDigest(kind Kind, version int) string {
	var all strings.Builder
	for _, form := range []receipt.Form{receipt.Block, receipt.Compact} {
		for _, protocol := range []bool{false, true} {
			template, err := templateOf(kind, version, protocol, form)
			if err != nil {
				return ""
			}
			all.WriteString(template)
		}
	}
	return Digest(all.String())
}
