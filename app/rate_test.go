package app_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"keep-proxy/connectors"
)

// ratedBank writes the demo's bank as a connector with a rate of one request an hour.
func ratedBank(t *testing.T) (dir string) {
	t.Helper()
	files, err := connectors.Files()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	for _, f := range files {
		if f.Name != "demo-bank" {
			continue
		}
		text := strings.Replace(string(f.Data), "\noperations:", "\nrate: {requests: 1, per: 1h}\noperations:", 1)
		if err := os.WriteFile(filepath.Join(dir, "bank.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The whole program: what exceeds the rate isn't sent, reads go on meanwhile,
// and a caller that leaves its place leaves nothing behind.
func TestWhatExceedsTheRateWaitsUnsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bank, c := bankAndSettings(t, dir)
	base := bank.URL()
	c.Connectors.Bundled.Names, c.Connectors.Bundled.All, c.Connectors.Dirs = nil, false, []string{ratedBank(t)}
	a := start(t, c)

	_, client := openRun(t, a, c, "a")
	if status, text, _ := transfer(t, client, base, "R-1"); status != http.StatusCreated {
		t.Fatalf("within the rate: %d %s", status, text)
	}
	_, waiting := openRun(t, a, c, "b")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	left := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/transfers", strings.NewReader(
			`{"from":"ann","to":"bob","amount":1250,"currency":"EUR","reference":"R-2"}`))
		if err != nil {
			left <- err
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := waiting.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		left <- err
	}()
	_, client = openRun(t, a, c, "c")
	if resp, err := client.Get(base + "/transfers"); err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a read while another waits: %v", err)
	}
	leave()
	if err := <-left; err == nil {
		t.Error("what exceeds the rate was answered")
	}
	stop(t, a)
	tally, err := bank.Tally()
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]int{"R-1": 1, "R-2": 0} {
		if n := tally.Effects("transfer:" + reference); n != want {
			t.Errorf("%s took effect %d times, want %d", reference, n, want)
		}
	}
}
