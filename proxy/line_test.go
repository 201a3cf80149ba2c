package proxy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// documentedFields are those of the log line that docs/operating.md names.
func documentedFields(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## The log\n")
	_, table, begun := strings.Cut(section, "| --- | --- |\n")
	if !found || !begun {
		t.Fatal("docs/operating.md has no table of the log's fields")
	}
	name := regexp.MustCompile("`([a-z_]+)`")
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		for _, n := range name.FindAllStringSubmatch(first, -1) {
			all = append(all, n[1])
		}
	}
	return all
}

// A request has one line, with the fields that are documented and no other, whatever becomes
// of it.
func TestTheLineOfARequest(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	ask := func(method, path, body string) string {
		return fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, w.upstream.URL, path, w.authority, w.basic(r.token), len(body), body)
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		said string
		want map[string]any
	}{
		{ask("POST", "/pay?q=hidden", `{"to":"x"}`), map[string]any{
			"level": "info", "method": "POST", "host": w.authority, "path": "/pay", "status": 201.0, "body_bytes": 8.0, "delivered": true,
			"effect": "mutation", "workflow": "wf", "item": "a", "run": r.id, "connector": "api", "operation": "pay",
			"state": "applied", "decision": "dispatch", "mutation": "", "duration_ms": 0.0,
		}},
		{ask("GET", "/read?q=hidden", ""), map[string]any{
			"level": "info", "method": "GET", "host": w.authority, "path": "/read", "status": 201.0, "body_bytes": 8.0, "delivered": true,
			"effect": "read", "workflow": "wf", "item": "a", "run": r.id, "connector": "api", "operation": "", "duration_ms": 0.0,
		}},
		{ask("POST", "/never", `{}`), map[string]any{
			"level": "warn", "method": "POST", "host": w.authority, "path": "/never", "status": 403.0, "body_bytes": 0.0, "delivered": true,
			"effect": "", "problem": "denied", "workflow": "wf", "item": "a", "run": r.id, "connector": "api", "operation": "never", "duration_ms": 0.0,
		}},
		{strings.Replace(ask("GET", "/read", ""), w.basic(r.token), "", 1), map[string]any{
			"level": "warn", "method": "GET", "host": w.authority, "path": "", "status": 407.0, "body_bytes": 0.0, "delivered": true,
			"effect": "", "problem": "credentials", "workflow": "", "item": "", "run": "", "duration_ms": 0.0,
		}},
		{"\x00 garbage\r\n\r\n", map[string]any{
			"level": "warn", "status": 400.0, "problem": "malformed-request", "delivered": true, "client": "", "detail": "",
		}},
	} {
		before := len(log.String())
		w.talk(c.said)
		var got map[string]any
		if err := json.Unmarshal([]byte(log.String()[before:]), &got); err != nil {
			t.Fatalf("not one line: %v: %s", err, log.String()[before:])
		}
		if got["message"] != "request" {
			t.Errorf("the line says %v", got["message"])
		}
		delete(got, "message")
		for name, want := range c.want {
			value, there := got[name]
			switch name {
			case "mutation", "client", "detail": // Of their own making.
				there = there && value != ""
			case "body_bytes", "duration_ms":
				n, number := value.(float64)
				there = there && number && (name == "body_bytes" && want == 0.0 || n > 0)
			default:
				there = there && value == want
			}
			if !there {
				t.Errorf("%.30q: %s is %v, want %v", c.said, name, value, want)
			}
		}
		for name := range got {
			if _, expected := c.want[name]; !expected {
				t.Errorf("%.30q: a field %s: %v", c.said, name, got[name])
			}
			seen[name] = true
		}
	}
	for name := range lineOfAChange(t) {
		seen[name] = true
	}
	delete(seen, "level")
	documented := documentedFields(t)
	slices.Sort(documented)
	if all := slices.Sorted(maps.Keys(seen)); !slices.Equal(all, documented) {
		t.Errorf("fields %v, documented are %v", all, documented)
	}
}
