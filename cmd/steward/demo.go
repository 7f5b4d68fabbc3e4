package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"steward/activities/admission"
	"steward/cmd/steward/setup"
	"steward/config"
	"steward/integration/chatlab"
	"steward/worker"
	"steward/worker/embedded"
	"steward/workflows/run/policy"
)

func newDemoCommand(app *app) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use: "demo", Short: "Run one goal end to end: a server, a worker, a real browser and a local chat site", Args: cobra.NoArgs,
		Long: "Start an embedded server, a worker with a headless browser, and a scripted chat site, all in a temporary folder and on\n" +
			"loopback; give one goal to one conversation there; and follow it until a real check has verified the assistant's DONE.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.demo(cmd.Context(), keep)
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave everything up until Ctrl-C")
	return cmd
}

// demoResult is the answer of the demo.
type demoResult struct {
	RunID         string `json:"run_id"`
	TemporalRunID string `json:"temporal_run_id"`
	Status        string `json:"status"`
	Turns         int    `json:"turns"`
	// UserMessages is what the chat site received: the ground truth. Dispatches is what the run attempted.
	UserMessages int    `json:"user_messages"`
	Dispatches   int    `json:"dispatches"`
	WebUI        string `json:"web_ui"`
	ElapsedMS    int64  `json:"elapsed_ms"`
}

func (a *app) demo(ctx context.Context, keep bool) (err error) {
	began := time.Now()
	for _, f := range setup.Check(ctx) {
		if !f.OK {
			return exitWith(exitFailed, "%s: %s. By hand: %s; or `steward setup`", f.Name, f.Detail, f.Fix)
		}
	}
	dir, err := os.MkdirTemp("", "steward-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			a.note("the logs of the demo are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	}()
	script, err := chatlab.LoadScenario("demo")
	if err != nil {
		return err
	}
	d := &demo{app: &app{output: a.output}, dir: dir}
	defer d.close()
	if err := d.start(ctx, script); err != nil {
		return err
	}
	result, err := d.run(ctx, began)
	if err != nil {
		return err
	}
	err = a.answer(result, func(w io.Writer) {
		fmt.Fprintf(w, "\nThe site received %d user messages for %d turns; every check passed. %.1f s.\n",
			result.UserMessages, result.Turns, time.Since(began).Seconds())
		fmt.Fprintf(w, "Web UI: %s\n", result.WebUI)
	})
	if err != nil || !keep {
		return err
	}
	a.note("Everything stays up until Ctrl-C. The conversation: %s\nThe run: steward --data-dir %s run show %s",
		d.conversationURL, dir, result.RunID)
	<-ctx.Done()
	return nil
}

// demo is a whole installation in one process and one temporary folder. Its app has settings of its own.
type demo struct {
	*app
	dir             string
	site            *chatlab.Server
	conversation    string
	conversationURL string
	runs            runs
	stop            []func()
	failed          chan error
}

func (d *demo) close() {
	for _, stop := range slices.Backward(d.stop) {
		stop()
	}
}

// start brings everything up, with one scripted conversation.
func (d *demo) start(ctx context.Context, script chatlab.Scenario) error {
	logFile, err := os.OpenFile(filepath.Join(d.dir, "demo.log"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	d.stop = append(d.stop, func() { _ = logFile.Close() })
	d.log = slog.New(slog.NewTextHandler(logFile, nil))
	d.settings = demoSettings(d.dir)

	d.step("chat site")
	if err := d.startSite(script); err != nil {
		return err
	}
	d.step("Temporal server")
	server, err := embedded.Start(ctx, d.serverOptions())
	if err != nil {
		return err
	}
	d.stop = append(d.stop, func() {
		if err := server.Stop(); err != nil {
			d.log.Error("stop the server", "error", err)
		}
	})
	d.step("worker and browser")
	return d.startWorker(ctx)
}

func (d *demo) step(what string) {
	if !d.json {
		d.line("%s %s", d.paint(dim, "start"), what)
	}
}

// demoSettings keep everything in one folder, apart from any other installation.
func demoSettings(dir string) config.Settings {
	return config.Settings{
		DataDir: dir, SitesDir: filepath.Join(dir, "sites"),
		Server: config.Server{Host: "127.0.0.1", Namespace: "default"},
		Worker: config.Worker{
			Roles: []string{string(worker.RoleRun), string(worker.RoleChecks), string(worker.RoleBrowser)}, Host: config.Host(),
			StopTimeout: 15 * time.Second, StickyCacheSize: 100,
		},
		Checks: config.Checks{Roots: []string{dir}, Commands: []string{"grep"}, OutputDir: filepath.Join(dir, "checks")},
		Browsers: []config.Browser{{
			Name: demoSite, Site: demoSite, Mode: config.Launch, ProfileDir: filepath.Join(dir, "browsers", demoSite, "profile"),
			Headed: config.Off, NoSandbox: config.Auto, MaxTabs: 4, ReadSlots: 100,
		}},
	}
}

const demoSite = "chatlab"

// startSite serves the chat site, and writes the profile that leads a browser to it: the facts of
// the real site, under another address and without its waits.
func (d *demo) startSite(script chatlab.Scenario) error {
	work := d.workDir()
	err := os.MkdirAll(work, 0o700)
	if err != nil {
		return err
	}
	if d.site, err = chatlab.Start(chatlab.Options{Dir: work, Log: d.log}); err != nil {
		return err
	}
	d.stop = append(d.stop, func() { _ = d.site.Close() })
	if d.conversation, err = d.site.NewConversation(chatlab.Conversation{Scenario: script}); err != nil {
		return err
	}
	d.conversationURL = d.site.ConversationURL(d.conversation)
	profile := fmt.Sprintf("site: %s\nextends: chatgpt\nversion: 1\norigins: [%s]\nheaded: false\ntimings: {send_gap: 0s, min_interval: 0s}\n",
		demoSite, d.site.URL())
	return writeFile(filepath.Join(d.settings.SitesDir, demoSite+".yaml"), []byte(profile))
}

func (d *demo) workDir() string { return filepath.Join(d.dir, "orders") }

func (d *demo) startWorker(ctx context.Context) error {
	c, connection, err := d.dial(ctx, d.workerIdentity())
	if err != nil {
		return err
	}
	d.stop = append(d.stop, c.Close)
	d.runs = newRuns(c, connection)
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.failed = make(chan error, 1)
	began := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.failed <- d.work(working, c, connection)
	}()
	d.stop = append(d.stop, func() { stop(); <-ended })
	for workerReady(d.dir, began) != nil {
		select {
		case err := <-d.failed:
			return fmt.Errorf("the worker does not start: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// run gives the goal to the conversation and follows it to its end.
func (d *demo) run(ctx context.Context, began time.Time) (demoResult, error) {
	registry, err := d.sites()
	if err != nil {
		return demoResult{}, err
	}
	raw := d.goal()
	start, problems := admission.Resolve(raw, registry, d.settings.Worker.Host)
	if len(problems) > 0 {
		return demoResult{}, refusedStart(exitFailed, problemLines(problems))
	}
	started, err := d.runs.start(ctx, start, raw)
	if err != nil {
		return demoResult{}, err
	}
	if !d.json {
		d.line("%s %s\n", d.paint(dim, "run"), started.WorkflowID)
	}
	shown := *d.app
	if d.json {
		shown.out = io.Discard
	}
	state, err := shown.follow(ctx, d.runs, started.WorkflowID)
	if err != nil {
		return demoResult{}, err
	}
	result := demoResult{
		RunID: started.WorkflowID, TemporalRunID: started.RunID, Status: string(state.Shown()), Turns: state.Turns,
		UserMessages: len(d.site.Record(d.conversation)), Dispatches: state.Dispatches, WebUI: started.WebUI,
		ElapsedMS: time.Since(began).Milliseconds(),
	}
	return result, d.verify(result)
}

// goal is the start input of the demo.
func (d *demo) goal() []byte {
	return fmt.Appendf(nil, demoGoal, demoSite, d.conversationURL, d.workDir())
}

// verify compares what the run says with what the site saw.
func (d *demo) verify(r demoResult) error {
	var wrong []error
	if r.Status != string(policy.GoalComplete) {
		wrong = append(wrong, fmt.Errorf("the run ended as %s", r.Status))
	}
	if r.UserMessages != r.Turns || r.Dispatches != r.Turns {
		wrong = append(wrong, fmt.Errorf("%d turns and %d dispatches, but the site received %d user messages",
			r.Turns, r.Dispatches, r.UserMessages))
	}
	for _, violation := range d.site.Violations() {
		wrong = append(wrong, errors.New("the chat site saw: "+violation))
	}
	return errors.Join(wrong...)
}

// demoGoal is a start input; its blanks are the site, the conversation and the folder of the work.
const demoGoal = `{
  "objective": "Make the tests of the orders service pass without changing its public API, and say so in REPORT.md.",
  "target": {"site": %q, "conversation_url": %q},
  "scope": "goal:orders-green",
  "completion": {"checks": [
    {"name": "report", "command": {"argv": ["grep", "--quiet", "all green", "REPORT.md"], "dir": %q, "timeout": "10s"}}
  ]}
}`
