package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A change is looked at once nothing has changed for watchQuiet, since editors and
// deployments write in several steps, and at the latest after watchLongest.
const (
	watchQuiet   = 300 * time.Millisecond
	watchLongest = 3 * time.Second
)

// watching reloads when the configuration's file or a connector file has other content
// than before. Folders are watched, not files: most programs replace a file, and Kubernetes
// a link to its folder.
type watching struct {
	app    *App
	events *fsnotify.Watcher
	// seen is the content that was read last, also if it could not be put in force.
	seen [sha256.Size]byte
	dirs []string
}

// newWatching begins to watch. A system that can't tell of changes is no reason not to
// serve: SIGHUP reloads too. Then it returns nil.
func newWatching(a *App) *watching {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		a.options.Log.Warn().Err(err).Msg("files aren't watched; send SIGHUP after a change")
		return nil
	}
	w := &watching{app: a, events: events, dirs: a.config.Connectors.Dirs}
	w.seen = w.read()
	return w
}

// run reloads after changes, until ctx ends.
func (w *watching) run(ctx context.Context) {
	defer func() { _ = w.events.Close() }()
	if w.app.stale() {
		// It changed after it was read, and before it was watched.
		_, _ = w.app.Reload(ctx, "watch")
		w.look(ctx)
	}
	for w.next(ctx) {
		w.look(ctx)
	}
}

// look reloads what is other than before. A reload may have read what was there for a moment
// only, after this had looked: then the content is as before, and isn't what is in force.
func (w *watching) look(ctx context.Context) {
	if now := w.read(); now != w.seen || w.app.stale() {
		w.seen = now
		// How it went is logged, and told by status.
		_, _ = w.app.Reload(ctx, "watch")
	}
}

// read follows the folders that are named now, and tells what they hold after that: what
// changes from then on is told of, and what changed before is read.
func (w *watching) read() [sha256.Size]byte {
	_ = w.content() // It says which folders are named.
	w.follow()
	return w.content()
}

// next waits for a change and then for quiet; it is false when ctx has ended.
func (w *watching) next(ctx context.Context) bool {
	var quiet, longest <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case e, open := <-w.events.Events:
			if !open {
				return false
			}
			if e.Op == fsnotify.Chmod {
				continue
			}
		case err, open := <-w.events.Errors:
			if !open {
				return false
			}
			// Events may have been lost: what they would have told is looked at.
			w.app.options.Log.Warn().Err(err).Msg("watching files")
		case <-quiet:
			return true
		case <-longest:
			return true
		}
		quiet = time.After(watchQuiet)
		if longest == nil {
			longest = time.After(watchLongest)
		}
	}
}

// follow watches the folders that hold what would be loaded now. One that is gone is
// tried again at the next change of another.
func (w *watching) follow() {
	dirs := w.dirs
	if file := w.app.options.ConfigFile; file != "" {
		dirs = append([]string{filepath.Dir(file)}, dirs...)
	}
	for _, dir := range dirs {
		if err := w.events.Add(dir); err != nil {
			w.app.options.Log.Warn().Err(err).Str("folder", dir).Msg("a folder isn't watched; send SIGHUP after a change in it")
		}
	}
}

// content is the digest of all that a reload would read. What can't be read counts by its
// error, so that its coming back is a change.
func (w *watching) content() [sha256.Size]byte {
	h := sha256.New()
	next := w.app.config
	if file := w.app.options.ConfigFile; file != "" {
		if text, err := os.ReadFile(file); err == nil {
			_, _ = fmt.Fprintf(h, "configuration %d\n%s", len(text), text)
		} else {
			_, _ = fmt.Fprintf(h, "configuration %v\n", err)
		}
	}
	if w.app.options.Load != nil {
		loaded, err := w.app.options.Load()
		if err != nil {
			return sum(h, err)
		}
		next, w.dirs = loaded, loaded.Connectors.Dirs
	}
	files, missing, err := ConnectorFiles(next.Connectors)
	for _, f := range files {
		_, _ = fmt.Fprintf(h, "%q %d\n%s", f.Name, len(f.Data), f.Data)
	}
	for _, f := range missing {
		_, _ = fmt.Fprintf(h, "missing %q\n", f.String())
	}
	return sum(h, err)
}

// sum is the digest, with what went wrong.
func sum(h hash.Hash, err error) [sha256.Size]byte {
	if err != nil {
		_, _ = fmt.Fprintf(h, "error %v", err)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
