package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// A proxy that gave up for a command that looks at the stopped ledger would stay down.
func TestALedgerThatSomebodyPassesThroughIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	open := func(passing func() bool) (*app.App, error) {
		return app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Passing: passing})
	}
	passer, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(nil); !errors.Is(err, ledger.ErrLocked) {
		t.Errorf("who waits for nobody: %v", err)
	}
	var asked atomic.Int32
	if _, err := open(func() bool { return asked.Add(1) < 3 }); !errors.Is(err, ledger.ErrLocked) || asked.Load() != 3 {
		t.Errorf("one that came to stay, asked about %d times: %v", asked.Load(), err)
	}
	leaves := make(chan struct{})
	go func() {
		<-leaves
		stop(t, passer)
	}()
	var told atomic.Bool
	a, err := open(func() bool {
		if told.CompareAndSwap(false, true) {
			close(leaves)
		}
		return true
	})
	if err != nil || !told.Load() {
		t.Fatalf("one that passes: %v", err)
	}
	stop(t, a)
}

// The word of an earlier restore may stand in the command line still.
func TestARestoreOfALaterCopyIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA, c.Ledger.HighWaterFile = "", filepath.Join(t.TempDir(), "highwater")
	restored := app.Options{Config: c, Log: zerolog.Nop(), Operator: "ada", Restored: time.Now().Add(-time.Minute).Round(time.Second)}
	serve := func() {
		t.Helper()
		a, err := app.New(t.Context(), restored)
		if err != nil {
			t.Fatal(err)
		}
		stop(t, a)
	}
	gaps := func(add ...ledger.Event) (n int) {
		t.Helper()
		s, err := badgerstore.Open(t.Context(), app.StoreConfig(c, "test", zerolog.Nop(), clock.System()))
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx ledger.Tx) error {
			for _, e := range add {
				tx.Append(e)
			}
			all, err := tx.Gaps()
			n = len(all)
			return err
		})
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return n
	}
	serve()
	serve()
	if n := gaps(); n != 1 {
		t.Fatalf("%d gaps after the same word twice, want 1", n)
	}
	later, folder := filepath.Join(t.TempDir(), "later"), app.LedgerDir(c)
	if err := os.CopyFS(later, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	gaps(ledger.Event{What: "something that the copy doesn't know"})
	if err := errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(later))); err != nil {
		t.Fatal(err)
	}
	serve()
	if n := gaps(); n != 2 {
		t.Errorf("%d gaps after a copy from behind the first one, want 2", n)
	}
}
