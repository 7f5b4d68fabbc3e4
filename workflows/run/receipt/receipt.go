// Package receipt reads the receipt that ends every supervised answer, and derives the identity of a completion from it.
//
// A receipt is the assistant's own statement about its turn: continue, done, or a person is needed. It has two forms. A
// block stands between two fixed marker lines and carries the whole statement as JSON; a compact line carries the action
// alone. Reading is pure: the same answer and the same Want give the same Reading. (Workflow Supervisor, Assistant
// completion proposal protocol.)
package receipt

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Form is how a receipt is written.
type Form string

// The two forms.
const (
	// Block is JSON between StartMarker and EndMarker.
	Block Form = "block"
	// Compact is a last line of one letter and the effect's challenge.
	Compact Form = "compact"
)

// Action is what the assistant says of its turn. Done and NeedsUser are proposals: they end nothing by themselves.
type Action string

// The three actions.
const (
	Continue  Action = "CONTINUE"
	Done      Action = "DONE"
	NeedsUser Action = "NEEDS_USER"
)

// State is the supervisor_state that goes with the action; empty for any other word.
func (a Action) State() string {
	switch a {
	case Continue:
		return "running"
	case Done:
		return "done"
	case NeedsUser:
		return "needs_user"
	}
	return ""
}

// Letter is the action in a compact line; empty for any other word.
func (a Action) Letter() string {
	switch a {
	case Continue:
		return "C"
	case Done:
		return "D"
	case NeedsUser:
		return "U"
	}
	return ""
}

// The marker lines of a block.
const (
	StartMarker = startOpen + markerName + version + markerClose
	EndMarker   = endOpen + markerName + version + markerClose

	startOpen   = "<<<"
	endOpen     = "<<<END_"
	markerName  = "FORGE_WORKFLOW_SUPERVISOR_V"
	markerClose = ">>>"
	version     = "1"
)

// Limits of an answer and of the values in a block. Characters are Unicode code points after trimming.
const (
	MaxAnswer       = 3 << 20 // bytes of an answer
	MaxText         = 2000    // characters of checkpoint, reason, ask and tried
	MaxEvidence     = 16      // evidence items
	MaxEvidenceItem = 1000    // characters of one evidence item
	MaxID           = 512     // characters of an identity, of supervisor_state and of kind
	MaxDetail       = 400     // bytes of Reading.Detail

	// maxBlock is the longest JSON of a block: every value at its limit and every character written as two \u escapes.
	maxBlock = 512 << 10
)

// Want names the exact turn whose receipt is read. An empty identity matches nothing.
type Want struct {
	ConversationID string
	TaskID         string
	Scope          string
	EffectID       string
	// Forms that are accepted; none means all.
	Forms []Form
	// ConversationAlias is "new:<key>", for the one effect whose send creates the conversation.
	ConversationAlias string
	// ProposeScope accepts any active_scope, for an effect that asks the assistant to propose one. The proposal is in
	// Receipt.Scope; registering it is the caller's decision.
	ProposeScope bool
}

// UserAction says what a person has to do, and why the assistant cannot.
type UserAction struct {
	Kind  string `json:"kind"`
	Ask   string `json:"ask"`
	Tried string `json:"tried"`
}

// Receipt is a valid receipt. A compact one has neither scope, texts, evidence nor user action.
type Receipt struct {
	Form       Form        `json:"form"`
	Action     Action      `json:"action"`
	Scope      string      `json:"active_scope,omitempty"`
	Checkpoint string      `json:"checkpoint,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Evidence   []string    `json:"evidence,omitempty"`
	UserAction *UserAction `json:"user_action,omitempty"`
	// Digest is the sha256, in hex, of the canonical receipt: the same meaning has the same digest, however it was
	// framed, spaced or escaped.
	Digest string `json:"digest"`
}

// Reading is what one answer says. Either Receipt is set, or Code.
type Reading struct {
	Receipt *Receipt `json:"receipt,omitempty"`
	// Code is empty for a valid receipt, else a word of Codes.
	Code string `json:"code,omitempty"`
	// Detail says what failed, in one line of at most MaxDetail bytes that a correction prompt may quote.
	Detail string `json:"detail,omitempty"`
	// Violation says that it counts as a violation of the protocol. A block that the page's rendering broke does not.
	Violation bool `json:"violation,omitempty"`
}

// Read finds and checks the receipt at the end of an answer. The answer is the text of the assistant's turn as the page
// shows it: prose and the text of code blocks, with newlines. Every answer gives a Reading; Read never panics, and its
// time is linear in the length of the answer.
func Read(answer string, want Want) Reading {
	if len(answer) > MaxAnswer {
		return refuse(CodeAnswerTooLong, "the answer has "+strconv.Itoa(len(answer))+" bytes; at most "+strconv.Itoa(MaxAnswer)+" are read")
	}
	marks := markers(answer)
	if !closed(marks) && strings.Contains(answer, startOpen) {
		// A renderer may put invisible break opportunities into a long word.
		answer = dropInvisible(answer)
		marks = markers(answer)
	}
	if len(marks) == 0 {
		return readCompact(answer, want)
	}
	return readBlock(answer, marks, want)
}

func readBlock(answer string, marks []marker, want Want) Reading {
	if !want.accepts(Block) {
		return refuse(CodeForm, "the receipt is a block, which is not accepted here")
	}
	found, fault := locate(answer, marks)
	switch {
	case fault != nil:
		return refuse(fault.code, fault.text)
	case found.version != version || found.endVersion != version:
		return refuse(CodeVersion, "the marker lines are of another version; write "+StartMarker+" and "+EndMarker)
	case len(found.json) > maxBlock:
		return refuse(CodeLimit, "the block is longer than "+strconv.Itoa(maxBlock)+" bytes")
	case found.members == nil:
		return readBroken(found, want)
	}
	r, faults := check(found.members, want)
	switch {
	case len(faults) > 0:
		return refuseAll(faults)
	case found.trailing:
		return refuse(CodeTrailingText, "there is text after "+EndMarker)
	case differs(answer, found):
		return refuse(CodeAmbiguous, "the answer holds an earlier block that differs from the last one")
	}
	return Reading{Receipt: r}
}

// readBroken judges a block whose JSON is invalid. Only when mending what a renderer breaks would make it valid in every
// respect, the rendering is to blame.
func readBroken(found *block, want Want) Reading {
	for _, members := range repairs(found.json) {
		if _, faults := check(members, want); len(faults) == 0 && !found.trailing {
			return refuse(CodeMangled, "the JSON between the marker lines lost escapes or gained line breaks: "+found.problem)
		}
	}
	return refuse(CodeMalformed, "there is no valid JSON object between the marker lines: "+found.problem)
}

// readCompact reads the last line of an answer without a block.
func readCompact(answer string, want Want) Reading {
	line := lastLine(answer)
	action, challenge := compact(line)
	switch {
	case line == "":
		return refuse(CodeMissing, "the answer is empty")
	case action == "":
		return refuse(CodeMissing, "the answer ends without a receipt")
	case !want.accepts(Compact):
		return refuse(CodeForm, "the receipt is a compact line, which is not accepted here; write the block")
	case want.EffectID == "" || challenge != Challenge(want.EffectID):
		return refuse(CodeChallenge, "the code in the last line is "+quote(challenge)+", which is not the code of this message")
	}
	return Reading{Receipt: &Receipt{Form: Compact, Action: action, Digest: digest(action.Letter() + " " + challenge)}}
}

// compact splits a line of the form "C 0a1b2c3". The action is empty when the line has another form.
func compact(line string) (Action, string) {
	if len(line) > maxFrame {
		return "", ""
	}
	letter, challenge, _ := strings.Cut(strings.Join(strings.FieldsFunc(line, blank), " "), " ")
	if len(challenge) != challengeLength || strings.Trim(challenge, "0123456789abcdefABCDEF") != "" {
		return "", ""
	}
	for _, a := range []Action{Continue, Done, NeedsUser} {
		if a.Letter() == letter {
			return a, challenge
		}
	}
	return "", ""
}

const challengeLength = 7

// Challenge is the code that a compact line has to repeat: the first 7 hex digits of the sha256 of the effect id.
func Challenge(effectID string) string {
	return digest(effectID)[:challengeLength]
}

// Fingerprint is the identity of a completion, in hex: which task and conversation, the turn of which effect, and the
// digests of the canonical answer and of the receipt. Two turns with the same words never have the same fingerprint.
// (Workflow Supervisor, Exactly-once continuation and external-effect reconciliation.)
func Fingerprint(taskID, conversationID, effectID, textDigest, receiptDigest string) string {
	var b strings.Builder
	for _, part := range []string{taskID, conversationID, effectID, textDigest, receiptDigest} {
		b.WriteString(strconv.Itoa(len(part)))
		b.WriteByte(':')
		b.WriteString(part)
	}
	return digest(b.String())
}

func (w Want) accepts(f Form) bool {
	return len(w.Forms) == 0 || slices.Contains(w.Forms, f)
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
