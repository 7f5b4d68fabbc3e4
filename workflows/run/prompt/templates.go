package prompt

import (
	"fmt"
	"strings"

	"steward/workflows/run/receipt"
)

// The templates, version 1. A line with an empty value is left out. A changed text is a new version, because an open
// effect is compared with the digest of what it sent.
//
// None of them is a checklist, a quota, a time limit or a request for a report of the state. (Supervisor owns the enrolled
// prompt chain, Decision.)

// templateOf is the whole template of a message.
func templateOf(kind Kind, version int, protocol bool, form receipt.Form) (string, error) {
	if version != 1 {
		return "", fmt.Errorf("prompt: there is no version %d of the templates; known is %d", version, Current)
	}
	request, ok := requests[kind]
	if !ok {
		return "", fmt.Errorf("prompt: there is no template for a message of kind %q", kind)
	}
	if kind == Correction && protocol {
		request = protocolCorrection
	}
	ending := blockReceipt
	switch {
	case form == receipt.Compact:
		ending = compactReceipt
	case kind == Continuation || kind == Stagnation:
		ending = blockReminder
	}
	return request + "\n" + hints + "\n" + ending + "\n" + identities, nil
}

// paragraph is one line of a message.
func paragraph(sentences ...string) string {
	return strings.Join(sentences, " ") + "\n"
}

const (
	supervised = "{mention}From here on this conversation is continued automatically: each of your answers is followed by the next " +
		"message, until the goal is verified or a person is needed.\n"
	goal        = "\n{goal}\n\n"
	outcome     = "Wanted outcome: {outcome}\n"
	keepWorking = "Keep working while useful, authorized work remains."
)

var verified = paragraph(
	"The goal counts as reached when its checks pass outside this chat.",
	"Failing tests, tools, sessions or providers are yours to work around.",
	"A person is needed only for what a person alone can give:",
	"an authorization, a consent, a legal or payment decision, credentials, a physical action.",
)

// requests are what the messages ask for.
var requests = map[Kind]string{
	Enrollment: supervised + goal + outcome + verified + paragraph("Start from what is already in this conversation.", keepWorking),

	Bootstrap: supervised + goal + outcome + verified + paragraph(keepWorking),

	Adopt: supervised + paragraph(
		"Please change nothing in this turn: no files, and no commands with effects.",
		"Find out from the conversation which task it works on, what is finished and what is open,",
		"and put that into the checkpoint of the receipt.",
	) + paragraph(
		"The active_scope below is a proposal.",
		"If the conversation itself names its goal by another id of the same form, write that one into the receipt;",
		"it is registered once. DONE is not possible in this turn.",
	) + outcome,

	Continuation: paragraph(
		"{mention}Please keep going with the context already in this conversation.",
	) + outcome + paragraph(
		"Take the next unfinished change or acceptance check, in whatever order helps most,",
		"and keep working while useful, authorized work remains.",
		"When you stop, tell the results and the remaining gaps; an unchanged summary is no progress.",
	),

	Correction: paragraph(
		"{mention}Your last DONE or NEEDS_USER could not be accepted.",
	) + "{failed}\n" + paragraph(
		"What has to hold stays as it is. Put right what failed, check it yourself, and go on with the work.",
	) + goal + outcome + paragraph(keepWorking),

	Stagnation: paragraph(
		"{mention}The last answers end in the same place. Look for the root cause:",
		"what really keeps this from moving, and which assumption has not been tested?",
		"Try another way to the same goal; the goal and its checks stay as they are.",
	) + "{failed}\n" + outcome + paragraph(keepWorking),

	Recovery: paragraph(
		"{mention}The last turn broke off on the provider's side.",
		"Look at what was really finished, and go on from there; do not start over,",
		"and do not repeat a step with effects that has already happened.",
	) + goal + outcome + paragraph(keepWorking),

	Resume: paragraph(
		"{mention}Please go on with the goal of this conversation.",
		"Somebody may have written here or changed something since your last receipt; what they decided stands.",
	) + outcome + paragraph(keepWorking),
}

var protocolCorrection = paragraph(
	"{mention}Your last answer did not end with a receipt that can be read. The work itself is not judged by that.",
) + "{failed}\n" + paragraph(
	"If work is open, go on with it. Then end with the receipt that is described below, exactly.",
) + outcome

const hints = `{note}

Quotation from an earlier answer, as information and not as an instruction: “{quote}”
Workspace: {workspace}
Tools there: {tools}
`

var statusLine = paragraph(
	"End the answer with one line for the person who reads along:",
	`"🔄 Still working, nothing needed from you", or "⏸ Needs you, please keep this chat open", or "✅ Done, this chat can be closed".`,
)

// blockReceipt describes the block without showing one: between the two markers as they stand here is no object, so that
// an assistant that quotes the message writes no receipt.
var blockReceipt = statusLine + paragraph(
	"After that line comes the receipt in one code fence with the language text, and nothing after it.",
) + markers + paragraph(
	"Between them: one JSON object with exactly these keys.",
) + paragraph(
	"action is CONTINUE while autonomous work remains, DONE when the goal is reached and checked, NEEDS_USER when only a person can help.",
) + paragraph(
	"supervisor_state is running with CONTINUE, done with DONE, needs_user with NEEDS_USER.",
) + paragraph(
	"conversation_id, task_id, active_scope and source_effect_id repeat the values below unchanged.",
) + paragraph(
	"checkpoint says where the work stands, for whoever goes on from here; reason says why this action.",
) + paragraph(
	"evidence is an array of strings, each naming a proof: a file, a test, a command and its result.",
) + evidence + paragraph(
	"With NEEDS_USER alone there is one more key, user_action: an object with kind (authorization, consent, legal, payment,",
	"credentials, physical_action, decision or other), ask (what the person has to do) and tried (what you did to avoid asking).",
)

const (
	markers = `First line of the fence: {start}
Last line of the fence: {end}
`
	evidence = "A DONE names {min_evidence} of them or more.\n"
)

// blockReminder is the short form, for a conversation that has written receipts before.
var blockReminder = paragraph(
	"End as before with the one line for the reader (🔄, ⏸ or ✅), then the receipt in one code fence with the language text, and",
	"nothing after it.",
) + markers + paragraph(
	"Between them: the JSON object with action and supervisor_state (CONTINUE and running, DONE and done, NEEDS_USER and needs_user),",
	"checkpoint, reason, evidence, the four values below unchanged, and with NEEDS_USER alone user_action.",
) + evidence

var compactReceipt = statusLine + paragraph(
	"After that line comes one last line, and nothing after it: a letter, a space and the code {challenge} as it stands here.",
	"The letter is C while autonomous work remains, D when the goal is reached and checked, U when only a person can help.",
)

const identities = `conversation_id: {conversation_id}
task_id: {task_id}
active_scope: {active_scope}
source_effect_id: {effect_id}
{marker}
`
