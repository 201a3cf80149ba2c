// Command fake runs one fake API as a process of its own, as docs/tutorial.md does.
//
// # Failure
//
// It ends with the exit code of [fakes.Main], and says on standard error what is wrong.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"keep-proxy/internal/fakes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := fakes.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
