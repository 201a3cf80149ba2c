package rules

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
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

// Where there are many names each is looked for in an index, which finds what a few are searched for.
func TestNamesAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	names := make([]string, 2*longList)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i) + "=" + strconv.Itoa(i)
	}
	for _, few := range []bool{true, false} {
		body := "tag=x&tag=y&B=1&b=2&A=1&"
		if !few {
			body += strings.Join(names, "&")
		} else {
			body += "n7=7"
		}
		for _, c := range []struct{ source, problem string }{
			{"form.n7 == '7' && 'n7' in form && !('m' in form) && !has(form.m)", ""},
			{"form.?m.orValue('none') == 'none'", ""},
			{"form.tag == 'x'", "repeats a name that the rule reads (tag)"},
			{"form.?a.orValue('none') == 'none'", "differs only in case from one that the rule names (a)"},
			{"form.B == '1'", "differs only in case from one that the rule names (B)"},
		} {
			e, err := compileExpr(c.source, inRequest)
			if err != nil {
				t.Fatalf("%s: %v", c.source, err)
			}
			holds, err := e.test(&scope{req: request(t, "POST https://api.test/x", body, "Content-Type: application/x-www-form-urlencoded")})
			if c.problem == "" && (err != nil || !holds) || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
				t.Errorf("%s of %d fields: %t, %v; want %q", c.source, len(names), holds, err, c.problem)
			}
		}
	}
}

// To ask for each name while all are gone through takes not much longer than to go through them.
//
//nolint:paralleltest // it takes times
func TestEachNameOfALongFormIsAskedFor(t *testing.T) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i) + "=1"
	}
	req := request(t, "POST https://api.test/x", strings.Join(names, "&"), "Content-Type: application/x-www-form-urlencoded")
	took := func(source string) time.Duration {
		e, err := compileExpr(source, inRequest)
		if err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		least := time.Duration(math.MaxInt64)
		for range 3 {
			begun := time.Now()
			if holds, err := e.test(&scope{req: req}); err != nil || !holds {
				t.Fatalf("%s: %t, %v", source, holds, err)
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	alone := took("form.all(name, name != '')")
	for _, source := range []string{"form.all(name, form[name] == '1')", "form.all(name, name in form)"} {
		if each := took(source); each > 25*alone {
			t.Errorf("%s takes %v, where going through them takes %v", source, each, alone)
		}
	}
}
