package integration

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFailedMutationIsAskedAboutByTheRuleThatSentIt changes a connector between a
// failure and the next run. What goes out then carries key and marker as the new rule has
// them, so that nobody may look for those of the old one.
func TestAFailedMutationIsAskedAboutByTheRuleThatSentIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bank func(*world) *upstream
		old  *strings.Replacer
		// sends are those of both runs; the second has one effect.
		sends int
	}{
		"another place for the key":    {func(w *world) *upstream { return w.keyed }, strings.NewReplacer("header: Idempotency-Key", "header: X-Wrong-Key"), 3},
		"another place for the marker": {func(w *world) *upstream { return w.probed }, strings.NewReplacer("json: metadata.keep_id", "json: metadata.other_id", "metadata.?keep_id", "metadata.?other_id"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := prepare(t)
			now := w.settings.Connectors
			w.settings.Connectors = t.TempDir()
			rewriteConnectors(t, now, w.settings.Connectors, c.old)
			w.start()
			bank := c.bank(w)
			bank.arm("400")
			if a := w.open("a").transfer(bank, "R-1"); a.status != http.StatusBadRequest {
				t.Fatalf("the first run got %v", a)
			}
			rewriteConnectors(t, now, w.settings.Connectors, strings.NewReplacer())
			w.restart()
			bank.arm("commit-close")
			w.open("a").transfer(bank, "R-1")
			w.awaitState("a", "applied")
			bank.want("transfer:R-1", 1, c.sends)
		})
	}
}

// rewriteConnectors copies connector files, changed.
func rewriteConnectors(t *testing.T, from, to string, change *strings.Replacer) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), []byte(change.Replace(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
