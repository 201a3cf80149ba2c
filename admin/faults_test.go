package admin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2000+1)
	for _, c := range []struct {
		name  string
		check func(*faults)
		want  string
	}{
		{"a sentence of several lines", func(f *faults) { f.sentence("/a", "first\n\tsecond") }, ""},
		{"a sentence over its bound", func(f *faults) { f.sentence("/a", long) }, "/a: longer than 2000 bytes"},
		{"a sentence that moves the cursor", func(f *faults) { f.sentence("/a", "x\x1b[2J") }, "/a: control characters"},
		{"a sentence that turns its own direction", func(f *faults) { f.sentence("/a", "abc\u202edef") }, "/a: control characters"},
		{"a return without a line", func(f *faults) { f.sentence("/a", "x\ry") }, "/a: control characters"},
		{"no sentence where none is needed", func(f *faults) { f.sentence("/a", "") }, ""},
		{"a name in any script", func(f *faults) { f.name("/a", "größe 数") }, ""},
		{"a name of two lines", func(f *faults) { f.name("/a", "a\nb") }, "/a: control characters"},
		{"no name", func(f *faults) { f.name("/a", "") }, "/a: missing"},
		{"a word that may be absent", func(f *faults) { f.optionalWord("OpenRun.items", "") }, ""},
		{"a label without a name", func(f *faults) { f.labels("/l", map[string]string{"": "x"}) }, "/l/: missing"},
		{"a label's long value", func(f *faults) { f.labels("/l", map[string]string{"a/b": long}) }, "/l/a~1b: longer than 256 bytes"},
		{"a label without a value", func(f *faults) { f.labels("/l", map[string]string{"a": ""}) }, ""},
		{"too many labels", func(f *faults) { f.labels("/l", manyLabels(maxLabels+1)) }, "/l: more than 32 labels"},
		{"as many labels as there may be", func(f *faults) { f.labels("/l", manyLabels(maxLabels)) }, ""},
		{"a time limit of a second", func(f *faults) { f.ttl("/t", wire.Duration(1e9)) }, ""},
		{"a time limit under a second", func(f *faults) { f.ttl("/t", wire.Duration(1e9-1)) }, "/t: 999.999999ms is out of bounds"},
		{"a time limit of a year", func(f *faults) { f.ttl("/t", wire.Duration(maxTTL)) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var f faults
			c.check(&f)
			err := f.err()
			if c.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if p, ok := errors.AsType[*wire.Problem](err); !ok || !strings.HasPrefix(p.Detail, c.want) || p.Errors[0].How == "" {
				t.Errorf("got %v, want %q and what to do", err, c.want)
			}
		})
	}
}

func manyLabels(n int) map[string]string {
	labels := map[string]string{}
	for i := range n {
		labels[strings.Repeat("l", i+1)] = "x"
	}
	return labels
}

func TestActorOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ holder, name, want string }{
		{operatorName, "ann", "ann"},
		{"night-shift", "ann", "ann via night-shift"},
		{"ann", "ann", "ann"},
		{"night-shift", "operator", "operator via night-shift"},
	} {
		if got := actorOf(withCaller(context.Background(), caller{name: c.holder}), c.name); got != c.want {
			t.Errorf("%s with the token of %s: %q, want %q", c.name, c.holder, got, c.want)
		}
	}
}

func TestShownLabels(t *testing.T) {
	t.Parallel()
	kept := map[string]string{requestLabel: "digest", "team": "a"}
	if got := shownLabels(kept); len(got) != 1 || got["team"] != "a" || kept[requestLabel] != "digest" {
		t.Errorf("shown %v of %v", got, kept)
	}
	if got := shownLabels(map[string]string{requestLabel: "digest"}); got != nil {
		t.Errorf("shown %v", got)
	}
}

func TestHopByHopIsCanonical(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Connection", "Content-Length", "Proxy-Authentication-Info", "Te", "Transfer-Encoding", "Upgrade"} {
		var f faults
		f.answer("", &wire.Result{Status: 200, Headers: wire.Header{strings.ToLower(name): {"x"}}}, 0)
		if len(f) != 1 || !strings.Contains(f[0].What, "belongs to the connection") {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestAPersonGivesNoTrailers(t *testing.T) {
	t.Parallel()
	var f faults
	f.answer("/result", &wire.Result{Status: 200, Trailers: wire.Header{"Sum": {"7"}}}, 0)
	if len(f) != 1 || f[0].Where != "/result/trailers" {
		t.Errorf("%v", f)
	}
}
