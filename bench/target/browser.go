package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"steward/activities"
	"steward/activities/browser"
	"steward/workflows/run/receipt"
)

// Browser serves the activities of one login against a simulated site. It keeps the rules that make a send safe: it looks
// for the effect first, and it arms before it delivers.
type Browser struct {
	Site Seam
	// Armer makes the heartbeats; a send makes two before it delivers, as a real one does: as it begins, and as it arms.
	Armer  browser.Armer
	Worker activities.Worker
}

// Conversation is a new conversation id whose number of turns stands in it: the last one is answered with DONE.
func Conversation(turns int) string {
	return fmt.Sprintf("%08x", turns) + uuid.NewString()[8:]
}

func turns(conversation string) (int, error) {
	if len(conversation) < 8 {
		return 0, fmt.Errorf("conversation %q tells no number of turns", conversation)
	}
	n, err := strconv.ParseInt(conversation[:8], 16, 32)
	return int(n), err
}

// Send delivers a prompt and reports it as committed.
func (b *Browser) Send(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
	result := activities.SendResult{
		Outcome: activities.SendCommitted, Armed: true, ConversationID: in.Conversation.ID, ConversationURL: in.Conversation.URL, Worker: b.Worker,
	}
	if there, err := b.there(ctx, in.Conversation.ID, in.EffectID); err != nil || there {
		result.CommittedAt, result.AlreadyThere = time.Now().Round(time.Millisecond), there
		return result, err
	}
	if err := Arm(ctx, b.Armer, in.Generation); err != nil {
		result.Outcome, result.Class, result.Armed = activities.SendDeferred, activities.DeferWorkerUnavailable, false
		result.Code, result.Detail = "heartbeat_unanswered", err.Error()
		return result, nil //nolint:nilerr // the outcome says it
	}
	if err := b.Site.Take(ctx, Message{Conversation: in.Conversation.ID, Effect: in.EffectID, Generation: in.Generation}); err != nil {
		result.Outcome, result.Code, result.Detail = activities.SendDoubtful, "commit_not_seen", err.Error()
		return result, nil //nolint:nilerr // the outcome says it
	}
	result.CommittedAt = time.Now().Round(time.Millisecond)
	return result, nil
}

// Arm makes the two heartbeats of a send.
func Arm(ctx context.Context, armer browser.Armer, generation int) error {
	if err := armer.Beat(ctx, activities.SendProgress{Step: "open"}); err != nil {
		return err
	}
	return armer.Beat(ctx, activities.SendProgress{Step: "armed", Armed: generation})
}

func (b *Browser) there(ctx context.Context, conversation, effect string) (bool, error) {
	messages, err := b.Site.Sent(ctx, conversation)
	for _, m := range messages {
		if m.Effect == effect {
			return true, err
		}
	}
	return false, err
}

// Observe waits for the answer and reads the receipt in it.
func (b *Browser) Observe(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
	stop := browser.KeepAlive(ctx, b.Armer, &open)
	defer stop()
	if err := b.Site.Answered(ctx, in.Conversation.ID); err != nil {
		return activities.ObserveResult{}, err
	}
	messages, err := b.Site.Sent(ctx, in.Conversation.ID)
	if err != nil {
		return activities.ObserveResult{}, err
	}
	last, err := turns(in.Conversation.ID)
	if err != nil {
		return activities.ObserveResult{}, err
	}
	action := receipt.Continue
	if len(messages) >= last {
		action = receipt.Done
	}
	answer, err := answer(in.Want, action, len(messages))
	if err != nil {
		return activities.ObserveResult{}, err
	}
	now := time.Now().Round(time.Millisecond)
	return activities.ObserveResult{
		Turn: activities.TurnSettled, SeenAt: now, SettledAt: now, Reading: receipt.Read(answer, in.Want),
		AnswerDigest: receipt.TextDigest([]string{answer}), AnswerChars: len(answer), Worker: b.Worker,
	}, nil
}

var open atomic.Int64

func answer(want receipt.Want, action receipt.Action, step int) (string, error) {
	data, err := json.Marshal(map[string]any{
		"action": action, "conversation_id": want.ConversationID, "task_id": want.TaskID, "supervisor_state": action.State(),
		"active_scope": want.Scope, "source_effect_id": want.EffectID, "checkpoint": fmt.Sprint("step ", step), "reason": "there is more to do",
		"evidence": []string{fmt.Sprint("commit ", step)},
	})
	return "Done so far.\n\n" + receipt.StartMarker + "\n" + string(data) + "\n" + receipt.EndMarker, err
}

// Reconcile tells whether the site has the effect.
func (b *Browser) Reconcile(ctx context.Context, in activities.ReconcileInput) (activities.ReconcileResult, error) {
	there, err := b.there(ctx, in.Conversation.ID, in.EffectID)
	return activities.ReconcileResult{
		Readable: true, Marker: there, ConversationID: in.Conversation.ID, ConversationURL: in.Conversation.URL, Worker: b.Worker,
	}, err
}

// Probe passes: there is no page that could refuse.
func (b *Browser) Probe(_ context.Context, in activities.ProbeInput) (activities.ProbeResult, error) {
	return activities.ProbeResult{Passed: true, Level: in.Level, At: time.Now(), Worker: b.Worker}, nil
}

// Interrupt is not needed by any measurement.
func (b *Browser) Interrupt(context.Context, activities.InterruptInput) (activities.InterruptResult, error) {
	return activities.InterruptResult{}, errors.New("the simulated site has no stop control")
}

// Close implements worker.BrowserActivities.
func (b *Browser) Close(context.Context) error { return nil }
