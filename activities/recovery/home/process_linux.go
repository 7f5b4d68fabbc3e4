package home

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// started is when a process began; empty when it is gone or only waits to be reaped.
func started(pid int) string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The command name in parentheses may hold anything; the fields behind it are plain.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19
	if len(fields) <= startTime || string(fields[state]) == "Z" || string(fields[state]) == "X" {
		return ""
	}
	return string(fields[startTime])
}

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
