package service

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"steward/activities/recovery/home"
)

// Fields of /proc/PID/stat behind the command name.
const (
	fieldState   = 0
	fieldParent  = 1
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

// stat is one live process.
type stat struct {
	pid, parent, session int
	cpu                  time.Duration
}

// processes are all live processes.
func processes() map[int]stat {
	all := map[int]stat{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return all
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		fields := statFields(entry.Name())
		if fields == nil {
			continue
		}
		number := func(field int) int {
			n, err := strconv.Atoi(string(fields[field]))
			if err != nil {
				return 0
			}
			return n
		}
		used := time.Duration(number(fieldUser)+number(fieldSystem)) * tick
		all[pid] = stat{pid, number(fieldParent), number(fieldSession), used}
	}
	return all
}

// family are the live processes of a service: its leader, the session that it began, and their descendants.
func family(leader home.Process) []stat {
	if leader.PID <= 1 || home.ProcessOf(leader.PID).Boot != leader.Boot {
		return nil
	}
	if now := home.ProcessOf(leader.PID); now.Started != 0 && now != leader {
		return nil // the id was given to another process, so nothing of the old session is left
	}
	all := processes()
	var found []stat
	for _, p := range all {
		for at, depth := p, 0; at.pid > 1 && depth < len(all); at, depth = all[at.parent], depth+1 {
			if at.pid == leader.PID || at.session == leader.PID {
				found = append(found, p)
				break
			}
		}
	}
	return found
}

// members are the ids of the live processes of a service.
func members(leader home.Process) []int {
	var pids []int
	for _, p := range family(leader) {
		pids = append(pids, p.pid)
	}
	return pids
}

// listens tells whether one of the processes has the socket that takes connections on a TCP port.
func listens(pids []int, port int) bool {
	sockets := listeners(port)
	for _, pid := range pids {
		links, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
		if err != nil {
			continue
		}
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && sockets[target] {
				return true
			}
		}
	}
	return false
}

// listeners are the sockets that take connections on a TCP port, as links in /proc name them.
func listeners(port int) map[string]bool {
	const local, state, inode, listening = 1, 3, 9, "0A"
	found := map[string]bool{}
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) > inode && strings.HasSuffix(fields[local], suffix) && fields[state] == listening {
				found["socket:["+fields[inode]+"]"] = true
			}
		}
	}
	return found
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
	for _, p := range family(leader) {
		used += p.cpu
	}
	return used, nil
}
