package supervisor

import "syscall"

// childAttributes put a child into its own process group and let the kernel kill it when the supervisor is gone. What
// the child itself has started is not covered, as when the child is killed by anyone else.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
