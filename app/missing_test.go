package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
	"keep-proxy/ledger"
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

// Where it refuses to start no new one is made, and nothing may say so.
func TestALedgerThatIsKnownToBeMissingIsNotSaidToBeMade(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]func(*config.Config, string, string){
		"by its id":          func(c *config.Config, id, _ string) { c.Ledger.ID = id },
		"by high-water file": func(c *config.Config, _, dir string) { c.Ledger.HighWaterFile = filepath.Join(dir, "highwater") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, mark := t.TempDir(), t.TempDir()
			c := settings(t, dir, "127.0.0.1:1", filepath.Join(dir, "roots.pem"))
			c.Proxy.UpstreamCA = ""
			known(&c, "", mark)
			first, err := app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop()})
			if err != nil {
				t.Fatal(err)
			}
			known(&c, first.LedgerID(), mark)
			stop(t, first)
			if err := os.RemoveAll(app.LedgerDir(c)); err != nil {
				t.Fatal(err)
			}
			var notes []string
			_, err = app.New(t.Context(), app.Options{Config: c, Log: zerolog.Nop(), Note: func(n string) { notes = append(notes, n) }})
			if !errors.Is(err, ledger.ErrMissing) {
				t.Errorf("it started: %v", err)
			}
			if all := strings.Join(notes, "\n"); strings.Contains(all, "a new one is made") {
				t.Errorf("it says: %s", all)
			}
		})
	}
}
