package database

import (
	"os"
	"path/filepath"
	"strconv"
)

// openedBy is a process, other than this one, that has a file open; 0 when there is none.
func openedBy(path string) int {
	want, err := os.Stat(path)
	if err != nil {
		return 0
	}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return 0
	}
	for _, link := range links {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link))))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if info, err := os.Stat(link); err == nil && os.SameFile(info, want) {
			return pid
		}
	}
	return 0
}
