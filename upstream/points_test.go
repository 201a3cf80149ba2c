package upstream

import (
	"slices"
	"testing"

	"keep-proxy/internal/fault"
)

// TestPointsArePassedInOrder is not parallel: points are global.
func TestPointsArePassedInOrder(t *testing.T) {
	u := serve(t, nil, answeringAll(ok))
	s := sender(t, Config{})
	var passed []string
	want := []string{"upstream.before_byte_one", "upstream.request_written", "upstream.head_read", "upstream.answer_complete"}
	for _, name := range want {
		disarm, err := fault.Do(name, 1, func() {
			passed = append(passed, name)
			if got := u.bytes.Load(); name == want[0] && got != 0 {
				t.Errorf("%d bytes before byte one", got)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer disarm()
	}
	g := send(t, s, post(u.url("http", "/"), "x"))
	g.check(t, whole)
	if !slices.Equal(passed, want) {
		t.Errorf("passed %q, want %q", passed, want)
	}
}
