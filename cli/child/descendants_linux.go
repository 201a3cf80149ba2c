package child

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/internal/program"
)

// cgroup is a control group (version 2) of a command's own; nil is none. Whatever the command starts is in it, and
// can't leave without the right to write the tree.
type cgroup struct {
	path string
	dir  *os.File
}

// newCgroup makes a group below our own. It is nil without a tree of version 2, or without the right to write there.
// It is nil too on a kernel that can't kill a group (before 5.14).
func newCgroup() *cgroup {
	own := ownCgroup()
	if own == "" {
		return nil
	}
	sweepGroups(own)
	path, err := os.MkdirTemp(own, groupPrefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil
	}
	if unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK) == nil {
		if dir, err := os.Open(path); err == nil {
			return &cgroup{path, dir}
		}
	}
	_ = os.Remove(path)
	return nil
}

// groupPrefix begins the name of every group that is made; its maker's process id follows.
const groupPrefix = "keep-run-"

// sweepGroups removes empty groups whose makers were killed before they could. A maker that can't be seen from here
// and is just about to start its command does so without one.
func sweepGroups(own string) {
	entries, _ := os.ReadDir(own) // What can't be listed stays.
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix)
		word, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(word)
		if ours && err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			removeGroups(filepath.Join(own, e.Name())) // One that holds a process can't be removed.
		}
	}
}

// removeGroups removes a group and those inside, as far as they are empty. A run inside that was killed left its own.
func removeGroups(path string) {
	var inside []string
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			inside = append(inside, path)
		}
		return nil
	})
	for _, path := range slices.Backward(inside) {
		_ = os.Remove(path)
	}
}

// ownCgroup is the folder of the group in which this process is; empty for none.
func ownCgroup() string {
	content, _ := os.ReadFile("/proc/self/cgroup") // Who can't read it has none.
	for line := range strings.Lines(string(content)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return below(path)
		}
	}
	return ""
}

// below finds the group path, which counts from the mounted tree's root, in the file system.
func below(path string) string {
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // What can't be read has no tree.
	for line := range strings.Lines(string(mounts)) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if !ok || len(fields) < 5 || !strings.HasPrefix(after, "cgroup2 ") {
			continue
		}
		// A container may see a part of the tree only.
		rest, err := filepath.Rel(fields[3], path)
		if err == nil && (rest == "." || filepath.IsLocal(rest)) {
			return filepath.Join(fields[4], rest)
		}
	}
	return ""
}

// attributes makes a command start in the group.
func (g *cgroup) attributes(a *syscall.SysProcAttr) {
	if g != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(g.dir.Fd())
	}
}

// read reads one of the group's files; nothing without a group.
func (g *cgroup) read(name string) string {
	if g == nil {
		return ""
	}
	content, _ := os.ReadFile(filepath.Join(g.path, name)) // What can't be read holds nothing.
	return string(content)
}

// populated reports whether a process is left in the group.
func (g *cgroup) populated() bool { return strings.Contains(g.read("cgroup.events"), "populated 1") }

// killWait bounds the wait for what was killed: a process in uninterruptible sleep dies
// when it wakes.
const killWait = 10 * time.Second

// kill kills everything in the group, also what is being forked meanwhile.
func (g *cgroup) kill() {
	if g == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(g.path, "cgroup.kill"), []byte("1"), 0); err != nil {
		return
	}
	within(time.After(killWait), groupPoll, func() bool { return !g.populated() })
}

// remove removes the group. One in which a process is left stays until that ends, and is then an empty folder. Moving
// its processes would let them out.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	_ = g.dir.Close()
	if !g.populated() {
		removeGroups(g.path)
	}
}

// dieWithParent makes the kernel kill the command when the thread that started it ends. That is with this process, as
// that thread stays until the command's end.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// Confinement says how a stop finds what a command started, and whether all of it. A
// command is tried: some sandboxes let a group be made, and no process start in it.
func Confinement(try ...string) (how string, whole bool) {
	if g := newCgroup(); g != nil {
		defer g.remove()
		a := &syscall.SysProcAttr{}
		g.attributes(a)
		p, err := os.StartProcess(try[0], try, &os.ProcAttr{Sys: a})
		if err == nil {
			_, err = p.Wait()
		}
		if err == nil {
			return "by a control group, from which no descendant gets away", true
		}
	}
	return "by process group and adopted orphans; no control group can be had here", false
}

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
	entries, _ := os.ReadDir("/proc") // What can't be listed is not found.
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := look(pid); ok {
				found[pid] = p
			}
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

// none reports whether we have no children at all, living or ended. It needs no look at each process of the system.
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
	for word := range strings.FieldsSeq(p.cgroup.read("cgroup.procs")) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			ours[pid] = true
		}
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

// killStrays kills every child that wasn't there before, and its orphans in turn, which become ours when it dies. It
// doesn't wait for one of another user's rights (sudo, say), nor longer than killWait for one in uninterruptible
// sleep.
func killStrays(before map[int]bool, kill func(int, syscall.Signal) error) {
	kept := map[int]bool{}
	maps.Copy(kept, before)
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
	return within(time.After(killWait), reapPoll, func() bool {
		got, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		return got == pid || errors.Is(err, syscall.ECHILD)
	})
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
