// Command bench measures Steward against honest baselines in the same run and says which bars are met: `go tool task bench`
// prints the table, and writes it as JSON too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if spec := os.Getenv(workerEnv); spec != "" {
		if err := serveWorker(ctx, []byte(spec)); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "bench worker:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one invocation.
type bench struct {
	// quick takes fewer samples and smaller counts, for the same rows.
	quick bool
	// steward is the command that is measured.
	steward string
	// postgres is the PostgreSQL server of the measured servers; nil for SQLite.
	postgres *url.URL
	// logs take what servers and workers log as errors: runs are terminated and workers killed here, which they report.
	logs io.Writer
	// fail ends the present section with its cause.
	fail  context.CancelCauseFunc
	only  string
	dir   string
	rows  []Row
	began time.Time
}

// pick is the first value in quick mode and the second in full mode.
func pick[T any](b *bench, quick, full T) T {
	if b.quick {
		return quick
	}
	return full
}

// section measures rows that share a set-up.
type section struct {
	name, about string
	measure     func(*bench, context.Context) error
}

var sections = []section{
	{"decide", "decisions of the policy, and the start of the command", (*bench).decisions},
	{"receipt", "parsing and fingerprint of a 100 KB answer", (*bench).receipts},
	{"engine", "cost of a turn on a site that answers at once; events; turns a second", (*bench).engine},
	{"growth", "cost of a turn late in a long run; disk", (*bench).growth},
	{"idle", "many open idle runs: query, signal, list; memory", (*bench).idle},
	{"kill", "a killed worker with many open runs", (*bench).kill},
	{"page", "settle to successor in a real browser, alone and among many runs; browser work", (*bench).page},
	{"outage", "cutover of a release", (*bench).outage},
}

func run(ctx context.Context, args []string) (err error) {
	b := &bench{began: time.Now(), logs: io.Discard}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&b.quick, "quick", false, "fewer samples and smaller counts, under 3 minutes")
	flags.StringVar(&b.only, "only", "", "regular expression of the sections to measure (see -list)")
	list := flags.Bool("list", false, "list the sections")
	file := flags.String("json", filepath.Join(".cache", "bench.json"), "file for the figures as JSON")
	flags.StringVar(&b.steward, "steward", filepath.Join("bin", "steward"), "the command to measure")
	flags.Func("postgres", "measure on this PostgreSQL (postgres://user@host:port, password in PGPASSWORD); each section makes two databases "+
		"bench_…, which stay", func(address string) (err error) {
		b.postgres, err = url.Parse(address)
		return err
	})
	verbose := flags.Bool("verbose", false, "show the errors that servers and workers log; the measurements provoke some")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	wanted, err := regexp.Compile(b.only)
	if err != nil {
		return err
	}
	if *list {
		for _, s := range sections {
			fmt.Printf("%-8s %s\n", s.name, s.about)
		}
		return nil
	}
	if b.steward, err = filepath.Abs(b.steward); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "steward-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if *verbose {
		b.logs = os.Stderr
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelError})))
	var failed []string
	for _, s := range sections {
		if !wanted.MatchString(s.name) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		if err := b.section(ctx, s.measure); err != nil {
			failed = append(failed, fmt.Sprintf("section %s (-verbose shows the logs): %v", s.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", s.name, time.Since(began).Seconds())
	}
	if len(b.rows) == 0 && len(failed) == 0 {
		failed = append(failed, fmt.Sprintf("nothing was measured: no section's name matches %q, or it was interrupted", b.only))
	}
	b.print(os.Stdout)
	if err := b.write(*file, failed); err != nil {
		failed = append(failed, err.Error())
	}
	if len(failed) > 0 {
		return errors.New(strings.Join(failed, "\n"))
	}
	return ctx.Err()
}

// section measures one section, until it is done or something that it needs has failed.
func (b *bench) section(ctx context.Context, measure func(*bench, context.Context) error) error {
	ctx, b.fail = context.WithCancelCause(ctx)
	defer b.fail(nil)
	err := measure(b, ctx)
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, cause) {
		return errors.Join(err, cause)
	}
	return err
}

// report is the JSON file.
type report struct {
	At   time.Time `json:"at"`
	Mode string    `json:"mode"`
	// Only says which sections were asked for, Failed which of them have failed: then the rows are not all there are.
	Only    string   `json:"only,omitempty"`
	Failed  []string `json:"failed,omitempty"`
	CPUs    int      `json:"cpus"`
	Go      string   `json:"go"`
	Seconds float64  `json:"seconds"`
	Rows    []Row    `json:"rows"`
}

func (b *bench) write(file string, failed []string) error {
	r := report{
		At: b.began.UTC(), Mode: pick(b, "quick", "full"), Only: b.only, Failed: failed, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		Seconds: time.Since(b.began).Seconds(), Rows: b.rows,
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

func (b *bench) print(w io.Writer) {
	printTable(w, b.rows)
	fmt.Fprintf(w, "\n%s mode, %d CPUs, %.0f s. Times are medians; ratios are within this run.\n",
		pick(b, "quick", "full"), runtime.NumCPU(), time.Since(b.began).Seconds())
}
