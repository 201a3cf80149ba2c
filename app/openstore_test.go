package app_test

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/ledger"
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
