package integration

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

// follow waits for the end of a run. It is the operator of a run that is blocked: it says what the site's record says.
func (k *killable) follow(ctx context.Context, run *soakRun, y *tally) {
	told := map[string]bool{}
	for ctx.Err() == nil {
		state, err := k.ask(ctx, run.id)
		switch {
		case err != nil:
		case state.Terminal():
			run.state = state
			return
		case state.Blocker != nil && !told[state.Blocker.ID]:
			run.state = state
			told[state.Blocker.ID] = k.resolve(ctx, run, y) == nil
		default:
			run.state = state
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (k *killable) ask(ctx context.Context, id string) (state policy.State, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := k.client.QueryWorkflow(ctx, id, "", workflows.QueryState)
	if err != nil {
		return state, err
	}
	return state, answer.Get(&state)
}

// resolve answers a blocker as an operator would who looked at the site.
func (k *killable) resolve(ctx context.Context, run *soakRun, y *tally) error {
	s := &run.state
	message, payload := workflows.MessageResume, map[string]any{"answers": s.Blocker.ID}
	unknown := s.Blocker.Class == policy.BlockedUnknown
	switch {
	case s.Blocker.Class == policy.BlockedRecovery:
		message, payload = workflows.MessageRecover, map[string]any{"effect_id": s.Effect.ID}
	case unknown && k.marked(run.conversation, s.Effect.ID) > 0:
		message, payload = workflows.MessageApplied, map[string]any{"effect_id": s.Effect.ID, "generation": s.Effect.Generation}
	case unknown && run.pick.IntN(2) == 0:
		message, payload = workflows.MessageSupersede, map[string]any{"effect_id": s.Effect.ID, "accept_duplicate": true}
	case unknown:
		message, payload = workflows.MessageNotApplied, map[string]any{"effect_id": s.Effect.ID, "generation": s.Effect.Generation}
	}
	payload["operator"], payload["reason"] = "soak", "I looked at the site"
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	handle, err := k.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run.id, UpdateName: message, UpdateID: uuid.NewString(), Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	var answer machine.Answer
	if err := handle.Get(ctx, &answer); err != nil {
		return err
	}
	y.Lock()
	defer y.Unlock()
	if unknown {
		y.unknown++
	} else {
		y.fused++
	}
	return nil
}

// judge compares a run with the record of the site and the report that only a true DONE leaves behind.
func (k *killable) judge(run *soakRun, y *tally) {
	s, record := &run.state, k.lab.Record(run.conversation)
	y.runs++
	y.messages += len(record)
	y.superseded += len(s.Retired)
	if !s.Terminal() {
		y.problem(&y.lost, 1, "%s did not end: %+v", run.id, s.Explain())
	}
	received := map[string]int{}
	for _, r := range record {
		received[r.EffectID]++
	}
	own := map[string]bool{}
	for _, turn := range s.Chain() {
		own[turn.Effect] = true
		if !turn.Applied.IsZero() {
			y.problem(&y.lost, max(0, 1-received[turn.Effect]), "%s: the site has no message of the applied %s", run.id, turn.Effect)
		}
	}
	for _, e := range s.Retired {
		own[e.ID] = true
	}
	for effect, n := range received {
		y.problem(&y.duplicates, n-1, "%s: %d messages of %s", run.id, n, effect)
		if !own[effect] {
			y.problem(&y.duplicates, 1, "%s: the run knows nothing of %s", run.id, effect)
		}
	}
	_, err := os.Stat(filepath.Join(k.dir, run.report))
	switch {
	case !s.Terminal():
	case s.Status != policy.GoalComplete:
		y.problem(&y.falseEnds, 1, "%s ended %s", run.id, s.Status)
	case errors.Is(err, os.ErrNotExist) || s.Completion.Action != "DONE" || s.Completion.Effect != record[len(record)-1].EffectID:
		y.problem(&y.falseEnds, 1, "%s is complete without its report", run.id)
	}
}

// evidence keeps what explains a violation, and says where.
func (k *killable) evidence(browser *browserProcess, runs []*soakRun, problems []string) string {
	dir, err := os.MkdirTemp("", "steward-soak-evidence-")
	if err != nil {
		return err.Error()
	}
	put := func(name string, value any) {
		data, err := json.MarshalIndent(value, "", " ")
		if err == nil {
			_ = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
	}
	put("problems.json", problems)
	put("events.json", k.lab.Events())
	for _, run := range runs {
		put(run.conversation+".state.json", run.state)
		put(run.conversation+".record.json", k.lab.Record(run.conversation))
		if history, err := k.history(run.id, ""); err == nil {
			_ = os.WriteFile(filepath.Join(dir, run.conversation+".history.json"), history, 0o600)
		}
	}
	for _, log := range []string{k.server.log, k.worker.log, filepath.Join(filepath.Dir(browser.spec.Hit), "worker.log"), browser.spec.ProfileDir + ".ledger"} {
		if data, err := os.ReadFile(log); err == nil {
			_ = os.WriteFile(filepath.Join(dir, filepath.Base(log)), data, 0o600)
		}
	}
	return dir
}
