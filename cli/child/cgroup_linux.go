package child

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is a control group (version 2) of a command's own: whatever the command starts is
// in it, and can't leave without the right to write the tree. nil is none.
type cgroup struct {
	path string
	dir  *os.File
}

// newCgroup makes a group below our own, nil where that can't be had: without a tree of
// version 2, without the right to write there, or on a kernel that can't kill a group
// (before 5.14).
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
	dir, err := os.Open(path)
	if err == nil {
		err = unix.Access(filepath.Join(path, "cgroup.kill"), unix.W_OK)
	}
	if err != nil {
		if dir != nil {
			_ = dir.Close()
		}
		_ = os.Remove(path)
		return nil
	}
	return &cgroup{path, dir}
}

// groupPrefix begins the name of every group that is made; its maker's process id follows.
const groupPrefix = "keep-run-"

// sweepGroups removes empty groups whose makers were killed before they could. A maker that
// can't be seen from here and is just about to start its command does so without one.
func sweepGroups(own string) {
	entries, err := os.ReadDir(own)
	if err != nil {
		return
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), groupPrefix)
		word, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(word)
		if !ours || err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		// One that holds a process can't be removed.
		removeGroups(filepath.Join(own, e.Name()))
	}
}

// removeGroups removes a group and those inside, as far as they are empty: a run inside that
// was killed left its own.
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
	content, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return below(path)
		}
	}
	return ""
}

// below finds the group path, which counts from the mounted tree's root, in the file system.
func below(path string) string {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = mounts.Close() }()
	for s := bufio.NewScanner(mounts); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
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

// members are the processes in the group.
func (g *cgroup) members() []int {
	if g == nil {
		return nil
	}
	content, err := os.ReadFile(filepath.Join(g.path, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var out []int
	for word := range strings.FieldsSeq(string(content)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			out = append(out, pid)
		}
	}
	return out
}

// populated reports whether a process is left in the group.
func (g *cgroup) populated() bool {
	if g == nil {
		return false
	}
	content, err := os.ReadFile(filepath.Join(g.path, "cgroup.events"))
	return err == nil && bytes.Contains(content, []byte("populated 1"))
}

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
	poll := time.NewTicker(groupPoll)
	defer poll.Stop()
	for over := time.After(killWait); g.populated(); {
		select {
		case <-over:
			return
		case <-poll.C:
		}
	}
}

// remove lets the group go. One in which a process is left stays until its end, and is
// then an empty folder; moving its processes would let them out.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	_ = g.dir.Close()
	if g.populated() {
		return
	}
	removeGroups(g.path)
}

// dieWithParent makes the kernel kill the command when the thread that started it ends:
// with this process, as that thread stays until the command's end.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// Confinement says how a stop finds what a command started, and whether all of it. A
// command is tried: some sandboxes let a group be made, and no process start in it.
func Confinement(try ...string) (how string, whole bool) {
	if g := newCgroup(); g != nil {
		defer g.remove()
		a := &syscall.SysProcAttr{}
		g.attributes(a)
		if p, err := os.StartProcess(try[0], try, &os.ProcAttr{Sys: a}); err == nil {
			_, err = p.Wait()
			if err == nil {
				return "by a control group, from which no descendant gets away", true
			}
		}
	}
	return "by process group and adopted orphans; no control group can be had here", false
}
