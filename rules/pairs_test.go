package rules

import (
	"slices"
	"testing"
)

func TestPairs(t *testing.T) {
	t.Parallel()
	p := parsePairs("b=2&a[x]=%41+b&b=1&c&&=e&d=%2B", "query")
	if p.problem != nil {
		t.Fatal(p.problem)
	}
	if got := p.values("b"); !slices.Equal(got, []string{"2", "1"}) {
		t.Errorf("b = %v", got)
	}
	for name, want := range map[string]string{"a[x]": "A b", "c": "", "": "e", "d": "+"} {
		if got := p.values(name); !slices.Equal(got, []string{want}) {
			t.Errorf("%q = %v, want %q", name, got, want)
		}
	}
	var order []string
	for _, one := range p.sorted() {
		order = append(order, one.name+"="+one.value)
	}
	if want := []string{"=e", "a[x]=A b", "b=2", "b=1", "c=", "d=+"}; !slices.Equal(order, want) {
		t.Errorf("sorted: %v, want %v", order, want)
	}
}

func TestPairsThatParsersReadDifferently(t *testing.T) {
	t.Parallel()
	for raw, part := range map[string]string{"a=1;b=2": "semicolon", "a=%zz": "escape", "a=%f": "escape", "%ff=1": "UTF-8"} {
		wantRefusal(t, parsePairs(raw, "form").problem, ProblemAmbiguous, part)
	}
}

func TestPairsAreChangedInPlace(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"added at the end", "b=%7e&c=a+b", "b=%7e&c=a+b&k%5Bx%5D=v+%26"},
		{"replaced where it stands", "b=1&k[x]=old&c=2", "b=1&k%5Bx%5D=v+%26&c=2"},
		{"every other occurrence goes", "k%5bx%5d=1&b=1&k[x]=2", "k%5Bx%5D=v+%26&b=1"},
		{"into nothing", "", "k%5Bx%5D=v+%26"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := parsePairs(tc.in, "form")
			if got := p.with("k[x]", "v &"); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func FuzzPairs(f *testing.F) {
	f.Add("a=1&b=%20&a=2")
	f.Add("a[b]=%E2%82%AC&&=x")
	f.Fuzz(func(t *testing.T, raw string) {
		p := parsePairs(raw, "form")
		if p.problem != nil {
			return
		}
		changed := parsePairs(p.with("keep", "v&=+;"), "form")
		if changed.problem != nil || !slices.Equal(changed.values("keep"), []string{"v&=+;"}) {
			t.Fatalf("%q became %+v", raw, changed)
		}
		for _, one := range p.list {
			if one.name != "keep" && !slices.Equal(p.values(one.name), changed.values(one.name)) {
				t.Fatalf("%q: %q changed", raw, one.name)
			}
		}
	})
}
