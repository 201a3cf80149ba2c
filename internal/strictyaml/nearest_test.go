package strictyaml

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64)
	keys := []string{"dial", "response", "total", "listen", "cap", long}
	for _, c := range []struct{ name, text, want string }{
		{"a letter too few", "respnse", "response"},
		{"a letter too many", "totall", "total"},
		{"another letter", "lisden", "listen"},
		{"two letters swapped", "dail", "dial"},
		{"itself", "dial", "dial"},
		{"nothing like any", "colour", ""},
		{"a short word that shares nothing", "xy", ""},
		{"no text", "", ""},
		{"a name that is too long to look for", long + "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Nearest(c.text, keys); got != c.want {
				t.Errorf("Nearest(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
