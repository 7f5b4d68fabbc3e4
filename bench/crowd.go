package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"steward/bench/target"
	"steward/workflows"
	"steward/workflows/run/policy"
)

// startAll begins something for every conversation, many at a time.
func startAll(conversations []string, begin func(string) error) error {
	work, failed := make(chan string), make(chan error, len(conversations))
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for c := range work {
				if err := begin(c); err != nil {
					failed <- err
				}
			}
		})
	}
	for _, c := range conversations {
		work <- c
	}
	close(work)
	group.Wait()
	close(failed)
	return <-failed
}

func conversations(n, turns int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = target.Conversation(turns)
	}
	return list
}

// idle measures with a few open runs and then with many: each was admitted, is paused, and waits for its operator.
func (b *bench) idle(ctx context.Context) error {
	sdkworker.SetStickyWorkflowCacheSize(stickyCache)
	p, err := b.newPair(ctx, "idle")
	if err != nil {
		return err
	}
	defer p.close()
	few, many := conversations(10, 1), conversations(pick(b, 500, 10_000), 1)
	if err := p.startPaused(ctx, few); err != nil {
		return err
	}
	if _, _, err := p.respond(ctx, few, 20); err != nil { // warm-up
		return err
	}
	queryFew, sendFew, err := p.respond(ctx, few, 100)
	if err != nil {
		return err
	}
	serverBefore, err := memory(p.server.Process.Pid)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := p.startPaused(ctx, many); err != nil {
		return err
	}
	started := time.Since(began)
	serverAfter, err := memory(p.server.Process.Pid)
	if err != nil {
		return err
	}
	queryMany, sendMany, err := p.respond(ctx, many, 100)
	if err != nil {
		return err
	}
	n := len(many)
	row := Row{What: fmt.Sprintf("query with %d open runs", n), Unit: "ms", Samples: len(queryMany), Figure: figure(queryMany)}.
		against("with 10 runs", figure(queryFew))
	b.add(row.bar("p95 ≤ 2x", row.P95/row.Baseline.P95, 2,
		"a query is a task of the one process that has the run in memory, beside whatever else the machine does"))
	row = Row{What: fmt.Sprintf("signal → send started with %d open runs", n), Unit: "ms", Samples: len(sendMany), Figure: figure(sendMany)}.
		against("with 10 runs", figure(sendFew))
	b.add(row.bar("p95 ≤ 2x", row.P95/row.Baseline.P95, 2, "one SQLite connection serves all writes, and an index of open runs grows with them"))
	b.add(Row{
		What: "start and admission of an idle run", Unit: "ms", Samples: n, Figure: Figure{Median: millis(started) / float64(n)}, Note: "32 starts at a time.",
	})
	b.add(Row{
		What: "memory of the server per open run", Unit: "KB", Samples: n, Figure: Figure{Median: (serverAfter - serverBefore) / float64(n) * 1024},
	})
	return b.list(ctx, p, n)
}

// startPaused starts runs with a pause in their first task and waits until every one has taken both.
func (p *pair) startPaused(ctx context.Context, list []string) error {
	pause := map[string]any{"operator": "bench", "reason": "idle"}
	err := startAll(list, func(c string) error {
		_, err := p.client.SignalWithStartWorkflow(ctx, runID(c), workflows.MessagePause, pause,
			startOptions(simulated, c), workflows.TypeWorkflowRun, input(simulated, simulated, "http://127.0.0.1:1/c/"+c))
		return err
	})
	if err != nil {
		return err
	}
	p.paused += len(list)
	limit := time.Minute + time.Duration(len(list))*100*time.Millisecond
	return poll(ctx, limit, fmt.Sprintf("%d runs are admitted and paused", p.paused), func() (bool, error) {
		time.Sleep(min(time.Second, time.Duration(len(list))*10*time.Millisecond)) // a count of many runs takes the server's time
		count, err := p.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: workflows.AttributeStatus.GetName() + " = 'paused' AND ExecutionStatus = 'Running'",
		})
		return count.GetCount() >= int64(p.paused), err
	})
}

func (p *pair) state(ctx context.Context, conversation string) (s policy.State, err error) {
	answer, err := p.client.QueryWorkflow(ctx, runID(conversation), "", workflows.QueryState)
	if err != nil {
		return s, err
	}
	return s, answer.Get(&s)
}

// respond asks runs here and there, and resumes so many others, ten of which are open at a time: how long until the query is answered,
// and until the site has the message.
func (p *pair) respond(ctx context.Context, asked []string, resumed int) (queries, sends []float64, err error) {
	for i := range 300 {
		began := time.Now()
		if _, err := p.state(ctx, asked[i*7919%len(asked)]); err != nil {
			return nil, nil, err
		}
		queries = append(queries, millis(time.Since(began)))
	}
	others := conversations(resumed, 1)
	for i, c := range others {
		if i%10 == 0 {
			if err := p.startPaused(ctx, others[i:min(i+10, len(others))]); err != nil {
				return nil, nil, err
			}
		}
		began := time.Now()
		err := p.client.SignalWorkflow(ctx, runID(c), "", workflows.MessageResume, map[string]any{"operator": "bench", "reason": "go on"})
		if err != nil {
			return nil, nil, err
		}
		var messages []target.Message
		err = poll(ctx, time.Minute, "the resumed run has sent", func() (bool, error) {
			messages, err = p.site.Sent(ctx, c)
			return len(messages) > 0, err
		})
		if err != nil {
			return nil, nil, err
		}
		sends = append(sends, millis(messages[0].At.Sub(began)))
		if err := p.client.TerminateWorkflow(ctx, runID(c), "", "measured"); err != nil {
			return nil, nil, err
		}
		p.paused--
		time.Sleep(20 * time.Millisecond) // what the ended run leaves to do is not part of the next one's time
	}
	return queries, sends, nil
}

// list measures the two lists of the command.
func (b *bench) list(ctx context.Context, p *pair, n int) error {
	for _, command := range [][]string{{"run", "list", "--limit", "10000"}, {"inbox", "--limit", "10000"}} {
		var took []float64
		for range pick(b, 2, 5) {
			cmd := exec.CommandContext(ctx, b.steward, append(command, "--data-dir", filepath.Dir(p.dataDir), "-o", "json")...)
			began := time.Now()
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("steward %v: %w", command[:2], err)
			}
			took = append(took, millis(time.Since(began)))
		}
		b.add(Row{
			What: fmt.Sprintf("steward %s, %d runs", strings.Join(command[:len(command)-2], " "), n), Unit: "ms", Samples: len(took), Figure: figure(took),
			Note: fmt.Sprintf("the whole command, with its start; %d list calls of 1,000 runs, no call per run.", (n+999)/1000),
		})
	}
	return nil
}

// kill ends the process that decides for many runs which all wait for an answer, lets the site answer, and starts another one. Their
// observations belong to the host of the login and go on.
func (b *bench) kill(ctx context.Context) error {
	r, err := b.newRig(ctx, "kill")
	if err != nil {
		return err
	}
	defer r.close()
	p := &pair{rig: r, site: target.NewSite(), bareSite: target.NewSite()}
	if err := p.serveSites(ctx); err != nil {
		return err
	}
	n := pick(b, 150, 1000)
	var own, bare, ownAll, bareAll []float64
	var perRun float64
	for range 2 {
		base, _, err := p.killed(ctx, true, n)
		if err != nil {
			return err
		}
		times, mb, err := p.killed(ctx, false, n)
		if err != nil {
			return err
		}
		own, bare, perRun = append(own, times...), append(bare, base...), mb
		ownAll, bareAll = append(ownAll, slices.Max(times)), append(bareAll, slices.Max(base))
	}
	row := Row{What: fmt.Sprintf("run worker killed, %d runs: all go on", n), Unit: "ms", Samples: len(ownAll), Figure: figure(ownAll)}.
		against("bare workflows with the same activities in flight", figure(bareAll))
	b.add(row.bar("≤ 1.3x", row.Ratio, 1.3, "a replayed run decodes its state and its prompts, and its next send carries a prompt"))
	b.add(Row{What: fmt.Sprintf("run worker killed, %d runs: one goes on", n), Unit: "ms", Samples: len(own), Figure: figure(own)}.
		against("a bare workflow", figure(bare)))
	b.add(Row{
		What: "memory of the worker per open run", Unit: "KB", Samples: n, Figure: Figure{Median: perRun * 1024},
		Note: "resident memory of the process, all runs in its cache.",
	})
	return nil
}

// killed returns the time from the kill to the next message of every run, and the worker's memory per run in MB.
func (p *pair) killed(ctx context.Context, bare bool, n int) (times []float64, perRun float64, err error) {
	site, begin := p.site, func(c string) (client.WorkflowRun, error) { return p.start(ctx, c) }
	id := runID
	if bare {
		site, begin = p.bareSite, func(c string) (client.WorkflowRun, error) { return p.startBare(ctx, c, 2) }
		id = func(c string) string { return "bare:" + c }
	}
	release := site.Hold()
	defer release()
	first, endFirst, err := p.process(ctx, workerSpec{Bare: bare})
	if err != nil {
		return nil, 0, err
	}
	empty, err := memory(first.Process.Pid)
	if err != nil {
		return nil, 0, err
	}
	list := conversations(n, 2)
	if err := startAll(list, func(c string) error { _, err := begin(c); return err }); err != nil {
		return nil, 0, err
	}
	err = poll(ctx, 6*time.Minute, "all runs wait for their answer", func() (bool, error) { return site.Waiting() >= n, nil })
	if err != nil {
		return nil, 0, err
	}
	full, err := memory(first.Process.Pid)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if err := first.Process.Kill(); err != nil {
		return nil, 0, err
	}
	endFirst()
	release()
	again := site.Hold() // what goes on stops at its next answer
	defer again()
	_, endSecond, err := p.process(ctx, workerSpec{Bare: bare})
	if err != nil {
		return nil, 0, err
	}
	defer endSecond()
	for _, c := range list {
		var messages []target.Message
		err := poll(ctx, 3*time.Minute, "the run goes on", func() (bool, error) {
			messages, err = site.Sent(ctx, c)
			return len(messages) >= 2, err
		})
		if err != nil {
			return nil, 0, err
		}
		times = append(times, millis(messages[1].At.Sub(began)))
	}
	if twice := p.site.Twice(); len(twice) > 0 {
		return nil, 0, errors.New("the site received effects twice: " + twice[0])
	}
	// Nothing of it may be open while the next round is measured: each observation heartbeats.
	err = startAll(list, func(c string) error { return p.client.TerminateWorkflow(ctx, id(c), "", "measured") })
	if err == nil {
		again()
		err = poll(ctx, time.Minute, "no observation is open", func() (bool, error) { return site.Waiting() == 0, nil })
	}
	return times, (full - empty) / float64(n), err
}
