package receipt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The codes of a Reading without a valid receipt. They are stable.
const (
	CodeMissing       = "receipt_missing"
	CodeIncomplete    = "receipt_incomplete"
	CodeVersion       = "receipt_version"
	CodeForm          = "receipt_form"
	CodeTrailingText  = "receipt_trailing_text"
	CodeAmbiguous     = "receipt_ambiguous"
	CodeMangled       = "receipt_mangled"
	CodeMalformed     = "receipt_malformed"
	CodeKeyDuplicate  = "receipt_key_duplicate"
	CodeKeyUnknown    = "receipt_key_unknown"
	CodeKeyMissing    = "receipt_key_missing"
	CodeValue         = "receipt_value"
	CodeLimit         = "receipt_limit"
	CodeAction        = "receipt_action"
	CodeState         = "receipt_state"
	CodeIdentity      = "receipt_identity"
	CodeUserAction    = "receipt_user_action"
	CodeChallenge     = "receipt_challenge"
	CodeAnswerTooLong = "answer_too_long"
)

// CodeMeaning is one row of the table of codes.
type CodeMeaning struct {
	Code    string
	Meaning string
	// Violation says that the code counts against the bound of protocol violations.
	Violation bool
}

// Codes is every code with its meaning, in the order in which an answer is judged.
var Codes = []CodeMeaning{
	{CodeAnswerTooLong, "the answer is longer than 3 MB", true},
	{CodeMissing, "the answer ends with neither a block nor a compact line; words like \"done\" are no receipt", true},
	{CodeIncomplete, "one of the two marker lines of the block is missing", true},
	{CodeForm, "the receipt has a form that the run does not accept", true},
	{CodeChallenge, "the compact line carries another code than the message it answers", true},
	{CodeVersion, "the marker lines name another version of the protocol", true},
	{CodeMangled, "the page's rendering broke the JSON of the block: escapes were lost or line breaks inserted", false},
	{CodeMalformed, "what stands between the marker lines is not one JSON object", true},
	{CodeKeyDuplicate, "a key appears twice", true},
	{CodeKeyUnknown, "a key is not part of the protocol", true},
	{CodeKeyMissing, "a required key is missing", true},
	{CodeValue, "a value has the wrong type or is empty", true},
	{CodeLimit, "a value is longer than its limit, or there are too many evidence items", true},
	{CodeAction, "action is none of CONTINUE, DONE and NEEDS_USER", true},
	{CodeState, "supervisor_state does not belong to the action", true},
	{CodeIdentity, "a conversation, task, scope or effect id is not the registered one", true},
	{CodeUserAction, "NEEDS_USER lacks its user_action, or another action carries one", true},
	{CodeTrailingText, "text follows the end marker", true},
	{CodeAmbiguous, "an earlier block of the answer differs from the last one", true},
}

// fault is one thing that is wrong with a receipt.
type fault struct{ code, text string }

func refuse(code, text string) Reading {
	return refuseAll([]fault{{code, text}})
}

// refuseAll takes its code from the first fault; the detail names as many as fit.
func refuseAll(faults []fault) Reading {
	detail := ""
	for i, f := range faults {
		if i > 0 && len(detail)+len("; ")+len(f.text) > MaxDetail {
			break
		}
		if i > 0 {
			detail += "; "
		}
		detail += f.text
	}
	return Reading{Code: faults[0].code, Detail: clip(detail, MaxDetail), Violation: faults[0].code != CodeMangled}
}

const maxQuote = 40 // characters of the assistant's text in a detail

// quote makes a piece of the answer safe to repeat in a prompt: bounded, one line, without brackets, quotes and fences
// that could be read as a marker.
func quote(s string) string {
	var b strings.Builder
	count := 0
	for _, r := range s {
		if count++; count > maxQuote {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) || strings.ContainsRune("<>[]`\"'\\|", r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return `"` + b.String() + `"`
}

// clip cuts s to at most limit bytes, at the start of a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
