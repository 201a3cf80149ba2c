package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	// Trace is a file that gets a line for each step.
	Trace string `json:"trace"`
	// Begun is a file: before it is there, steps are neither counted nor written down.
	Begun string `json:"begun"`
	// Kill names the step to kill at, "" for none.
	Kill string `json:"kill"`
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
	w := &watcher{passed: map[string]int{}}
	if err := json.Unmarshal([]byte(text), &w.watching); err != nil {
		return fmt.Errorf("%s: %w", watchVar, err)
	}
	trace, err := os.OpenFile(w.Trace, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	w.trace = trace
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
	mu     sync.Mutex
	trace  *os.File
	passed map[string]int
	// about is what the transaction that is being made durable is about.
	about []string
	// sending is what is being sent, next what will be.
	sending, next string
	begun         bool
}

func (w *watcher) step(s fault.Step) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.follow(s); err != nil {
		return err
	}
	if !w.begun {
		_, err := os.Stat(w.Begun)
		if w.begun = err == nil; !w.begun {
			return nil
		}
	}
	for _, name := range w.names(s) {
		w.passed[name]++
		name := fmt.Sprintf("%s #%d", name, w.passed[name])
		if _, err := fmt.Fprintln(w.trace, name); err != nil {
			return err
		}
		if name == w.Kill {
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

// names are those under which a step is known: a sync of the log or of the high-water
// file has one for each thing that the transaction is about.
func (w *watcher) names(s fault.Step) []string {
	var what string
	switch s.Op {
	case fault.OpPoint:
		// Those of the ledger's engine stand beside its syncs.
		if strings.HasPrefix(s.Name, "badgerstore.") {
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
	}
	what = map[bool]string{false: "before ", true: "after "}[s.Done] + what
	if base := filepath.Base(s.Name); s.Op != fault.OpSync || base != "highwater" && filepath.Ext(base) != ".mem" {
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

// class is a path without what differs from file to file.
func (w *watcher) class(path string) string {
	name, err := filepath.Rel(w.Ledger, path)
	if err != nil {
		return path
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
	case !s.Done || w.Shadow == "":
		return nil
	case s.Op == fault.OpSync:
		id, err := fileID(s.Name)
		if err != nil {
			return err
		}
		return copyData(s.Name, filepath.Join(w.Shadow, id))
	case s.Op == fault.OpSyncDir:
		return w.list(s.Name)
	}
	return nil
}

// list keeps the names of a folder.
func (w *watcher) list(dir string) error {
	names, err := namesIn(dir)
	if err != nil {
		return err
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	path := namesFile(w.Ledger, w.Shadow, dir)
	return errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
}

// namesFile holds the durable names of a folder of the ledger.
func namesFile(ledger, shadow, dir string) string {
	name, err := filepath.Rel(ledger, dir)
	if err != nil {
		name = dir
	}
	return filepath.Join(shadow, "names-"+strings.ReplaceAll(name, "/", "-"))
}

// namesIn are the files in a folder, each with its id.
func namesIn(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		id, err := fileID(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // Removed meanwhile.
		}
		if err != nil {
			return nil, err
		}
		names[e.Name()] = id
	}
	return names, nil
}

// fileID tells a file from every other, whatever its name, also from a later one that was
// given the same inode.
func fileID(path string) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &st); err != nil {
		return "", &os.PathError{Op: "statx", Path: path, Err: err}
	}
	return fmt.Sprintf("file-%d-%d-%d", st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}

// copyData copies a file that may be mostly holes.
func copyData(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	st, err := in.Stat()
	if err == nil {
		err = out.Truncate(st.Size())
	}
	for at := int64(0); err == nil && at < st.Size(); {
		var begin, end int64
		begin, err = unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			err = nil
			break
		}
		if err == nil {
			end, err = unix.Seek(int(in.Fd()), begin, unix.SEEK_HOLE)
		}
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, end-begin))
		}
		at = end
	}
	return errors.Join(err, out.Close())
}
