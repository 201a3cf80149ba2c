package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"keep-proxy/integration/powerloss"
	"keep-proxy/internal/fault"
)

// watchVar tells the program what to write down of its steps towards durability, and at
// which of them to kill itself.
const watchVar = "KEEP_INTEGRATION_WATCH"

// watching is the content of watchVar.
type watching struct {
	// Ledger is the folder whose files are followed.
	Ledger string `json:"ledger"`
	// Shadow is a folder that holds what a loss of power would leave of them, "" for none.
	Shadow string `json:"shadow"`
	powerloss.Steps
	// Await is a file that has to be there first, "" for none.
	Await string `json:"await"`
}

// watch begins as the environment says. A step that can't be followed ends the process,
// since what it would show were not so.
func watch() error {
	text := os.Getenv(watchVar)
	if text == "" {
		return nil
	}
	w := &watcher{}
	if err := json.Unmarshal([]byte(text), &w.watching); err != nil {
		return fmt.Errorf("%s: %w", watchVar, err)
	}
	fault.Watch(func(s fault.Step) {
		if err := w.step(s); err != nil {
			fmt.Fprintln(os.Stderr, "watch:", err)
			os.Exit(1)
		}
	})
	return nil
}

// watcher follows the steps of a process.
type watcher struct {
	watching
	mu sync.Mutex
	// about is what the commit that is being made durable is about, nil beside commits.
	about []string
	// sending is what is being sent, next what will be.
	sending, next string
}

func (w *watcher) step(s fault.Step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.follow(s); err != nil {
		return err
	}
	for _, name := range w.names(s) {
		kill, err := w.Pass(name)
		if err != nil {
			return err
		}
		if kill {
			if err := w.await(); err != nil {
				return err
			}
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return nil
}

// await waits for the file that has to be there before the kill.
func (w *watcher) await() error {
	late := time.After(patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for w.Await != "" {
		if _, err := os.Stat(w.Await); err == nil {
			return nil
		}
		select {
		case <-late:
			return fmt.Errorf("%s never came", w.Await)
		case <-tick.C:
		}
	}
	return nil
}

// sendings are the points after which a sending follows, and what it is then; every other
// one is a read.
var sendings = map[string]string{
	"proxy.claimed": "mutation", "proxy.step_kept": "commit",
	"reconcilers.resend_recorded": "resend", "reconcilers.redispatch_recorded": "redispatch",
}

// point tells apart what is sent, as the points of a sending don't.
func (w *watcher) point(name string) string {
	if next, ok := sendings[name]; ok {
		w.next = next
	}
	if !strings.HasPrefix(name, "upstream.") {
		return name
	}
	if name == "upstream.before_byte_one" {
		w.sending, w.next = w.next, ""
		if w.sending == "" {
			w.sending = "read"
		}
	}
	return name + " of a " + w.sending
}

// names are those under which a step is known: a sync of the log that is made for a commit has one for each
// thing that the commit is about. Others, at start and at the end, have one of their own.
func (w *watcher) names(s fault.Step) []string {
	var what string
	switch s.Op {
	case fault.OpPoint:
		// Those of the ledger's engine stand beside its syncs.
		if strings.HasPrefix(s.Name, "badgerstore.") {
			if s.Name == "badgerstore.after_publish" {
				w.about = nil
			}
			return nil
		}
		return []string{w.point(s.Name)}
	case fault.OpCommit:
		w.about = strings.Split(s.Name, ",")
		return nil
	case fault.OpSync:
		what = "sync of " + w.class(s.Name)
	case fault.OpSyncDir:
		what = "sync of the folder " + w.class(s.Name)
	case fault.OpRename:
		what = "rename to " + w.class(s.Name)
	case fault.OpFold:
		what = folding
	}
	what = map[bool]string{false: "before ", true: "after "}[s.Done] + what
	base := filepath.Base(s.Name)
	if s.Op != fault.OpSync || len(w.about) == 0 || base != "log" {
		return []string{what}
	}
	names := make([]string, 0, len(w.about))
	for _, about := range w.about {
		if about == "" {
			about = "no event"
		}
		names = append(names, what+": "+about)
	}
	return names
}

// folding is a step that gives Badger a batch of what the log holds.
const folding = "a fold"

// above is the class of what lies above the ledger's folder.
const above = ".."

// class is a path without what differs from file to file.
func (w *watcher) class(path string) string {
	name, err := filepath.Rel(w.Ledger, path)
	if err != nil {
		return path
	}
	if strings.HasPrefix(name, above) {
		return above
	}
	dir, base := filepath.Split(name)
	switch {
	case filepath.Ext(base) == ".mem":
		base = "*.mem"
	case strings.HasPrefix(base, "in-"):
		base = "in-*"
	case strings.HasPrefix(base, ".new-"):
		base = ".new-*"
	case dir == "bodies/":
		base = "*"
	}
	return dir + base
}

// follow keeps in the shadow what this step made durable.
func (w *watcher) follow(s fault.Step) error {
	switch {
	case !s.Done || w.Shadow == "" || strings.HasPrefix(w.class(s.Name), above):
		return nil
	case s.Op == fault.OpSync:
		return powerloss.Shadow{Dir: w.Shadow}.Sync(s.Name)
	case s.Op == fault.OpSyncDir:
		return powerloss.Shadow{Dir: w.Shadow}.SyncDir(s.Name)
	}
	return nil
}
