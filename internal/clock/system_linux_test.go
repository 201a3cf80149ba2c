package clock

import "testing"

func TestTimeNamespaceIsPartOfTheBootID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ offsets, want string }{
		"no such file":       {"", "id"},
		"no offsets":         {"monotonic 0 0\nboottime 0 0\n", "id"},
		"a shifted clock":    {"monotonic 0 0\nboottime 86400 0\n", "id+boottime:86400:0"},
		"a shift below 1 s":  {"monotonic 0 5\nboottime 0 0\n", "id+monotonic:0:5"},
		"a shift backwards":  {"monotonic -7 0\nboottime -7 0\n", "id+monotonic:-7:0+boottime:-7:0"},
		"a line of its own":  {"something else\n", "id"},
		"no final line feed": {"monotonic 1 0", "id+monotonic:1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := withOffsets("id", tc.offsets); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
