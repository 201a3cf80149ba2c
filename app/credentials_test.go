package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keep-proxy/config"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/program"
)

// configured is the configuration of one connector's credentials, read as a file.
func configured(t *testing.T, credentials string) config.Connectors {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keep.yaml")
	text := "ledger: {dir: " + t.TempDir() + "}\nconnectors: {settings: [{connector: a, credentials: " + credentials + "}]}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		t.Fatal(err)
	}
	return c.Connectors
}

func TestAProgramGivesTheCredentialForAWhile(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := newCredentials(configured(t, "{exec: [give, it], cache: 10m}"), fake)
	asked := 0
	c.run = func(_ context.Context, s program.Spec) ([]byte, error) {
		if asked++; asked == 1 {
			return nil, errors.New("not now")
		}
		return []byte(s.Args[1] + strings.Repeat("x", asked) + "\n"), nil
	}
	if _, _, err := c.For("a"); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Fatalf("a failure: %v", err)
	}
	for _, step := range []struct {
		pass time.Duration
		want string
	}{{0, "Bearer itxx"}, {10*time.Minute - 1, "Bearer itxx"}, {1, "Bearer itxxx"}} {
		fake.Advance(step.pass)
		header, value, err := c.For("a")
		if err != nil || header != "Authorization" || value != step.want {
			t.Errorf("after %v: %s %q, %v; want %q", step.pass, header, value, err, step.want)
		}
	}
	// A token grows old while the machine sleeps.
	fake.Sleep(10 * time.Minute)
	if _, value, err := c.For("a"); err != nil || value != "Bearer itxxxx" {
		t.Errorf("after a sleep: %s, %v", value, err)
	}
	if _, _, ok, err := c.Always("a"); ok || err != nil {
		t.Errorf("use: reconcile sets it on the script's requests: %v, %v", ok, err)
	}
}

func TestWhatAProgramGivesIsOneFieldsValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ out, credentials, want string }{
		"another field":     {"k", "{header: X-Key, exec: [x]}", "k"},
		"another scheme":    {"k", "{scheme: token, exec: [x]}", "token k"},
		"no scheme":         {"Basic k", "{scheme: '', exec: [x]}", "Basic k"},
		"nothing":           {"\n", "{exec: [x]}", ""},
		"two lines":         {"a\nb\n", "{exec: [x]}", ""},
		"no field's value":  {"a\x00b", "{exec: [x]}", ""},
		"a smuggled header": {"a\r\nX: y", "{exec: [x]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := newCredentials(configured(t, c.credentials), clock.System())
			got.run = func(context.Context, program.Spec) ([]byte, error) { return []byte(c.out), nil }
			_, value, err := got.For("a")
			if value != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", value, err)
			}
			if err != nil && strings.Contains(err.Error(), c.out) {
				t.Errorf("the error holds the value: %v", err)
			}
		})
	}
}
