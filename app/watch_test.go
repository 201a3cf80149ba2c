package app_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/app"
	"keep-proxy/config"
)

// reloaded asks until a reload has ended that fits.
func reloaded(t *testing.T, api *client.Client, fits func(wire.LastReload) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		st, err := api.Status(ctx)
		if err != nil {
			t.Fatalf("no such reload: %v", err)
		}
		if st.Reload != nil && fits(*st.Reload) {
			return
		}
		<-again.C
	}
}

func TestChangedFilesAreReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	file := filepath.Join(dir, "config.yaml")
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	write := func(name, text string) {
		t.Helper()
		// As most programs do: whole, in the place of what was there.
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{first, second} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	things := strings.Replace(reloadable, "EFFECT", "read", 1)
	write(filepath.Join(first, "things.yaml"), things)
	text := `proxy: {listen: ["127.0.0.1:0"]}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: "` + c.Ledger.Dir + `", min_free: 1MiB}
connectors: {dirs: [FOLDER]}
`
	write(file, strings.Replace(text, "FOLDER", first, 1))
	load := func() (config.Config, error) { return config.Load(config.Options{File: file}) }
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), app.Options{Config: loaded, Log: zerolog.Nop(), Load: load, Watch: true, ConfigFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	api := operatorOf(t, a)
	good := func(r wire.LastReload) bool { return r.Error == "" }

	write(filepath.Join(first, "things.yaml"), strings.Replace(things, "things.test", "other.test", 1))
	reloaded(t, api, good)

	write(filepath.Join(first, "broken.yaml"), "apiVersion: keep/v1\n")
	reloaded(t, api, func(r wire.LastReload) bool { return strings.Contains(r.Error, "broken.yaml") })
	if err := os.Remove(filepath.Join(first, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	reloaded(t, api, good)

	// A folder that the configuration names from now on is watched from now on.
	write(file, strings.Replace(text, "FOLDER", first+", "+second, 1)+"runs: {ttl: 5}\n")
	reloaded(t, api, func(r wire.LastReload) bool { return strings.Contains(r.Error, "runs.ttl") })
	write(file, strings.Replace(text, "FOLDER", first+", "+second, 1))
	reloaded(t, api, good)
	write(filepath.Join(second, "more.yaml"), "connector:")
	reloaded(t, api, func(r wire.LastReload) bool { return strings.Contains(r.Error, "more.yaml") })
}

// What changes while the program starts is not missed, however long that takes.
func TestWhatChangedBeforeItWasWatchedIsReloaded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	folder := t.TempDir()
	file := filepath.Join(folder, "things.yaml")
	things := strings.Replace(reloadable, "EFFECT", "read", 1)
	if err := os.WriteFile(file, []byte(things), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Connectors.Dirs, c.Proxy.UpstreamCA = []string{folder}, ""
	a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(things, "things.test", "other.test", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	reloaded(t, operatorOf(t, a), func(r wire.LastReload) bool { return r.Error == "" })
}

// afterReload takes one step after each reload, once that has been told of.
type afterReload struct {
	steps []func()
}

func (a *afterReload) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"message":"reloaded"`)) && len(a.steps) > 0 {
		step := a.steps[0]
		a.steps = a.steps[1:]
		step()
	}
	return len(line), nil
}

// A folder is watched from when what names it is in force, if not before: what changes in it
// then is not missed.
func TestANewFolderIsWatched(t *testing.T) {
	t.Parallel()
	for _, named := range []string{"before any is watched", "while it begins", "while it runs"} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			dir, first, other, folder := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
			c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
			file := filepath.Join(t.TempDir(), "config.yaml")
			write := func(name, text string) {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			name := func(folder string) {
				write(file, `proxy: {listen: ["127.0.0.1:0"]}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: "`+c.Ledger.Dir+`", min_free: 1MiB}
connectors: {dirs: [`+folder+`]}
`)
			}
			name(first)
			load := func() (config.Config, error) { return config.Load(config.Options{File: file}) }
			loaded, err := load()
			if err != nil {
				t.Fatal(err)
			}
			log := &afterReload{steps: []func(){func() { write(filepath.Join(folder, "more.yaml"), "connector:") }}}
			o := app.Options{Config: loaded, Log: zerolog.New(zerolog.SyncWriter(log)), Load: load, Watch: true, ConfigFile: file}
			switch named {
			case "before any is watched":
				name(folder)
			case "while it begins":
				var once sync.Once
				o.Load = func() (config.Config, error) {
					defer once.Do(func() { name(folder) })
					return load()
				}
			case "while it runs":
				name(other)
				log.steps = append([]func(){func() { name(folder) }}, log.steps...)
			}
			a, err := app.New(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stop(t, a) })
			reloaded(t, operatorOf(t, a), func(r wire.LastReload) bool { return strings.Contains(r.Error, "more.yaml") })
		})
	}
}
