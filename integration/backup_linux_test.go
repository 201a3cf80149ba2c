package integration

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"keep-proxy/integration/powerloss"
)

// TestABackupHoldsWhatOnlyTheLogHas backs a ledger up while nothing was folded, and others come in. Restored into a fresh folder,
// it replays all that was answered before.
func TestABackupHoldsWhatOnlyTheLogHas(t *testing.T) {
	t.Parallel()
	w := prepare(t, crashing)
	trace, begun := filepath.Join(w.settings.Dir, "trace"), filepath.Join(w.settings.Dir, "begun")
	x := &crash{world: w, watching: watching{
		Ledger: filepath.Join(w.settings.Dir, "state", "ledger"), Steps: powerloss.Steps{Trace: trace, Begun: begun},
	}}
	x.mustSpawnWatched()
	x.begin()
	// The long one lies in a file of its own.
	ask := func(item string, extra map[string]any) reply {
		members := map[string]any{"reference": item}
		maps.Copy(members, extra)
		return w.open(item, inWorkflow(item), takeover).do(http.MethodPost, w.probed.URL()+"/transfers", orderOf(members))
	}
	long := map[string]any{"note": note}
	firsts := map[string]reply{}
	for n := range 6 {
		item := fmt.Sprint("before-", n)
		firsts[item] = ask(item, nil).wantApplied(http.StatusCreated)
	}
	firsts["long"] = ask("long", long).wantApplied(http.StatusCreated)
	// Others come in while it is written.
	stop, stopped := make(chan struct{}), make(chan error, 1)
	going := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			run, err := w.tryOpen(fmt.Sprint("meanwhile-", n))
			if err != nil {
				stopped <- err
				return
			}
			if a := run.try(t.Context(), http.MethodPost, w.hooks.URL()+"/hook/plain/"+fmt.Sprint(n), "hello"); a.err != nil {
				stopped <- a.err
				return
			}
			if n == 0 {
				close(going)
			}
		}
	}()
	<-going
	var backup bytes.Buffer
	_, err := w.api.BackupLedger(t.Context(), &backup)
	if close(stop); errors.Join(err, <-stopped) != nil {
		t.Fatal(err)
	}
	steps := x.steps()
	if len(steps) == 0 {
		t.Error("no step was followed: this shows nothing")
	}
	since := time.Now().UTC()
	w.child.kill()
	w.quiet()
	// As docs/backup.md has it.
	if err := errors.Join(os.Rename(x.watching.Ledger, x.watching.Ledger+".lost"), untar(&backup, x.state())); err != nil {
		t.Fatal(err)
	}
	w.environment = []string{restoredVar + "=" + since.Format(time.RFC3339)}
	w.mustSpawn()
	if report, err := w.api.VerifyLedger(t.Context(), nil); err != nil || !report.Sound {
		t.Errorf("the restored ledger: %+v, %v", report, err)
	}
	for item, first := range firsts {
		extra := map[string]any(nil)
		if item == "long" {
			extra = long
		}
		ask(item, extra).wantReplay(first)
		w.probed.want("transfer:"+item, 1, 1)
	}
	if err := w.child.end(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// untar lays the files of an archive below dir.
func untar(r io.Reader, dir string) error {
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		text, err := io.ReadAll(archive)
		if err := errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
			return err
		}
	}
}
