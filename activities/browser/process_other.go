//go:build !linux

package browser

import (
	"os/exec"
	"strconv"
	"strings"
)

// started is when a process began, in the spelling of ps; empty when it is gone or only waits to be reaped.
func started(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, begin, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || strings.HasPrefix(state, "Z") {
		return ""
	}
	return strings.TrimSpace(begin)
}
