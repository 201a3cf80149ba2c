package app_test

import (
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/app"
)

func TestANearlyFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	c.Ledger.MinFree = math.MaxInt64
	var told atomic.Int32
	log := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, text string) {
		if strings.HasPrefix(text, "the disk is nearly full: new mutations are refused") {
			told.Add(1)
		}
	}))
	a, err := app.New(t.Context(), app.Options{Config: c, Log: log, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, a) })
	if n := told.Load(); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	resp, err := (&http.Client{}).Get(a.AdminURL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "not-ready") {
		t.Errorf("got %d %s %v", resp.StatusCode, text, err)
	}
	st, err := operatorOf(t, a).Status(t.Context())
	if err != nil || !st.Healthy || !strings.Contains(st.NotReady, "MiB free in "+c.Ledger.Dir) {
		t.Errorf("status: %+v, %v", st, err)
	}
}
