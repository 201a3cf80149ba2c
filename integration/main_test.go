package integration

import (
	"flag"
	"os"
	"testing"
)

// parallel is how many of these tests run at a time, unless -parallel says
// otherwise: they wait for clocks and disks more than they compute.
const parallel = "8"

// TestMain runs the tests or, when the environment says so, the program: tests that
// kill it start this binary again.
func TestMain(m *testing.M) {
	if file := os.Getenv(serveVar); file != "" {
		os.Exit(serve(file)) // This process is the program now.
	}
	if roots := os.Getenv(bareVar); roots != "" {
		os.Exit(bare(roots)) // This process is a bare goproxy now.
	}
	if kind := os.Getenv(upstreamVar); kind != "" {
		os.Exit(benchUpstream(kind)) // This process is an upstream now.
	}
	if target := os.Getenv(loadVar); target != "" {
		os.Exit(load(target)) // This process is many clients now.
	}
	if target := os.Getenv(clientVar); target != "" {
		os.Exit(post(target)) // This process is a client now.
	}
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(m.Run()) // As TestMain does.
}
