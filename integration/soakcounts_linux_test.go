package integration

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// counts are what a process uses up.
type counts struct {
	goroutines int
	// sockets, files and others are its descriptors: files are those of the ledger, which
	// grows.
	sockets, files, others int
	// anonymous is its RssAnon in bytes.
	anonymous int64
}

func (c counts) String() string {
	return fmt.Sprintf("%d goroutines, %d sockets, %d files of the ledger, %d other descriptors, RssAnon %.1f MiB",
		c.goroutines, c.sockets, c.files, c.others, mib(c.anonymous))
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
	c.goroutines = int(w.metric("go_goroutines"))
	return c
}

// metric asks the program for one of its metrics, over a connection that isn't kept.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(w.admin + "/metrics")
	if err != nil {
		w.t.Fatalf("the program's metrics: %v", err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			return value
		}
	}
	w.t.Fatalf("no metric %s", name)
	return 0
}
