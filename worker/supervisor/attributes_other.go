//go:build unix && !linux

package supervisor

import "syscall"

// childAttributes put a child into its own process group. Only Linux can tie its life to the supervisor's.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
