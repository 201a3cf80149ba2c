package rules

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzLink looks for a field value that hides a next page: one that is read without an
// error and without a next link must not keep the one after it from being found.
func FuzzLink(f *testing.F) {
	const next = "https://n.test/2"
	f.Add(`<https://n.test/1>; rel="prev", <https://n.test/3>; rel="last"`)
	f.Add(`<https://n.test/2>; title="a, b; rel=next"; rel="next"`)
	f.Add(`https://n.test/2; rel=next`)
	f.Fuzz(func(t *testing.T, value string) {
		target, found, err := nextLink(http.Header{"Link": {value}})
		if found && (err != nil || strings.Contains(target, ">") || !strings.Contains(value, "<"+target+">")) {
			t.Fatalf("%q gave the target %q, %v", value, target, err)
		}
		for name, h := range map[string]http.Header{
			"on the same line": {"Link": {value + `, <` + next + `>; rel="next"`}},
			"on the next line": {"Link": {value, `<` + next + `>; rel="next"`}},
		} {
			switch after, ok, afterErr := nextLink(h); {
			case found && (after != target || !ok):
				t.Fatalf("%q: with another one %s the target %q became %q (%v)", value, name, target, after, afterErr)
			case !found && err == nil && (after != next || !ok || afterErr != nil):
				t.Fatalf("%q hides a next page %s: %q, %v, %v", value, name, after, ok, afterErr)
			case err != nil && name == "on the next line" && afterErr == nil:
				t.Fatalf("%q can't be read, and was passed over", value)
			}
		}
	})
}
