package child

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/internal/program"
)

// maxGenerations bounds how often orphans of killed strays are looked for.
const maxGenerations = 1000

// adopt makes orphans of our children ours, where the kernel allows it.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// process is one of the system's, as /proc shows it.
type process struct {
	parent, group int
	// ended says that only its parent's look at it is missing.
	ended bool
}

// processes lists the system's.
func processes() map[int]process {
	found := map[int]process{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return found
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := look(pid); ok {
			found[pid] = p
		}
	}
	return found
}

// look reads about a process. The name in front of the rest is in parentheses, and may
// hold some itself.
func look(pid int) (p process, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return p, false
	}
	p.ended = bytes.ContainsAny(fields[0], "ZX")
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	return p, true
}

// children lists our own children, but for those that another part of this process waits
// for (internal/program).
func children() map[int]bool {
	found := map[int]bool{}
	if none() {
		return found
	}
	program.Apart(func(own func(int) bool) {
		self := os.Getpid()
		for pid, p := range processes() {
			if p.parent == self && !own(pid) {
				found[pid] = true
			}
		}
	})
	return found
}

// none reports whether we have no children at all, living or ended, without a look at each
// process of the system.
func none() bool {
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

// outside lists what lives of the command's descendants that left its group.
func (p *Process) outside() []int {
	all, ours := processes(), children()
	for pid := range p.before {
		delete(ours, pid)
	}
	for _, pid := range p.cgroup.members() {
		ours[pid] = true
	}
	descends := func(pid int) bool {
		for range all {
			if ours[pid] {
				return true
			}
			pid = all[pid].parent
		}
		return false
	}
	var out []int
	for pid, at := range all {
		if at.group != p.pid && pid != p.pid && !at.ended && descends(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// killStrays kills every child that wasn't there before, and its orphans in turn,
// which become ours when it dies. It waits for those that may be killed, and not for one
// that has another user's rights (sudo, say), nor longer than killWait for one in
// uninterruptible sleep.
func killStrays(before map[int]bool, kill func(int, syscall.Signal) error) {
	kept := maps.Clone(before)
	if kept == nil {
		kept = map[int]bool{}
	}
	for range maxGenerations {
		found := false
		for pid := range children() {
			if kept[pid] {
				continue
			}
			found = true
			if errors.Is(kill(pid, syscall.SIGKILL), syscall.EPERM) || !reaped(pid) {
				kept[pid] = true
			}
		}
		if !found {
			return
		}
	}
}

// reaped waits for the end of a child that was killed.
func reaped(pid int) bool {
	poll := time.NewTicker(reapPoll)
	defer poll.Stop()
	for over := time.After(killWait); ; {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		if got == pid || errors.Is(err, syscall.ECHILD) {
			return true
		}
		select {
		case <-over:
			return false
		case <-poll.C:
		}
	}
}

// reapPoll is how often a child that was killed is looked at.
const reapPoll = time.Millisecond

// reapStrays lets ended orphans go.
func reapStrays(before map[int]bool) {
	for pid := range children() {
		if !before[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}
