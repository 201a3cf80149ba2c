package strictyaml

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestEveryProblemOfAFileHasItsPlace(t *testing.T) {
	t.Parallel()
	level := Level{Name: "the file", Known: []string{"name", "list", "map"}, Later: []string{"soon"}, Elsewhere: func(name string) string {
		return map[string]string{"below": "map.below"}[name]
	}}
	for name, c := range map[string]struct {
		file string
		want []string // code, place and key of each problem
	}{
		"nothing":             {"", nil},
		"sound":               {"name: a\nlist: [1, b]\nmap: {x: 1}\n", nil},
		"one value for many":  {"name: a\nlist: b\n", nil},
		"no YAML":             {"name: [", []string{"yaml 2:1 "}},
		"a tab":               {"map:\n\tx: 1\n", []string{"yaml 2:1 "}},
		"another encoding":    {"name: \"\xe9\"\n", []string{"yaml 1:8 "}},
		"two documents":       {"name: a\n---\nname: b\n", []string{"yaml 2:1 "}},
		"too large":           {strings.Repeat("#", MaxFile+1), []string{"too-large 0:0 "}},
		"a list at the top":   {"- 1\n", []string{"type 1:1 "}},
		"unknown keys":        {"nam: a\nbelow: 1\nsoon: 1\n", []string{"unknown-key 1:1 nam", "unknown-key 2:1 below", "not-yet 3:1 soon"}},
		"a key twice":         {"name: a\nname: b\n", []string{"repeated-key 2:1 name"}},
		"keys that are none":  {"? [a]\n: x\n<<: {}\n!t name: a\n", []string{"yaml 1:3 ", "yaml 3:1 ", "yaml 4:1 "}},
		"an anchor, an alias": {"name: &a b\nlist: [*a]\n", []string{"yaml 1:7 name", "yaml 2:8 list[0]"}},
		"a tag":               {"name: !!str 1\n", []string{"yaml 1:7 name"}},
		"wrong kinds":         {"name: [a]\nlist: {}\nmap: a\n", []string{"type 1:7 name", "type 2:7 list", "type 3:6 map"}},
		"no value":            {"name:\n", []string{"type 1:6 name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			r := Reader{Report: func(code string, at Place, problem, fix string) {
				if problem == "" || fix == "" {
					t.Errorf("%s at %+v says %q and %q", code, at, problem, fix)
				}
				got = append(got, fmt.Sprintf("%s %d:%d %s", code, at.Line, at.Column, at.Key))
			}}
			if root, ok := r.Document([]byte(c.file)); ok && root.Given() {
				m, _ := r.Map(root, level)
				if m.Has("name") {
					r.Scalar(m.At("name"))
				}
				for _, item := range r.OneOrMore(m.At("list")) {
					r.Scalar(item)
				}
				if m.Has("map") {
					r.Members(m.At("map"), func(string, Value, Value) {})
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("problems %q, want %q", got, c.want)
			}
		})
	}
}

func TestAMissingValueStandsInItsMap(t *testing.T) {
	t.Parallel()
	r := Reader{Report: func(code string, at Place, problem, _ string) { t.Errorf("%s at %+v: %s", code, at, problem) }}
	root, _ := r.Document([]byte("\nname: a\n"))
	m, _ := r.Map(root, Level{Known: []string{"name", "other"}})
	if got, want := m.At("other").Place(), (Place{Key: "other", Line: 2, Column: 1}); got != want {
		t.Errorf("place %+v, want %+v", got, want)
	}
	if _, ok := r.Scalar(m.At("other")); ok || len(r.OneOrMore(m.At("other"))) > 0 {
		t.Error("what is missing is read")
	}
}
