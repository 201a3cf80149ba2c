package arch

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTheImageIsBuiltFromEveryRoom holds .dockerignore, which lets only named
// folders through, against the table.
func TestTheImageIsBuiltFromEveryRoom(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")
	for _, r := range table {
		room, _, _ := strings.Cut(r.pkg, "/")
		if room != "integration" && room != "proof" && !slices.Contains(lines, "!"+room) {
			t.Errorf("%s is not let through", room)
		}
	}
}
