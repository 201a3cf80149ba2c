package rules

import (
	"strings"
	"testing"
)

// FuzzText looks for an expression that gives natively what it doesn't give by CEL, and for
// a text whose insertions change the shape of the path that it makes.
func FuzzText(f *testing.F) {
	f.Add("json.a.b[0]", `{"a":{"b":["x"]}}`)
	f.Add("json.A.b[0]", `{"a":{"b":["x"]}}`)
	f.Add("header['x-a']", `{"a":1}`)
	f.Add("/items/{json.id}/{{{json.a...}}}", `{"id":"../x","a":"b/c"}`)
	f.Fuzz(func(t *testing.T, source, body string) {
		req, refusal := rawRequest("POST https://api.test/x?a=1&twice=1&twice=2", body, "X-A: v")
		if refusal != nil {
			return
		}
		if e, err := compileExpr(source, inFound); err == nil && e.chain != nil {
			likeCEL(t, e, req)
		}
		text, err := compileText(source, inFound)
		if err != nil {
			return
		}
		text.show(chainScope(t, req), func(*expr) bool { return false })
		path, err := text.path(chainScope(t, req))
		if err != nil {
			return
		}
		slashes := 0
		for _, p := range text.parts {
			if slashes += strings.Count(p.literal, "/"); p.rest {
				return
			}
		}
		if n := strings.Count(path, "/"); n != slashes {
			t.Fatalf("%q makes %q of %s: %d slashes instead of %d", source, path, body, n, slashes)
		}
	})
}

// likeCEL wants of a plain chain what CEL gives. Names in another case are refused
// before either is asked.
func likeCEL(t *testing.T, e *expr, req *Request) {
	t.Helper()
	native, celled := chainScope(t, req), chainScope(t, req)
	a, presentA, errA := e.value(native)
	b, presentB, errB := e.evalCEL(celled)
	if (native.problem == nil) != (celled.problem == nil) {
		t.Errorf("%q: ambiguity %v natively, %v by CEL", e.source, native.problem, celled.problem)
	}
	if native.problem != nil {
		return
	}
	if presentA != presentB || (errA == nil) != (errB == nil) {
		t.Errorf("%q on %s: %v %v natively, %v %v by CEL", e.source, req.Body(), presentA, errA, presentB, errB)
	}
	if got, want := string(canonicalValue(&a)), string(canonicalValue(&b)); errA == nil && got != want {
		t.Errorf("%q on %s: %s natively, %s by CEL", e.source, req.Body(), got, want)
	}
}

// FuzzPlace wants a place to be read back from its own steps as it is.
func FuzzPlace(f *testing.F) {
	f.Add("json.a[0]['b c'][*]")
	f.Add(`form["a[b]"]`)
	f.Fuzz(func(t *testing.T, source string) {
		p, err := parsePlace(source)
		if err != nil {
			return
		}
		written := p.root
		for _, s := range p.steps {
			if strings.Contains(s.name, "']") {
				return // It can be written in double quotes alone.
			}
			written += s.String()
		}
		again, err := parsePlace(written)
		if err != nil || len(again.steps) != len(p.steps) || again.root != p.root {
			t.Fatalf("%q, written as %q, is read as %v, %v", source, written, again, err)
		}
		for i, s := range p.steps {
			if again.steps[i] != s {
				t.Fatalf("%q, written as %q, is read as %v", source, written, again.steps)
			}
		}
		if !p.covers(again.root, again.steps) {
			t.Fatalf("%q doesn't cover itself", source)
		}
	})
}
