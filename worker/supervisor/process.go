package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runOnce runs the child until it ends and returns how it ended. Cancelling ctx stops it: SIGTERM to the child, SIGKILL
// after StopTimeout. Whatever it leaves in its process group is killed. onReady is called at most once, from here.
func (k *keeper) runOnce(ctx context.Context, onReady func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	p, err := k.start(ctx)
	if err != nil {
		return err
	}
	readyCtx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	ready := make(chan error, 1)
	go func() { ready <- k.awaitReady(readyCtx) }()

	select {
	case err = <-p.exited:
		ended(errors.New("it has ended"))
		<-ready
		return err
	case err = <-ready:
	}
	if err == nil {
		k.log.Info("ready", "pid", p.pid)
		onReady()
		return <-p.exited
	}
	stop()
	return errors.Join(err, <-p.exited)
}

// process is one run of a child.
type process struct {
	pid int
	// exited gets the exit status once.
	exited chan error
}

// start runs the child in its own process group until it ends or ctx does.
func (k *keeper) start(ctx context.Context) (*process, error) {
	output, err := openOutput(k.out, k.child, k.log)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, k.exe, k.child.Args...)
	cmd.Env = append([]string{}, k.child.Env...)
	cmd.Stdout, cmd.Stderr = output.pipe, output.pipe
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = k.child.StopTimeout

	p := &process{exited: make(chan error, 1)}
	started := make(chan error)
	go func() {
		// The death signal of childAttributes is bound to the thread that starts the child, so the thread has to live on.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			output.close()
			started <- err
			return
		}
		started <- nil
		err := cmd.Wait()
		killGroup(cmd.Process)
		output.close()
		p.exited <- exitStatus(cmd, err)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	k.log.Debug("started", "pid", p.pid)
	return p, nil
}

// exitStatus describes the end of a process, also a successful one: children are not meant to end.
func exitStatus(cmd *exec.Cmd, err error) error {
	if cmd.ProcessState == nil {
		return err
	}
	return fmt.Errorf("process %d: %s", cmd.ProcessState.Pid(), cmd.ProcessState)
}

// killGroup ends what a child has left behind. The group carries the child's pid, which the kernel does not give to
// another process while the group has members.
func killGroup(leader *os.Process) {
	_ = syscall.Kill(-leader.Pid, syscall.SIGKILL)
}
