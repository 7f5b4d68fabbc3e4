package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

// field is one key of a message's payload and the flag that fills it.
type field struct {
	key, flag, usage string
	// kind is a zero value of the field's type: string, int or bool.
	kind     any
	required bool
}

var (
	reason     = field{"reason", "reason", "why; it is journaled", "", true}
	effect     = field{"effect_id", "effect", "effect id, fx_…", "", true}
	generation = field{"generation", "generation", "attempt of the effect", 0, true}
	completion = field{"completion", "completion", "fingerprint of the completion that waits for approval", "", true}
	unobserved = field{"without_observation", "without-observation", "take the word although the page cannot be read", false, false}
	answers    = field{"answers", "answers", "id of what this answers; needed where the run waits for a person", "", false}
	note       = field{"note", "note", "words for the assistant, put into the resume prompt", "", false}
	interrupt  = field{"interrupt", "interrupt", "also press the page's Stop, once", false, false}
	duplicate  = field{"accept_duplicate", "accept-duplicate", "yes, the message may then stand in the conversation twice", false, true}
	occurrence = field{"occurrence_id", "occurrence", "id of the occurrence; the same id counts once", "", true}
)

// message is an operator's message: a verb of `steward run`.
type message struct {
	verb, name, short string
	fields            []field
}

// judgement are the fields of a word on an effect of unknown outcome.
var judgement = []field{effect, generation, reason, unobserved}

var messages = []message{
	{"pause", workflows.MessagePause, "Send nothing new until resume; a turn in flight is observed", []field{reason}},
	{"resume", workflows.MessageResume, "Lift a pause, or answer what the run waits for", []field{reason, answers, note}},
	{"stop", workflows.MessageStop, "End the run; an armed send ends normally first", []field{reason, interrupt}},
	{"applied", workflows.MessageApplied, "Say that an effect of unknown outcome did reach the site", judgement},
	{
		"not-applied", workflows.MessageNotApplied,
		"Say that an effect of unknown outcome did not reach the site, so that it is sent again", judgement,
	},
	{"unknown", workflows.MessageUnknown, "Say that the outcome of an effect stays unknown", judgement},
	{"supersede", workflows.MessageSupersede, "Give up an effect of unknown outcome and send a new one", []field{effect, reason, duplicate}},
	{"approve", workflows.MessageApprove, "Approve a DONE that waits for it", []field{completion, reason}},
	{"decline", workflows.MessageDecline, "Decline a DONE that waits for approval; the assistant is told why", []field{completion, reason}},
	{"recover", workflows.MessageRecover, "Send one recovery prompt after the effect's turn failed", []field{effect, reason}},
	{"occurrence", workflows.MessageOccurrence, "Wake a run that waits for an occurrence", []field{occurrence}},
}

// finder turns what a person types into a workflow id.
type finder func(r runs, ctx context.Context, typed string) (string, error)

func newMessageCommand(app *app, m message, find finder) *cobra.Command {
	var operator string
	var signal bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use: m.verb + " ID", Short: m.short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			payload := map[string]any{"operator": operator}
			for _, f := range m.fields {
				if cmd.Flags().Changed(f.flag) {
					payload[f.key] = f.value(cmd)
				}
			}
			return app.send(cmd, args[0], m, payload, find, signal, wait)
		},
	}
	flags := cmd.Flags()
	for _, f := range m.fields {
		switch f.kind.(type) {
		case string:
			flags.String(f.flag, "", f.usage)
		case int:
			flags.Int(f.flag, 0, f.usage)
		case bool:
			flags.Bool(f.flag, false, f.usage)
		}
		if f.required {
			cobra.CheckErr(cmd.MarkFlagRequired(f.flag))
		}
	}
	flags.StringVar(&operator, "operator", currentUser(), "who says so; it is journaled")
	flags.BoolVar(&signal, "signal", false, "leave the message for the next worker instead of waiting for an answer")
	flags.DurationVar(&wait, "timeout", 15*time.Second, "longest wait for the answer")
	return cmd
}

func (f field) value(cmd *cobra.Command) any {
	flags := cmd.Flags()
	switch f.kind.(type) {
	case int:
		v, err := flags.GetInt(f.flag)
		cobra.CheckErr(err)
		return v
	case bool:
		v, err := flags.GetBool(f.flag)
		cobra.CheckErr(err)
		return v
	}
	v, err := flags.GetString(f.flag)
	cobra.CheckErr(err)
	return v
}

// send delivers a message to a run or release and tells its answer.
func (a *app) send(cmd *cobra.Command, typed string, m message, payload map[string]any, find finder, signal bool, wait time.Duration) error {
	ctx := cmd.Context()
	r, done, err := a.runs(ctx)
	if err != nil {
		return err
	}
	defer done()
	id, err := find(r, ctx, typed)
	if err != nil {
		return err
	}
	if signal {
		if err := r.signal(ctx, id, m.name, payload); err != nil {
			return err
		}
		return a.answer(map[string]any{"workflow_id": id, "signal": m.name, "request_id": payload["request_id"]}, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %s left for the next worker\n", id, m.verb)
		})
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answer, err := r.update(ctx, id, m.name, payload)
	if err != nil {
		return err
	}
	if err := a.answer(answer, func(w io.Writer) { a.writeAnswer(w, id, m.verb, answer) }); err != nil {
		return err
	}
	if answer.Decision == kernel.Accept || answer.Decision == kernel.NoOp {
		return nil
	}
	return exitWith(exitRefused, "%s was not accepted: %s %s", m.verb, answer.Decision, answer.Code)
}

func (a *app) writeAnswer(w io.Writer, id, verb string, answer machine.Answer) {
	colour := green
	if answer.Decision != kernel.Accept && answer.Decision != kernel.NoOp {
		colour = red
	}
	code := ""
	if answer.Code != "" {
		code = " (" + answer.Code + ")"
	}
	fmt.Fprintf(w, "%s: %s %s%s; it is %s at revision %d\n",
		id, verb, a.paint(colour, string(answer.Decision)), code, answer.Status, answer.Revision)
	for _, missing := range answer.Missing {
		fmt.Fprintf(w, "  missing: %s\n", missing)
	}
}

// currentUser is the default operator.
func currentUser() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil && name != "" {
		return name + "@" + host
	}
	return name
}
