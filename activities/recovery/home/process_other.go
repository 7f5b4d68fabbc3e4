//go:build unix && !linux

package home

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// started is when a process began, in the spelling of ps; empty when it is gone or only waits to be reaped.
func started(pid int) string {
	out := output("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid))
	if out == "" || strings.HasPrefix(out, "Z") {
		return ""
	}
	_, start, _ := strings.Cut(out, " ")
	return strings.TrimSpace(start)
}

var bootID = sync.OnceValue(func() string { return output("sysctl", "-n", "kern.boottime") })

func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
