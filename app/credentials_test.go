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
	"keep-proxy/reconcilers"
	"keep-proxy/rules"
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

// coveringRules are those of a connector with this host.
func coveringRules(t *testing.T, host string) *rules.Set {
	t.Helper()
	text := "apiVersion: keep/v1\nconnector: a\nversion: 1\nreads: safe-methods\nhosts: [" + host + "]\noperations:\n- {name: look, match: {method: GET, path: /x}, effect: read}\n"
	set, findings := rules.Load([]rules.File{{Name: "a.yaml", Data: []byte(text)}}, nil, rules.Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	return set
}

// What was matched before a reload that moved the connector, or is pinned to an older file,
// doesn't carry the secret of now to the host of then.
func TestACredentialGoesToTheHostsOfNowAlone(t *testing.T) {
	t.Parallel()
	before, after := configured(t, "{use: always, header: Authorization, value: secret-1}"), configured(t, "{use: always, header: Authorization, value: secret-2}")
	c := newCredentials(before, coveringRules(t, "old.test"), clock.System())
	if _, value, ok, err := c.Always("a", "https", "old.test"); value != "secret-1" || !ok || err != nil {
		t.Fatalf("before: %q, %v, %v", value, ok, err)
	}
	c.use(after, coveringRules(t, "new.test"))
	for _, to := range [][2]string{{"https", "old.test"}, {"https", "new.test:444"}, {"https", "not an authority"}} {
		if _, value, ok, err := c.Always("a", to[0], to[1]); value != "" || ok || !errors.Is(err, reconcilers.ErrElsewhere) {
			t.Errorf("to %v: %q, %v, %v", to, value, ok, err)
		}
		if _, value, err := c.For("a", to[0], to[1]); value != "" || !errors.Is(err, reconcilers.ErrElsewhere) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("reconciling %v: %q, %v", to, value, err)
		}
	}
	if _, value, err := c.For("a", "https", "new.test"); value != "secret-2" || err != nil {
		t.Errorf("to the host of now: %q, %v", value, err)
	}
	if name, _, err := c.For("b", "https", "old.test"); name != "" || err != nil {
		t.Errorf("of a connector without a credential: %q, %v", name, err)
	}
}

func TestAProgramGivesTheCredentialForAWhile(t *testing.T) {
	t.Parallel()
	fake := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	c := newCredentials(configured(t, "{exec: [give, it], cache: 10m}"), coveringRules(t, "a.test"), fake)
	asked := 0
	c.run = func(_ context.Context, s program.Spec) ([]byte, error) {
		if asked++; asked == 1 {
			return nil, errors.New("not now")
		}
		return []byte(s.Args[1] + strings.Repeat("x", asked) + "\n"), nil
	}
	if _, _, err := c.For("a", "https", "a.test"); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Fatalf("a failure: %v", err)
	}
	for _, step := range []struct {
		pass time.Duration
		want string
	}{{0, "Bearer itxx"}, {10*time.Minute - 1, "Bearer itxx"}, {1, "Bearer itxxx"}} {
		fake.Advance(step.pass)
		header, value, err := c.For("a", "https", "a.test")
		if err != nil || header != "Authorization" || value != step.want {
			t.Errorf("after %v: %s %q, %v; want %q", step.pass, header, value, err, step.want)
		}
	}
	// A token grows old while the machine sleeps.
	fake.Sleep(10 * time.Minute)
	if _, value, err := c.For("a", "https", "a.test"); err != nil || value != "Bearer itxxxx" {
		t.Errorf("after a sleep: %s, %v", value, err)
	}
	if _, _, ok, err := c.Always("a", "https", "a.test"); ok || err != nil {
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
			got := newCredentials(configured(t, c.credentials), coveringRules(t, "a.test"), clock.System())
			got.run = func(context.Context, program.Spec) ([]byte, error) { return []byte(c.out), nil }
			_, value, err := got.For("a", "https", "a.test")
			if value != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v", value, err)
			}
			if err != nil && strings.Contains(err.Error(), c.out) {
				t.Errorf("the error holds the value: %v", err)
			}
		})
	}
}
