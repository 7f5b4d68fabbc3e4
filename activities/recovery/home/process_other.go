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

// started is when a process began; 0 when it is gone or only waits to be reaped.
func started(pid int) int64 {
	state, start, _ := strings.Cut(output("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)), " ")
	if state == "" || strings.HasPrefix(state, "Z") {
		return 0
	}
	at, err := time.ParseInLocation(time.ANSIC, strings.TrimSpace(start), time.Local)
	if err != nil {
		return 0
	}
	return at.Unix()
}

var bootID = sync.OnceValue(func() string { return output("sysctl", "-n", "kern.boottime") })

func output(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
