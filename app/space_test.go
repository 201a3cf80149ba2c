package app_test

import (
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

func TestANearlyFullDiskIsNotReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
	c.Proxy.UpstreamCA = ""
	c.Ledger.MinFree = math.MaxInt64
	a := start(t, c)
	resp, err := (&http.Client{}).Get(a.AdminURL() + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "not-ready") {
		t.Errorf("got %d %s %v", resp.StatusCode, text, err)
	}
}
