package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/app"
)

func TestAUsedFolderWithoutALedgerIsSpokenOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots := filepath.Join(dir, "roots.pem")
	c := settings(t, dir, "127.0.0.1:1", roots)
	c.Proxy.UpstreamCA = ""
	notes := func() string {
		var all []string
		a, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Note: func(n string) { all = append(all, n) }})
		if err != nil {
			t.Fatal(err)
		}
		stop(t, a)
		return strings.Join(all, "\n")
	}
	const words = "although the folder was used before"
	if n := notes(); strings.Contains(n, words) {
		t.Errorf("at the first start: %s", n)
	}
	if n := notes(); strings.Contains(n, words) {
		t.Errorf("at the second start: %s", n)
	}
	if err := os.RemoveAll(app.LedgerDir(c)); err != nil {
		t.Fatal(err)
	}
	if n := notes(); !strings.Contains(n, words) || !strings.Contains(n, "ledger.id") {
		t.Errorf("without its ledger: %s", n)
	}
}
