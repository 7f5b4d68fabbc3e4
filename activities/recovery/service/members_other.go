//go:build unix && !linux

package service

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"steward/activities/recovery/home"
)

// members are the live processes of the group of a service.
func members(leader home.Process) []int {
	if leader.PID <= 1 {
		return nil
	}
	if now := home.ProcessOf(leader.PID); now.Boot != leader.Boot || now.Started != 0 && now != leader {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-axo", "pid=,pgid=,stat=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[1] != strconv.Itoa(leader.PID) || strings.HasPrefix(fields[2], "Z") {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// holders cannot be found here; a process that left the group keeps the service from being proven stopped.
func holders(string) []int { return nil }

// listens cannot be asked here; readiness and the identity of the process have to do.
func listens([]int, int) bool { return true }

// CPU cannot be measured here.
func CPU(home.Process) (time.Duration, error) {
	return 0, errors.New("the processor time of a service can only be measured on Linux")
}
