// Package activities holds the inputs and results of every activity as plain data: what a workflow asks for and the
// evidence it gets back. The packages below it do the I/O. No result carries a status, a page body or a secret.
package activities

import (
	"time"

	"steward/workflows/run/receipt"
)

// Worker names who produced a result; every result carries it.
type Worker struct {
	// Release is the build of the worker.
	Release string `json:"release,omitempty"`
	// Incarnation is the ownership epoch of the worker's home; 0 when it has none.
	Incarnation int64 `json:"incarnation,omitempty"`
	// Host is the worker's host name.
	Host string `json:"host,omitempty"`
}

// Conversation is the exact place of a browser activity: one login and one conversation on one site.
type Conversation struct {
	Site    string `json:"site"`
	Browser string `json:"browser"`
	// ID and URL are empty as long as the first send has not created the conversation.
	ID  string `json:"id,omitempty"`
	URL string `json:"url,omitempty"`
	// NewKey and PageURL say where the first send creates it.
	NewKey  string `json:"new_key,omitempty"`
	PageURL string `json:"page_url,omitempty"`
}

// Fence is the causal fence of a send: what the conversation must end with for this prompt to be the next one.
type Fence struct {
	// SourceEffect is the effect whose marker the latest user message carries.
	SourceEffect string `json:"source_effect"`
	// AnswerDigest is the canonical text digest of the latest answer; empty when that turn had none.
	AnswerDigest string `json:"answer_digest,omitempty"`
}

// SendInput asks for one attempt of one effect.
type SendInput struct {
	// RunID is the run that authorized the attempt. A workflow reset dispatches a pending activity again, in a new run and
	// without a new authorization.
	RunID        string       `json:"run_id"`
	TaskID       string       `json:"task_id"`
	Conversation Conversation `json:"conversation"`
	EffectID     string       `json:"effect_id"`
	Generation   int          `json:"generation"`
	Kind         string       `json:"kind"`
	Prompt       string       `json:"prompt"`
	PromptDigest string       `json:"prompt_digest"`
	// Fence is nil for the kinds that need none (enrollment, bootstrap, adopt, resume).
	Fence *Fence `json:"fence,omitempty"`
}

// SendOutcome is what a send attempt can prove.
type SendOutcome string

const (
	// SendCommitted: the user message with this effect's marker stands in the conversation.
	SendCommitted SendOutcome = "committed"
	// SendReturned: the attempt returned without taking the irreversible step, by a mechanical failure.
	SendReturned SendOutcome = "returned"
	// SendDeferred: refused before arming, nobody's fault; see Class and Until.
	SendDeferred SendOutcome = "deferred"
	// SendUserAction: the page asks for its user; see Class and Ask.
	SendUserAction SendOutcome = "user_action"
	// SendMissing: the exact conversation is not there.
	SendMissing SendOutcome = "missing"
	// SendDoubtful: armed (or refused by the send ledger), and neither proven nor disproven.
	SendDoubtful SendOutcome = "doubtful"
	// SendDrift: a needed control of the page was not recognised; nothing was sent.
	SendDrift SendOutcome = "drift"
)

// CodeUnreachable is the code of a returned send whose page could not be loaded: the site did not answer.
const CodeUnreachable = "unreachable"

// Classes of a deferred send.
const (
	DeferBusy              = "busy"
	DeferCooldown          = "cooldown"
	DeferRateLimited       = "rate_limited"
	DeferForeignDraft      = "foreign_draft"
	DeferPageNotReady      = "page_not_ready"
	DeferConversationMoved = "conversation_moved"
	DeferSiteMismatch      = "site_mismatch"
	DeferWorkerUnavailable = "worker_unavailable"
	DeferTabAmbiguous      = "tab_ambiguous"
	DeferBrowserMissing    = "browser_missing"
	DeferFenced            = "fenced"
	// DeferCancelled: the workflow asked for cancellation before the send ledger was written.
	DeferCancelled = "cancelled"
)

// Classes of a page that asks for its user.
const (
	UserLogin     = "login"
	UserConsent   = "consent"
	UserChallenge = "challenge"
	UserPlanLimit = "plan_limit"
)

// SendResult is the evidence of one attempt.
type SendResult struct {
	Outcome SendOutcome `json:"outcome"`
	// Class refines deferred, user_action and drift.
	Class string `json:"class,omitempty"`
	// Until is the earliest useful next attempt of a deferred send; zero leaves it to the policy's schedule.
	Until time.Time `json:"until,omitzero"`
	// Code and Detail say in stable and in plain words why; Detail is at most 300 characters.
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Armed tells whether the server accepted this attempt's arming.
	Armed bool `json:"armed,omitempty"`
	// AlreadyThere: the marker was found before anything was typed.
	AlreadyThere bool `json:"already_there,omitempty"`
	// ConversationID and ConversationURL are where the message stands (for a new conversation: its durable address).
	ConversationID  string `json:"conversation_id,omitempty"`
	ConversationURL string `json:"conversation_url,omitempty"`
	UserMessageID   string `json:"user_message_id,omitempty"`
	// Baseline digests are of the latest user message and answer before the attempt.
	BaselineUser      string    `json:"baseline_user,omitempty"`
	BaselineAssistant string    `json:"baseline_assistant,omitempty"`
	SiteDigest        string    `json:"site_digest,omitempty"`
	CommittedAt       time.Time `json:"committed_at,omitzero"`
	Worker            Worker    `json:"worker"`
}

// SendProgress is the heartbeat detail of a send.
type SendProgress struct {
	Step string `json:"step"`
	// Armed is the generation that was armed; 0 before arming.
	Armed int `json:"armed,omitempty"`
}

// ObserveInput asks to follow one applied effect until its turn settles.
type ObserveInput struct {
	TaskID       string       `json:"task_id"`
	Conversation Conversation `json:"conversation"`
	EffectID     string       `json:"effect_id"`
	Want         receipt.Want `json:"want"`
	// NotBefore delays the first look.
	NotBefore time.Time `json:"not_before,omitzero"`
	// SettledNotBefore holds the result of a settled turn back until then: the floor between two turns.
	SettledNotBefore time.Time `json:"settled_not_before,omitzero"`
	// Until bounds the observation: then it returns TurnOpen.
	Until time.Time `json:"until,omitzero"`
}

// TurnState is what the page shows of the turn that answers an effect.
type TurnState string

const (
	// TurnSettled: the turn ended by the site's settle rule.
	TurnSettled TurnState = "settled"
	// TurnFailed: the provider itself states that the turn failed (status region, stopped thinking, lost delivery).
	TurnFailed TurnState = "provider_error"
	// TurnOpen: neither settled nor failed when the observation ended.
	TurnOpen TurnState = "open"
	// TurnMoved: a later user message that is not ours follows the effect's turn.
	TurnMoved TurnState = "moved"
	// TurnMissing: the exact conversation is not there.
	TurnMissing TurnState = "missing"
	// TurnUserAction: the page asks for its user.
	TurnUserAction TurnState = "user_action"
	// TurnDrift: the turn ended without the signs that the site profile knows.
	TurnDrift TurnState = "ui_drift"
)

// Ended tells whether nothing more comes of the turn.
func (t TurnState) Ended() bool { return t == TurnSettled || t == TurnFailed || t == TurnMoved }

// ObserveResult is the bounded evidence of one turn.
type ObserveResult struct {
	Turn TurnState `json:"turn"`
	// Class refines provider_error, user_action and ui_drift.
	Class  string `json:"class,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Until is when a limit ends that the page asks its user about; zero when the page does not say.
	Until time.Time `json:"until,omitzero"`
	// SeenAt is when assistant material was first seen after our message; zero when none was.
	SeenAt    time.Time `json:"seen_at,omitzero"`
	SettledAt time.Time `json:"settled_at,omitzero"`
	// Reading is the receipt or the reason why it is not valid; present when Turn is settled or failed.
	Reading receipt.Reading `json:"reading"`
	// AnswerDigest is the digest of the answer's canonical text; empty when the turn had none.
	AnswerDigest string `json:"answer_digest,omitempty"`
	AnswerChars  int    `json:"answer_chars,omitempty"`
	TurnID       string `json:"turn_id,omitempty"`
	// ActivityDigest covers reasoning and tool text too; it serves `why` and attention only.
	ActivityDigest string    `json:"activity_digest,omitempty"`
	ActivityAt     time.Time `json:"activity_at,omitzero"`
	// ConversationID and ConversationURL are the durable address of a new conversation; with them the observation ends.
	ConversationID  string `json:"conversation_id,omitempty"`
	ConversationURL string `json:"conversation_url,omitempty"`
	SiteDigest      string `json:"site_digest,omitempty"`
	Worker          Worker `json:"worker"`
}

// ReconcileInput asks whether the marker of an effect stands in its conversation.
type ReconcileInput struct {
	TaskID       string       `json:"task_id"`
	Conversation Conversation `json:"conversation"`
	EffectID     string       `json:"effect_id"`
}

// ReconcileResult reports what a reloaded page showed. Absence of the marker proves nothing.
type ReconcileResult struct {
	// Readable tells whether the exact conversation was shown and could be read.
	Readable bool `json:"readable"`
	// Marker tells whether the effect's marker was seen in a user message.
	Marker          bool   `json:"marker"`
	Class           string `json:"class,omitempty"`
	Detail          string `json:"detail,omitempty"`
	ConversationID  string `json:"conversation_id,omitempty"`
	ConversationURL string `json:"conversation_url,omitempty"`
	UserMessageID   string `json:"user_message_id,omitempty"`
	// LaterMessages counts the user messages after the marked one.
	LaterMessages int    `json:"later_messages,omitempty"`
	SiteDigest    string `json:"site_digest,omitempty"`
	Worker        Worker `json:"worker"`
}

// Probe levels.
const (
	ProbePage    = "page"
	ProbeMessage = "message"
)

// ProbeInput asks whether this browser could send on this site now. ID is the probe's own effect id.
type ProbeInput struct {
	// RunID is as in SendInput.
	RunID        string       `json:"run_id"`
	ID           string       `json:"id"`
	Level        string       `json:"level"`
	Conversation Conversation `json:"conversation"`
}

// ProbeResult is a probe's evidence. Passed means every look at Level succeeded.
type ProbeResult struct {
	Passed bool   `json:"passed"`
	Level  string `json:"level"`
	// Class is the first thing that stands in the way: a deferral class, a user class, "missing", "drift" or "unreadable".
	Class  string `json:"class,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Drifted names the selector rules of the profile that no longer match.
	Drifted    []string  `json:"drifted,omitempty"`
	SiteDigest string    `json:"site_digest,omitempty"`
	At         time.Time `json:"at"`
	Worker     Worker    `json:"worker"`
}

// InterruptInput asks to press the page's Stop once for the turn of one effect.
type InterruptInput struct {
	// RunID is as in SendInput.
	RunID        string       `json:"run_id"`
	ID           string       `json:"id"`
	TaskID       string       `json:"task_id"`
	EffectID     string       `json:"effect_id"`
	Conversation Conversation `json:"conversation"`
}

// InterruptResult reports the press; an unproven one is only reported.
type InterruptResult struct {
	// Pressed: the control was clicked. Stopped: the page shows the turn as ended after it.
	Pressed bool   `json:"pressed"`
	Stopped bool   `json:"stopped"`
	Detail  string `json:"detail,omitempty"`
	Worker  Worker `json:"worker"`
}
