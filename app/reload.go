package app

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/fsnotify/fsnotify"
	"github.com/rs/zerolog"

	"keep-proxy/admin/wire"
	"keep-proxy/config"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// reloads remembers how the latest reload ended.
type reloads struct {
	// one lets reloads happen one after another.
	one sync.Mutex
	// connectors and log are what is in force of the configuration; a reload alone reads and writes them.
	connectors config.Connectors
	log        config.Log

	mu   sync.Mutex
	last *wire.LastReload
}

func (r *reloads) ended(at time.Time, err error) {
	last := &wire.LastReload{At: at}
	if err != nil {
		last.Error = err.Error()
	}
	r.mu.Lock()
	r.last = last
	r.mu.Unlock()
}

// latest is nil before the first reload.
func (r *reloads) latest() *wire.LastReload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Reload reads the configuration and the connector files again and puts log.level and what is below connectors in force.
// On any error, nothing changes and what was in force stays. Requests and runs that are under way continue. Each request meets
// one set of rules. Other keys that changed wait for a restart and are named.
func (a *App) Reload(ctx context.Context, actor string) (wire.Reloaded, error) {
	a.reloads.one.Lock()
	defer a.reloads.one.Unlock()
	out, err := a.reload(ctx)
	a.reloads.ended(a.clock.Now(), err)
	e := ledger.Event{Actor: actor, What: "reload", Why: "connectors: " + or(strings.Join(out.Connectors, ", "), "nothing changed")}
	if err != nil {
		e.What, e.Why = "reload_failed", err.Error()
		a.options.Log.Error().Err(err).Msg("reload failed; what was in force before stays in force")
	} else {
		a.options.Log.Info().Strs("connectors", out.Connectors).Strs("waiting", out.Waiting).Msg("reloaded")
		for _, key := range out.Waiting {
			a.options.Log.Warn().Str("key", key).Msg("a key that changed waits for a restart")
		}
	}
	a.ledger.Refuse(e)
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, err
}

// LogLevel is the level of a configuration; info if it says none.
func LogLevel(c config.Log) zerolog.Level {
	if level, err := zerolog.ParseLevel(string(c.Level)); err == nil && level != zerolog.NoLevel {
		return level
	}
	return zerolog.InfoLevel
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// reload is Reload without telling anybody.
func (a *App) reload(ctx context.Context) (wire.Reloaded, error) {
	out := wire.Reloaded{Connectors: []string{}, Waiting: []string{}, Findings: []string{}}
	r, err := a.readAgain()
	if err != nil {
		return out, err
	}
	changes, err := a.changeAdvice(ctx, a.rules.Load(), r.set)
	if err != nil {
		a.options.Log.Warn().Err(err).Msg("what the changed connectors leave behind isn't known")
	}
	for _, f := range changes {
		a.options.Log.Warn().Msg(f.String())
	}
	for _, f := range append(r.findings, changes...) {
		out.Findings = append(out.Findings, f.String())
	}
	out.Waiting = append(out.Waiting, r.waiting...)
	out.Connectors = append(out.Connectors, r.changed...)
	a.reloads.connectors = r.connectors
	if a.reloads.log.Level != r.log.Level && a.options.SetLevel != nil {
		a.options.SetLevel(LogLevel(r.log))
	}
	a.reloads.log = r.log
	a.credentials.use(r.connectors, r.set)
	a.versions.use(RuleSettings(r.connectors))
	a.rules.Store(r.set)
	a.proxy.Reloaded()
	return out, nil
}

// readable is what the files say, and what of it is other than what is in force.
type readable struct {
	connectors config.Connectors
	log        config.Log
	set        *rules.Set
	findings   rules.Findings
	// changed are connectors, waiting other keys.
	changed, waiting []string
}

// readAgain reads what could be put in force.
func (a *App) readAgain() (out readable, err error) {
	next := a.config
	if a.options.Load != nil {
		if next, err = a.options.Load(); err != nil {
			return out, fmt.Errorf("configuration: %w", err)
		}
	}
	c := a.config.WithConnectors(next)
	if out.set, out.findings, err = LoadRules(c, true); err != nil {
		return out, err
	}
	if out.set == nil {
		return out, fmt.Errorf("connectors: %w", out.findings)
	}
	before := a.config
	before.Log.Level, before.Isolate = next.Log.Level, next.Isolate // Each run reads isolate for itself.
	out.findings = append(out.findings, SecretAdvice(c)...)
	out.connectors, out.log, out.waiting = c.Connectors, next.Log, changedKeys(before, next)
	out.changed = changedConnectors(a.rules.Load(), out.set, changedSettings(a.reloads.connectors.Settings, c.Connectors.Settings))
	return out, nil
}

// stale reports whether the files differ from what is in force, or from what the latest reload said of them.
func (a *App) stale() bool {
	a.reloads.one.Lock()
	defer a.reloads.one.Unlock()
	said := ""
	if last := a.reloads.latest(); last != nil {
		said = last.Error
	}
	r, err := a.readAgain()
	if err != nil {
		return said != err.Error()
	}
	return said != "" || len(r.changed) > 0 || r.log.Level != a.reloads.log.Level || !reflect.DeepEqual(r.connectors, a.reloads.connectors)
}

// changedSettings tells of which connectors the settings differ.
func changedSettings(before, after []config.ConnectorSettings) map[string]bool {
	changed := map[string]bool{}
	of := func(list []config.ConnectorSettings, name string) (out config.ConnectorSettings) {
		if i := slices.IndexFunc(list, func(s config.ConnectorSettings) bool { return s.Connector == name }); i >= 0 {
			out = list[i]
		}
		return out
	}
	for _, s := range slices.Concat(before, after) {
		changed[s.Connector] = !reflect.DeepEqual(of(before, s.Connector), of(after, s.Connector))
	}
	return changed
}

// changedConnectors names those that came, went, or have another file, hosts or settings.
func changedConnectors(before, after *rules.Set, settings map[string]bool) []string {
	var names []string
	for _, c := range after.Heads() {
		if old := before.Head(c.Name); old == nil || old.Hash != c.Hash || !slices.Equal(old.Hosts, c.Hosts) || settings[c.Name] {
			names = append(names, c.Name)
		}
	}
	for _, c := range before.Heads() {
		if after.Head(c.Name) == nil {
			names = append(names, c.Name+" (gone)")
		}
	}
	slices.Sort(names)
	return names
}

// changedKeys names the keys that differ, but for those below connectors.
func changedKeys(before, after config.Config) []string {
	var keys []string
	a, b := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range a.NumField() {
		section := a.Type().Field(i)
		if section.Name == "Connectors" || !section.IsExported() {
			continue
		}
		x, y := a.Field(i), b.Field(i)
		if x.Kind() != reflect.Struct {
			if !reflect.DeepEqual(x.Interface(), y.Interface()) {
				keys = append(keys, keyName(section.Name))
			}
			continue
		}
		for j := range x.NumField() {
			key := x.Type().Field(j)
			if key.IsExported() && !reflect.DeepEqual(x.Field(j).Interface(), y.Field(j).Interface()) {
				keys = append(keys, keyName(section.Name)+"."+keyName(key.Name))
			}
		}
	}
	return keys
}

// keyName is a field's name as a key: MaxBody is max_body, UpstreamCA upstream_ca.
func keyName(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && !unicode.IsUpper(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// A change is looked at once nothing has changed for watchQuiet, and at the latest after watchLongest. Editors and
// deployments write in several steps.
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

// look reloads what is other than before. A reload may have read what was there for a moment only, after this had
// looked. Then the content is as before, and isn't what is in force.
func (w *watching) look(ctx context.Context) {
	if now := w.read(); now != w.seen || w.app.stale() {
		w.seen = now
		// How it went is logged, and told by status.
		_, _ = w.app.Reload(ctx, "watch")
	}
}

// read follows the folders that are named now, and tells what they hold after that. Later changes are told of, and
// earlier ones are read.
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
