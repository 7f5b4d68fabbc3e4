package integration

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/run/policy"
)

var (
	soakRounds = flag.Int("rounds", 5, "rounds of TestSoak")
	soakSeed   = flag.Uint64("seed", 1, "what TestSoak draws its rounds from")
)

const (
	soakRuns = 4
	// soakOverlap rounds are under way at once: while the runs of one come to their ends, the next one strikes.
	soakOverlap = 3
	// soakPatience is how long a round may take before a run that has not ended counts as lost.
	soakPatience = 4 * time.Minute
)

// strike is one thing that happens to one process in a round.
type strike struct {
	victim string // server, worker, browser worker, browser
	freeze bool   // else killed
	point  string // of a send, at which the browser worker is held meanwhile; empty: at any time
	after  time.Duration
	hold   time.Duration // until it is woken or started again
}

func (s strike) String() string {
	how, where := "killed", "after "+s.after.String()
	if s.freeze {
		how = "frozen"
	}
	if s.point != "" {
		where = "at " + s.point
	}
	return fmt.Sprintf("%s %s %s for %v", s.victim, how, where, s.hold)
}

// sendPoints are the windows of a send.
var sendPoints = []string{"before_arm", "armed", "clicked", "committed"}

func drawStrikes(r *rand.Rand) (drawn []strike) {
	victims := []string{"server", "worker", "browser worker", "browser"}
	for range 1 + r.IntN(2) {
		s := strike{victim: victims[r.IntN(len(victims))], freeze: r.IntN(2) == 0, after: time.Duration(r.IntN(2500)) * time.Millisecond}
		if s.hold = time.Duration(r.IntN(800)) * time.Millisecond; s.freeze && r.IntN(2) == 0 {
			s.hold += 3 * time.Second // longer than the time-out of a heartbeat
		}
		if r.IntN(2) == 0 {
			s.point = sendPoints[r.IntN(len(sendPoints))]
		}
		drawn = append(drawn, s)
	}
	return drawn
}

// soakScript is a conversation of some turns that ends with a DONE which is true: its last answer writes the report.
func soakScript(r *rand.Rand, report string) string {
	var b strings.Builder
	b.WriteString("replies:\n")
	for i := range 1 + r.IntN(2) {
		turn := fmt.Sprintf(`'{{receipt "CONTINUE" "step %d" "more to do"}}'`, i)
		switch r.IntN(8) {
		case 0:
			turn = fmt.Sprintf(`'{{receipt "DONE" "claim %d" "nothing is left"}}'`, i)
		case 1:
			turn = "I am continuing."
		case 2:
			fmt.Fprintf(&b, "  - - tool: {name: command, output: ok, for: 300ms}\n    - text: %s\n", turn)
			continue
		case 3:
			b.WriteString("  - - text: I look\n    - banner: stopped_thinking\n")
			continue
		}
		fmt.Fprintf(&b, "  - - think: %dms\n    - text: %s\n", r.IntN(600), turn)
	}
	fmt.Fprintf(&b, "otherwise:\n  - write_file: {path: %s, content: green}\n  - text: '{{receipt \"DONE\" \"report\" \"all is well\"}}'\n", report)
	return b.String()
}

// tally is what the rounds came to. The site's record is the truth.
type tally struct {
	sync.Mutex
	rounds, runs, messages, duplicates, lost, falseEnds int
	unknown, superseded, fused                          int
	problems                                            []string
}

func (y *tally) problem(count *int, n int, format string, args ...any) {
	if n > 0 {
		*count += n
		y.problems = append(y.problems, fmt.Sprintf(format, args...))
	}
}

func (y *tally) violated() bool {
	y.Lock()
	defer y.Unlock()
	return len(y.problems) > 0
}

func (y *tally) String() string {
	return fmt.Sprintf("%d duplicates, %d lost, %d false ends", y.duplicates, y.lost, y.falseEnds)
}

// TestSoak kills and freezes at random, and compares what the runs say with what the site received.
// `go tool task soak -- --rounds 200 --seed 1` runs more of it.
func TestSoak(t *testing.T) {
	k := startKillable(t)
	traps := t.TempDir()
	browser := k.browserWorker(t, "soak", fault{})
	browser.spec.Traps = traps
	terminate(browser.cmd)
	browser.start(t)
	y := &tally{}
	slots, rounds := make(chan struct{}, soakOverlap), sync.WaitGroup{}
	for n := range *soakRounds {
		slots <- struct{}{}
		if y.violated() {
			break // what led to it is kept
		}
		judge := k.soakRound(t, browser, n, y)
		rounds.Go(func() {
			defer func() { <-slots }()
			judge()
		})
	}
	rounds.Wait()
	for _, v := range k.lab.Violations() {
		y.problems = append(y.problems, "the site: "+v)
	}
	fmt.Printf("%d rounds of seed %d, %d runs, %d messages; apart: %d runs blocked by an unknown outcome, %d superseded effects, %d fuses\n%v\n",
		y.rounds, *soakSeed, y.runs, y.messages, y.unknown, y.superseded, y.fused, y)
	require.Empty(t, y.problems)
}

// soakRun is one conversation of a round.
type soakRun struct {
	id, conversation, report string
	pick                     *rand.Rand
	state                    policy.State
}

// soakRound starts the runs of a round and strikes. It returns what waits for their ends and judges them.
func (k *killable) soakRound(t *testing.T, browser *browserProcess, n int, y *tally) (judge func()) {
	r := rand.New(rand.NewPCG(*soakSeed, uint64(n)))
	strikes, began := drawStrikes(r), time.Now()
	var runs []*soakRun
	for i := range soakRuns {
		report := fmt.Sprintf("soak-%d-%d.md", n, i)
		conversation := k.conversation(t, soakScript(r, report))
		in := k.input(conversation, "soak", func(in map[string]any) {
			in["completion"] = map[string]any{"checks": []any{map[string]any{"name": "report", "file": map[string]any{"path": filepath.Join(k.dir, report)}}}}
		})
		run, err := k.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
			ID: "run:chatlab:" + conversation, TaskQueue: workflows.QueueRun,
		}, workflows.TypeWorkflowRun, in)
		require.NoError(t, err)
		runs = append(runs, &soakRun{run.GetID(), conversation, report, rand.New(rand.NewPCG(r.Uint64(), 0)), policy.State{}})
	}
	ctx, cancel := context.WithTimeout(t.Context(), soakPatience)
	var followed sync.WaitGroup
	for _, run := range runs {
		followed.Go(func() { k.follow(ctx, run, y) })
	}
	var done []string
	for _, s := range strikes {
		if k.strike(t, browser, s) {
			done = append(done, s.String())
		}
	}
	return func() {
		followed.Wait()
		cancel()
		y.Lock()
		defer y.Unlock()
		y.rounds++
		before := len(y.problems)
		for _, run := range runs {
			k.judge(run, y)
		}
		fmt.Printf("round %d: %s (%.1f s): %v\n", n, strings.Join(done, "; "), time.Since(began).Seconds(), y)
		if len(y.problems) > before {
			fmt.Println("evidence:", k.evidence(browser, runs, y.problems[before:]))
		}
	}
}

// strike does what was drawn; false when the send never came to the point.
func (k *killable) strike(t *testing.T, browser *browserProcess, s strike) bool {
	held := false
	if s.point != "" {
		trap, caught := filepath.Join(browser.spec.Traps, s.point), filepath.Join(browser.spec.Traps, sprung)
		require.NoError(t, os.WriteFile(trap, nil, 0o600))
		for deadline := time.Now().Add(4 * time.Second); !held && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			held = os.Remove(caught) == nil
		}
		if os.Remove(trap); !held && os.Remove(caught) != nil {
			return false
		}
	} else {
		time.Sleep(s.after)
	}
	k.hit(t, browser, s)
	_ = browser.cmd.Process.Signal(syscall.SIGCONT)
	return true
}

func (k *killable) hit(t *testing.T, browser *browserProcess, s strike) {
	var process *os.Process
	var revive func() error
	switch s.victim {
	case "server":
		process, revive = k.server.cmd.Process, k.restartServer
	case "worker":
		process, revive = k.worker.cmd.Process, k.worker.restart
	case "browser worker":
		process, revive = browser.cmd.Process, func() error {
			_ = browser.cmd.Wait()
			browser.start(t)
			return nil
		}
	default:
		var err error
		if process, err = browser.chromium(); err != nil {
			return // it is being started
		}
		revive = func() error { return nil }
	}
	if s.freeze {
		_ = process.Signal(syscall.SIGSTOP)
		time.Sleep(s.hold)
		_ = process.Signal(syscall.SIGCONT)
		return
	}
	_ = process.Kill()
	time.Sleep(s.hold)
	require.NoError(t, revive())
}
