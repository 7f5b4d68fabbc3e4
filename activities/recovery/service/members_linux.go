package service

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"steward/activities/recovery/home"
)

// Fields of /proc/PID/stat behind the command name.
const (
	fieldState   = 0
	fieldSession = 3
	fieldUser    = 11
	fieldSystem  = 12
	fieldStart   = 19
)

// statFields are the fields behind the command name, which may hold anything.
func statFields(pid string) [][]byte {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= fieldStart || string(fields[fieldState]) == "Z" || string(fields[fieldState]) == "X" {
		return nil
	}
	return fields
}

// inSession calls f with every live process of the session that leader began.
func inSession(leader home.Process, f func(pid int, fields [][]byte)) {
	if leader.PID <= 1 || home.ProcessOf(leader.PID).Boot != leader.Boot {
		return
	}
	if now := home.ProcessOf(leader.PID); now.Started != 0 && now != leader {
		return // the id was given to another process, so nothing of the old session is left
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	session := strconv.Itoa(leader.PID)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if fields := statFields(entry.Name()); fields != nil && string(fields[fieldSession]) == session {
			f(pid, fields)
		}
	}
}

// members are the live processes of the session of a service.
func members(leader home.Process) []int {
	var pids []int
	inSession(leader, func(pid int, _ [][]byte) { pids = append(pids, pid) })
	return pids
}

// holders are the processes that have the file open: what left the session of a service and lives on.
func holders(path string) []int {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	var pids []int
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != path {
			continue
		}
		name := filepath.Base(filepath.Dir(filepath.Dir(link)))
		if pid, err := strconv.Atoi(name); err == nil && name != self {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tick is the unit of CPU times in /proc; Linux reports in 1/100 s everywhere.
const tick = 10 * time.Millisecond

// CPU is the processor time that the live processes of a service have used.
func CPU(leader home.Process) (time.Duration, error) {
	if !leader.Lives() {
		return 0, errors.New("the service does not run")
	}
	var used time.Duration
	inSession(leader, func(_ int, fields [][]byte) {
		for _, field := range []int{fieldUser, fieldSystem} {
			n, err := strconv.ParseInt(string(fields[field]), 10, 64)
			if err == nil {
				used += time.Duration(n) * tick
			}
		}
	})
	return used, nil
}
