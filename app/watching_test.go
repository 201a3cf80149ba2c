package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/config"
	"keep-proxy/rules"
)

const watchedRule = `apiVersion: keep/v1
connector: things
version: 1
hosts: [things.test]
reads: safe-methods
operations:
  - {name: make, match: {method: POST, path: /things}, effect: deny}
`

// What a reload read may have been there for a moment only: before it the files were looked at,
// and after it they are as they were then.
func TestWhatWasThereForAMomentIsNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "connectors")
	write := func(file, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	rule, file := filepath.Join(folder, "things.yaml"), filepath.Join(dir, "config.yaml")
	write(rule, watchedRule)
	write(file, "proxy: {listen: [\"127.0.0.1:0\"]}\nadmin: {listen: \"127.0.0.1:0\"}\nledger: {dir: \""+filepath.Join(dir, "data")+
		"\", min_free: 1MiB}\nconnectors: {bundled: false, dirs: [\""+folder+"\"]}\n")
	load := func() (config.Config, error) { return config.Load(config.Options{File: file}) }
	c, err := load()
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), Options{Config: c, Log: zerolog.Nop(), Load: load, ConfigFile: file})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatching(a)
	if w == nil {
		t.Skip("this system doesn't tell of changes")
	}
	t.Cleanup(func() {
		if err := errors.Join(w.events.Close(), a.close()); err != nil {
			t.Error(err)
		}
	})
	for _, moment := range []string{strings.Replace(watchedRule, "effect: deny", "effect: read", 1), "apiVersion: keep/v1\n"} {
		write(rule, moment)
		_, _ = a.Reload(t.Context(), "test")
		write(rule, watchedRule)
		w.look(t.Context())
		if effect := a.rules.Load().Connector("things").Operation("make").Effect; effect != rules.EffectDeny {
			t.Errorf("%s is in force, which the files don't say", effect)
		}
		if last := a.reloads.latest(); last.Error != "" {
			t.Errorf("the files are sound, and the latest reload says %s", last.Error)
		}
	}
	// What can't be put in force is said once.
	write(rule, "apiVersion: keep/v1\n")
	w.look(t.Context())
	said := a.reloads.latest()
	if w.look(t.Context()); a.reloads.latest() != said || said.Error == "" {
		t.Errorf("said %+v, and then %+v", said, a.reloads.latest())
	}
}
