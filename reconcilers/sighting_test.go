package reconcilers

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReasonsAreCut(t *testing.T) {
	t.Parallel()
	if got := shorten("short"); got != "short" {
		t.Errorf("got %q", got)
	}
	got := shorten(strings.Repeat("x", maxReason-1) + strings.Repeat("ä", 9))
	if !utf8.ValidString(got) || !strings.HasSuffix(got, "x…") || len(got) > maxReason+len("…") {
		t.Errorf("got %d bytes ending in %q", len(got), got[len(got)-8:])
	}
}
