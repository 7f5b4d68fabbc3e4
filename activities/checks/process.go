package checks

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// killGrace is how long a process group has between the request to end and its end by force.
const killGrace = 2 * time.Second

// basicEnv is what every command sees of the worker's environment.
var basicEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
}

// environment is the allowed part of the worker's environment for a process in dir.
func environment(dir string, more ...string) []string {
	env := []string{"PWD=" + dir}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if slices.Contains(basicEnv, name) || slices.Contains(more, name) {
			env = append(env, entry)
		}
	}
	return env
}

// findProgram is the path of a program: on the PATH for a plain name, else relative to the folder it runs in.
func findProgram(name, dir string) (string, error) {
	if !strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	return exec.LookPath(name)
}

// process is one program to run without a shell.
type process struct {
	program string
	argv    []string
	dir     string
	env     []string
	// out takes standard output and standard error; errs takes standard error when it is set.
	out, errs io.Writer
}

// ended is how a process came to its end.
type ended struct {
	// exit is the exit code, or -1 when a signal ended it.
	exit   int
	signal string
}

// run runs a process in a process group of its own and ends what it leaves of that group. At the end of ctx the group is
// asked to end, and forced to after killGrace; the error then is that of ctx. A worker that dies takes the process with it
// where the system can do that.
func (p process) run(ctx context.Context) (ended, error) {
	// The request to die with the parent is bound to the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, p.program)
	cmd.Args, cmd.Dir, cmd.Env = p.argv, p.dir, p.env
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if p.errs != nil {
		cmd.Stderr = p.errs
	}
	cmd.SysProcAttr = groupOfItsOwn()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killGrace
	if err := cmd.Start(); err != nil {
		return ended{}, err
	}
	err := cmd.Wait()
	// What the program left behind in its group. The group id cannot have been given to others while one of it lives.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if ctx.Err() != nil {
		return ended{}, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return ended{}, err
	}
	end := ended{exit: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.signal = status.Signal().String()
	}
	return end, nil
}
