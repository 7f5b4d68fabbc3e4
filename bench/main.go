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
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
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
	// postgres is the PostgreSQL server of the measured servers; empty for SQLite.
	postgres string
	// verbose shows what servers and workers log as errors: runs are terminated and workers killed here, which they report.
	verbose bool
	dir     string
	rows    []Row
	began   time.Time
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
	b := &bench{began: time.Now()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&b.quick, "quick", false, "fewer samples and smaller counts, under 3 minutes")
	only := flags.String("only", "", "regular expression of the sections to measure (see -list)")
	list := flags.Bool("list", false, "list the sections")
	file := flags.String("json", filepath.Join(".cache", "bench.json"), "file for the figures as JSON")
	flags.StringVar(&b.steward, "steward", filepath.Join("bin", "steward"), "the command to measure")
	flags.StringVar(&b.postgres, "postgres", "",
		"measure on this PostgreSQL (postgres://user@host:port, password in PGPASSWORD); each section makes databases of its own")
	flags.BoolVar(&b.verbose, "verbose", false, "show the errors that servers and workers log; the measurements provoke some")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	wanted, err := regexp.Compile(*only)
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
	b.log()
	var failed error
	for _, s := range sections {
		if !wanted.MatchString(s.name) || ctx.Err() != nil {
			continue
		}
		began := time.Now()
		if err := s.measure(b, ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("section %s (-verbose shows the logs): %w", s.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s: %.0f s\n", s.name, time.Since(began).Seconds())
	}
	b.print(os.Stdout)
	return errors.Join(failed, b.write(*file))
}

// log sets what this process and its workers log.
func (b *bench) log() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if b.verbose {
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	}
}

// stderr is where processes that are started write their log.
func (b *bench) stderr() io.Writer {
	if b.verbose {
		return os.Stderr
	}
	return io.Discard
}

// report is the JSON file.
type report struct {
	At      time.Time `json:"at"`
	Mode    string    `json:"mode"`
	CPUs    int       `json:"cpus"`
	Go      string    `json:"go"`
	Seconds float64   `json:"seconds"`
	Rows    []Row     `json:"rows"`
}

func (b *bench) write(file string) error {
	r := report{
		At: b.began.UTC(), Mode: pick(b, "quick", "full"), CPUs: runtime.NumCPU(), Go: runtime.Version(),
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
