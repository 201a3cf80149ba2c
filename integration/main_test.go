package integration

import (
	"os"
	"testing"
)

// TestMain runs the tests or, when the environment says so, the program: tests that
// kill it start this binary again.
func TestMain(m *testing.M) {
	if file := os.Getenv(serveVar); file != "" {
		os.Exit(serve(file)) //nolint:forbidigo // This process is the program now.
	}
	os.Exit(m.Run()) //nolint:forbidigo // As TestMain does.
}
