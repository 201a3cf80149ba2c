package rules

import (
	"strconv"
	"strings"
	"testing"
)

// Whether a name is there is a question about that name alone: another one may come as often as
// it likes, as Accept does.
func TestWhetherANameIsThereReadsNoOther(t *testing.T) {
	t.Parallel()
	const form = "Content-Type: application/x-www-form-urlencoded"
	for _, c := range []struct{ source, problem string }{
		{"'a' in query", ""},
		{"'a' in form", ""},
		{"'x-a' in header && !('x-b' in header)", ""},
		{"'tag' in query", "the query repeats a name that the rule reads (tag)"},
		{"'tag' in form", "the form repeats a name that the rule reads (tag)"},
		{"'accept' in header", "the header repeats a name that the rule reads (accept)"},
		{"'B' in query", "the query holds a name that differs only in case"},
		{"query.exists(name, name == 'a')", "the query repeats a name that the rule reads (tag)"},
		{"header.exists(name, name == 'x-a')", "the header repeats a name that the rule reads (accept)"},
	} {
		e, err := compileExpr(c.source, inRequest)
		if err != nil {
			t.Fatalf("%s: %v", c.source, err)
		}
		req := request(t, "POST https://api.test/x?a=1&b=2&tag=x&tag=y", "a=1&tag=x&tag=y", form, "X-A: v", "Accept: text/plain", "Accept: text/html")
		holds, err := e.test(&scope{req: req})
		if c.problem == "" && (err != nil || !holds) || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %t, %v; want %q", c.source, holds, err, c.problem)
		}
	}
}

// A form may have as many names as it has bytes. What looked at all of them for each took hours.
func TestALongFormIsGoneThrough(t *testing.T) {
	t.Parallel()
	names := make([]string, 50_000)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i) + "=1"
	}
	e, err := compileExpr("form.size() == 50000", inRequest)
	if err != nil {
		t.Fatal(err)
	}
	for more, problem := range map[string]string{"": "", "&n7=2": "repeats a name that the rule reads (n7)", "&N7=2": "differs only in case from one that the rule names (n7)"} {
		req := request(t, "POST https://api.test/x", strings.Join(names, "&")+more, "Content-Type: application/x-www-form-urlencoded")
		holds, err := e.test(&scope{req: req})
		if problem == "" && (err != nil || !holds) || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("with %q: %t, %v; want %q", more, holds, err, problem)
		}
	}
}
