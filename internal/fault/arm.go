package fault

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// EnvVar names the environment variable that [ArmFromEnv] reads.
const EnvVar = "KEEP_FAULT"

// ArmFromEnv arms the points that the environment variable KEEP_FAULT names, as
// [Arm] does. The program calls it once, at its start, before it serves. An unset
// or empty variable arms nothing.
func ArmFromEnv() error {
	spec := os.Getenv(EnvVar)
	if spec == "" {
		return nil
	}
	if err := Arm(spec); err != nil {
		return fmt.Errorf("%s: %w", EnvVar, err)
	}
	return nil
}

// Arm makes points kill this process with SIGKILL, which no handler can see. The
// specification is a comma-separated list of NAME, for the first passing, or
// NAME:N, for the Nth. An unknown name or a count below 1 is an error, and then
// nothing is armed at all.
func Arm(spec string) error {
	type target struct {
		p *Point
		n int64
	}
	var targets []target
	for part := range strings.SplitSeq(spec, ",") {
		p, n, err := parse(part)
		if err != nil {
			return err
		}
		targets = append(targets, target{p, n})
	}
	for _, t := range targets {
		t.p.arm(t.n, kill)
	}
	return nil
}

// Do makes the named point run fn once, at its nth passing from now on. It runs in the goroutine that passes the point.
// The returned function disarms the point again. An unknown name or an n below 1 is an error.
func Do(name string, n int64, fn func()) (disarm func(), err error) {
	p, err := lookup(name)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("fault: point %q: passing %d: must be 1 or more", name, n)
	}
	a := p.arm(n, fn)
	return func() { p.armed.CompareAndSwap(a, nil) }, nil
}

func (p *Point) arm(n int64, fn func()) *action {
	a := &action{fn: fn}
	a.left.Store(n)
	p.armed.Store(a)
	return a
}

func parse(part string) (*Point, int64, error) {
	name, count, counted := strings.Cut(strings.TrimSpace(part), ":")
	p, err := lookup(name)
	if err != nil {
		return nil, 0, err
	}
	if !counted {
		return p, 1, nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		return nil, 0, fmt.Errorf("fault: point %q: passing %q: must be a number, 1 or more", name, count)
	}
	return p, n, nil
}

func lookup(name string) (*Point, error) {
	registry.Lock()
	defer registry.Unlock()
	p := registry.points[name]
	if p == nil {
		return nil, fmt.Errorf("fault: unknown point %q", name)
	}
	return p, nil
}

// kill ends the process as a crash does. Should the signal not arrive at once,
// the goroutine must still not get past the point.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
