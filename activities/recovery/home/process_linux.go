package home

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
)

// started is when a process began; 0 when it is gone or only waits to be reaped.
func started(pid int) int64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The command name in parentheses may hold anything; the fields behind it are plain.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19
	if len(fields) <= startTime || string(fields[state]) == "Z" || string(fields[state]) == "X" {
		return 0
	}
	ticks, err := strconv.ParseInt(string(fields[startTime]), 10, 64)
	if err != nil {
		return 0
	}
	return ticks
}

var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})
