package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// goBench runs Go benchmarks of a package and returns, for each, its metrics by unit; a metric has one value per count.
func goBench(ctx context.Context, pkg, pattern, benchtime string, count int) (map[string]map[string][]float64, error) {
	// A group of its own: the end of the bench ends the test program too, and what that has started.
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", benchtime,
		"-count", strconv.Itoa(count), pkg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var failed bytes.Buffer
	cmd.Stderr = &failed
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s %s: %w\n%s%s", pattern, pkg, err, output, failed.Bytes())
	}
	results := map[string]map[string][]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := fields[0]
		if i := strings.LastIndex(name, "-"); i > 0 {
			name = name[:i]
		}
		if results[name] == nil {
			results[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				results[name][fields[i+1]] = append(results[name][fields[i+1]], value)
			}
		}
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("go test -bench %s %s measured nothing:\n%s", pattern, pkg, output)
	}
	return results, nil
}

// common are the events of every turn and of every repetition; the others are rare.
var common = []string{"begin", "succeeded", "claim", "continue", "duplicate"}

func (b *bench) decisions(ctx context.Context) error {
	results, err := goBench(ctx, "./workflows/run/policy", "^BenchmarkDecide$", pick(b, "50ms", "200ms"), pick(b, 6, 20))
	if err != nil {
		return err
	}
	for _, event := range common {
		got := results["BenchmarkDecide/"+event]
		if len(got["ns/op"]) == 0 {
			return fmt.Errorf("BenchmarkDecide has no event %s", event)
		}
		ns, allocs := figure(got["ns/op"]), figure(got["allocs/op"])
		row := Row{
			What: "Decide, " + event, Unit: "ns", Samples: len(got["ns/op"]), Figure: ns,
			Note: fmt.Sprintf("%.0f allocations, %.0f bytes.", allocs.Median, figure(got["B/op"]).Median),
		}
		// An absolute time: what else the machine does only adds to it, so the fastest repetition counts.
		fastest := slices.Min(got["ns/op"])
		row.Note += fmt.Sprintf(" The fastest of %d repetitions took %.0f ns.", len(got["ns/op"]), fastest)
		row = row.bar("fastest ≤ 300 ns, 1 alloc", max(fastest/300, allocs.Median), 1, decideReasons[event])
		b.add(row)
	}
	return b.version(ctx)
}

// decideReasons say where the time of a common event goes when it is above the bar.
var decideReasons = map[string]string{
	"begin": "the state is copied by value; on an idle machine it stays below", "claim": "the state is copied by value; on an idle machine it stays below",
	"duplicate": "the state is copied by value; on an idle machine it stays below",
	"succeeded": "it notes the attempt in a copy of the list of attempts, which leaves the old state as it was: one allocation of 96 bytes, about 80 ns " +
		"beyond the 250 ns that copying the state of 1.4 KB in and out costs every event",
	"continue": "it commits the receipt, closes the turn in the ledger, reserves the successor and renders its prompt: the digest of the prompt is part of " +
		"the authorization, so that what an effect stood for can be shown after the templates have changed. By profile 45 % are the rendering, 28 % the " +
		"copy of the bounded ledger, the rest sha256 of the new ids; all of it is 0.1 % of a turn",
}

func (b *bench) version(ctx context.Context) error {
	var spent []float64
	for range pick(b, 10, 30) {
		cmd := exec.CommandContext(ctx, b.steward, "version")
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("steward version: %w", err)
		}
		spent = append(spent, millis(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()))
	}
	row := Row{What: "steward version, CPU", Unit: "ms", Samples: len(spent), Figure: figure(spent)}
	b.add(row.bar("< 100 ms", row.Median, 100, "the packages of server and browser are initialized with every command of the one binary"))
	return nil
}

func (b *bench) receipts(ctx context.Context) error {
	results, err := goBench(ctx, "./workflows/run/receipt", "^BenchmarkRead100KB$", pick(b, "100ms", "500ms"), pick(b, 3, 8))
	if err != nil {
		return err
	}
	for _, kind := range []string{"prose", "code", "chinese", "mixed"} {
		got := results["BenchmarkRead100KB/"+kind]
		own, ratio := figure(got["ns/answer"]), quantile(got["x-sha256"], 0.5)
		row := Row{
			What: "read and fingerprint 100 KB, " + kind, Unit: "µs", Samples: len(got["ns/answer"]), Figure: Figure{own.Median / 1e3, own.P95 / 1e3},
		}
		row = row.against("sha256 of the same bytes", Figure{Median: own.Median / ratio / 1e3})
		b.add(row.bar("≤ 2x", row.Ratio, 2, "sha256 runs on the processor's own instructions, and two thirds of the time are that; the rest copies the text into "+
			"its canonical form, eight bytes at a time, which depends on how fast the memory is just then"))
	}
	return nil
}

func (b *bench) outage(ctx context.Context) error {
	results, err := goBench(ctx, "./activities/recovery", "^BenchmarkOutage$", pick(b, "2x", "5x"), pick(b, 1, 4))
	if err != nil {
		return err
	}
	own, plain := results["BenchmarkOutage/cutover"]["outage-ms/op"], results["BenchmarkOutage/plain_restart"]["outage-ms/op"]
	b.add(Row{What: "outage of a release's cutover", Unit: "ms", Samples: len(own), Figure: figure(own)}.
		against("a plain stop and start of the same service", figure(plain)))
	return nil
}
