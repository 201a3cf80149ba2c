package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// counts are what a process uses up.
type counts struct {
	goroutines int
	// sockets, files and others are its descriptors: files are those of the ledger, which
	// grows.
	sockets, files, others int
	// anonymous is its RssAnon, and heap what of its heap is in use, in bytes.
	anonymous, heap int64
}

func (c counts) String() string {
	return fmt.Sprintf("%d goroutines, %d sockets, %d files of the ledger, %d other descriptors, RssAnon %.1f MiB (heap %.1f MiB)",
		c.goroutines, c.sockets, c.files, c.others, mib(c.anonymous), mib(c.heap))
}

// descriptors are what those of the program stand for; none once it is gone.
func (w *world) descriptors() []string {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.child.cmd.Process.Pid))
	targets := make([]string, 0, len(links))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil { // Else it was closed meanwhile.
			targets = append(targets, target)
		}
	}
	return targets
}

// memTable is the memory table of the ledger's engine that is in use, and how many bytes of
// its log were written. Each has a log of its own, NNNNN.mem, which is as long as it may
// get from its beginning.
type memTable struct {
	number  int
	written int64
}

func (t memTable) String() string {
	return fmt.Sprintf("%d, of which %.1f MiB are written", t.number, mib(t.written))
}

// table looks at the logs that the program has open.
func (w *world) table() memTable {
	var now memTable
	for _, target := range w.descriptors() {
		name, ok := strings.CutSuffix(filepath.Base(target), ".mem")
		n, err := strconv.Atoi(name)
		if !ok || err != nil || n <= now.number {
			continue
		}
		var log unix.Stat_t
		if unix.Stat(target, &log) == nil { // Else it is gone by now.
			const block = 512 // stat(2)
			now = memTable{number: n, written: log.Blocks * block}
		}
	}
	return now
}

// count asks the program and /proc.
func (w *world) count() counts {
	w.t.Helper()
	c := counts{anonymous: w.rssAnon()}
	targets := w.descriptors()
	if len(targets) == 0 {
		w.t.Skip("not run: this system shows no descriptors in /proc")
	}
	for _, target := range targets {
		switch {
		case strings.HasPrefix(target, "socket:"):
			c.sockets++
		case strings.HasPrefix(target, w.settings.Dir):
			c.files++
		default:
			c.others++
		}
	}
	c.goroutines = int(w.metric(w.admin, "go_goroutines"))
	c.heap = int64(w.metric(w.admin, "go_memstats_heap_alloc_bytes"))
	return c
}
