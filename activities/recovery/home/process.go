package home

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Process names one process for ever: a process id alone is used again, also after the machine was started again.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time: clock ticks since boot on Linux, else seconds since 1970; 0 when the process is gone.
	Started int64 `json:"started"`
	// Boot is the boot of the machine; empty where the system does not tell.
	Boot string `json:"boot,omitempty"`
}

// ThisProcess is the identity of the caller.
func ThisProcess() Process { return ProcessOf(os.Getpid()) }

// ProcessOf is the identity of the process that has the id now. Started is 0 when there is none.
func ProcessOf(pid int) Process {
	return Process{PID: pid, Started: started(pid), Boot: bootID()}
}

// Lives tells whether it is still that process. One that only waits to be reaped has stopped.
func (p Process) Lives() bool {
	if p.PID <= 1 || p.Started == 0 {
		return false
	}
	if err := unix.Kill(p.PID, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return false
	}
	return ProcessOf(p.PID) == p
}
