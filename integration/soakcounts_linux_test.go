package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// count asks the program and /proc.
func (w *world) count() counts {
	w.t.Helper()
	c := counts{anonymous: w.rssAnon()}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.child.cmd.Process.Pid))
	if err != nil || len(links) == 0 {
		w.t.Skipf("not run: this system shows no descriptors in /proc: %v", err)
	}
	for _, link := range links {
		switch target, err := os.Readlink(link); {
		case err != nil:
			// Closed meanwhile.
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
