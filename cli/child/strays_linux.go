package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxGenerations bounds how often orphans of killed strays are looked for.
const maxGenerations = 1000

// adopt makes orphans of our children ours, where the kernel allows it.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// children lists our own children.
func children() map[int]bool {
	found := map[int]bool{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	self := os.Getpid()
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && parentOf(pid) == self {
			found[pid] = true
		}
	}
	return found
}

// parentOf reads a process's parent, 0 if it has gone. The name in front of it is
// in parentheses, and may hold some itself.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// killStrays kills every child that wasn't there before, and its orphans in turn,
// which become ours when it dies.
func killStrays(before map[int]bool) {
	for range maxGenerations {
		found := false
		for pid := range children() {
			if before[pid] {
				continue
			}
			found = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
		if !found {
			return
		}
	}
}

// reapStrays lets ended orphans go.
func reapStrays(before map[int]bool) {
	for pid := range children() {
		if !before[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}
