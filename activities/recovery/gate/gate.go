// Package gate runs the commands of a release plan - the build, the static gates, the canaries - and keeps a receipt of each.
package gate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"steward/activities/checks"
	"steward/activities/recovery/durable"
	"steward/workflows/release/evidence"
)

// Command is one program with its arguments; no shell is involved.
type Command struct {
	Name string
	// Argv names the program: on the PATH, relative to Dir or absolute.
	Argv []string
	Dir  string
	// Env is the whole environment.
	Env     []string
	Timeout time.Duration
	// OutputDir keeps the output in a file named by its digest when it is set.
	OutputDir string
}

// Exit codes that are no proof in either direction, from sysexits.h.
const (
	exitNoData       = 66
	exitInconclusive = 75
)

// Codes of a receipt that did not pass.
const (
	CodeExit      = "exit"
	CodeSignal    = "signal"
	CodeTimedOut  = "timed_out"
	CodeCannotRun = "cannot_run"
)

// MaxOutput is how much of an output is kept, from its begin and its end together, in bytes. The digest covers all of it.
const MaxOutput = 1 << 20

// Run runs a command in a session of its own and ends what it leaves behind in its process group. The error is that of ctx, or
// of the disk; everything that the command did is in the receipt.
func (c Command) Run(ctx context.Context) (evidence.Receipt, error) {
	receipt := evidence.Receipt{Gate: c.Name, At: time.Now().UTC(), Outcome: evidence.Failed}
	out := &output{sum: sha256.New()}
	err := c.run(ctx, out, &receipt)
	if ctx.Err() != nil {
		return receipt, context.Cause(ctx)
	}
	kept := out.bytes()
	receipt.Digest = hex.EncodeToString(out.sum.Sum(nil))
	receipt.Line = checks.TellingLine(kept, receipt.Outcome != evidence.Passed)
	if err != nil {
		receipt.Line = checks.TellingLine([]byte(err.Error()), false)
	}
	if c.OutputDir != "" {
		if err := durable.WriteFile(filepath.Join(c.OutputDir, receipt.Digest), kept); err != nil {
			return receipt, err
		}
	}
	return receipt, nil
}

func (c Command) run(ctx context.Context, out io.Writer, receipt *evidence.Receipt) error {
	receipt.Code = CodeCannotRun
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("no command is given")
	}
	program, err := Find(c.Argv[0], c.Dir, c.Env)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, program)
	cmd.Args, cmd.Dir, cmd.Env = c.Argv, c.Dir, append([]string{}, c.Env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if limited.Err() != nil {
		receipt.Code = CodeTimedOut
		return fmt.Errorf("it took longer than %v", c.Timeout)
	}
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) && !errors.Is(err, exec.ErrWaitDelay) {
		return err
	}
	judge(receipt, cmd.ProcessState)
	return nil
}

// judge says what the end of a command proves.
func judge(receipt *evidence.Receipt, end *os.ProcessState) {
	receipt.ExitCode, receipt.Code = end.ExitCode(), CodeExit
	if status, ok := end.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		receipt.Code = CodeSignal
	}
	switch receipt.ExitCode {
	case 0:
		receipt.Outcome, receipt.Code = evidence.Passed, ""
	case exitNoData:
		receipt.Outcome = evidence.NoData
	case exitInconclusive:
		receipt.Outcome = evidence.Inconclusive
	}
}

// Find is the program that a name means: on the PATH of env for a plain name, else relative to dir.
func Find(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, runnable(name)
	}
	for _, entry := range slices.Backward(env) {
		if path, found := strings.CutPrefix(entry, "PATH="); found {
			for _, folder := range filepath.SplitList(path) {
				if program := filepath.Join(folder, name); filepath.IsAbs(folder) && runnable(program) == nil {
					return program, nil
				}
			}
			break
		}
	}
	return "", fmt.Errorf("there is no program %s on the PATH", name)
}

func runnable(program string) error {
	info, err := os.Stat(program)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("the program %s does not exist", program)
	case err != nil:
		return err
	case info.IsDir(), info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not an executable program", program)
	}
	return nil
}

// output takes an output and keeps its begin and its end.
type output struct {
	sum        hash.Hash
	head, tail bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.sum.Write(p)
	rest := p
	if room := MaxOutput/2 - o.head.Len(); room > 0 {
		n := min(room, len(rest))
		o.head.Write(rest[:n])
		rest = rest[n:]
	}
	o.tail.Write(rest)
	if extra := o.tail.Len() - MaxOutput/2; extra > 0 {
		o.tail.Next(extra)
	}
	return len(p), nil
}

func (o *output) bytes() []byte { return slices.Concat(o.head.Bytes(), o.tail.Bytes()) }
