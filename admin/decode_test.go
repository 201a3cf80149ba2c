package admin

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body, where, what string
	}{
		{"an unknown name inside", `{"result":{"stats":1}}`, "/result/stats", "unknown name"},
		{"a name that needs escaping", `{"a/b~c":1}`, "/a~1b~0c", "unknown name"},
		{"a name twice inside", `{"result":{"status":1,"status":2}}`, "/result/status", "duplicate"},
		{"text behind the value", `{} x`, "body", "at byte 3"},
		{"an object for a word", `{"action":{}}`, "/action", "a JSON object doesn't fit here"},
		{"a list for a flag", `{"force":[]}`, "/force", "a JSON list doesn't fit here"},
		{"a number that is no version", `{"version":1.5}`, "/version", "invalid syntax"},
		{"base64 with a fault", `{"result":{"status":200,"body":{"base64":"*"}}}`, "/result/body", "a body is a string"},
		{"an empty text", ``, "body", "ends in the middle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var q wire.Resolve
			p, ok := errors.AsType[*wire.Problem](decode([]byte(c.body), &q))
			if !ok || p.Name() != "bad-request" || len(p.Errors) != 1 {
				t.Fatalf("got %+v", p)
			}
			if f := p.Errors[0]; f.Where != c.where || !strings.Contains(f.What, c.what) {
				t.Errorf("at %s: %s; want at %s: %s", f.Where, f.What, c.where, c.what)
			}
		})
	}
}

func TestDecodeNeverShowsGoTypes(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`[]`, `1`, `"x"`, `{"version":"x"}`, `{"result":1}`, `{"result":{"headers":[]}}`, `{"result":{"status":"x"}}`, `{"version":99999999999999999999}`} {
		var q wire.Resolve
		err := decode([]byte(body), &q)
		if err == nil {
			t.Errorf("%s is accepted", body)
			continue
		}
		for _, word := range []string{"wire.", "Go ", "int64", "map[", "jsontext"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q is none of the caller's business: %v", body, word, err)
			}
		}
	}
}

// FuzzDecode asserts that whatever a body holds, it is either refused with a
// place, or read into a request that reads the same again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"workflow":"billing","item":"order-1","ttl":"1h","labels":{"a":"b"}}`,
		`{"action":"happened","reason":"r","actor":"a","version":3,"result":{"status":200,"headers":{"A":["b","c"]},"body":{"base64":"/w=="}}}`,
		`{"workflow":"w","once":true,"items":"many"}`,
		`{"workflow":"\ud800"}`, `{"a":1,"a":2}`, `null`, `[{}]`, "{\"workflow\":\"\xff\"}", `{"version":1e3}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		decodesAlike[wire.OpenRun](t, body)
		decodesAlike[wire.Resolve](t, body)
		decodesAlike[wire.Explain](t, body)
	})
}

func decodesAlike[T any](t *testing.T, body []byte) {
	t.Helper()
	var first, second T
	if err := decode(body, &first); err != nil {
		p, ok := errors.AsType[*wire.Problem](err)
		if !ok || p.Name() != "bad-request" || len(p.Errors) == 0 || p.Errors[0].Where == "" || p.Errors[0].What == "" {
			t.Fatalf("%q: refused without a place: %v", body, err)
		}
		return
	}
	written, err := json.Marshal(first, json.Deterministic(true))
	if err != nil {
		t.Fatalf("%q: %v", body, err)
	}
	if err := decode(written, &second); err != nil {
		t.Fatalf("%q was written as %s, which is refused: %v", body, written, err)
	}
	again, err := json.Marshal(second, json.Deterministic(true))
	if err != nil || string(again) != string(written) {
		t.Fatalf("%q reads as %s and then as %s, %v", body, written, again, err)
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	known := []string{"workflow", "item", "on_failure"}
	for name, want := range map[string]string{
		"workfow": `did you mean "workflow"?`,
		"retries": "known are item, on_failure, workflow",
	} {
		if got := suggest(name, known); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if known[0] != "workflow" {
		t.Error("the known names were sorted in place")
	}
}
