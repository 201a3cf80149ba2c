package child

import (
	"errors"
	"syscall"
	"testing"
	"time"
)

func TestAProcessThatLeftTheGroupIsKilledToo(t *testing.T) {
	p, out := begin(t, 50*time.Millisecond, "family")
	first, second := said(t, out), said(t, out)
	stray := first
	if first == p.PID() {
		stray = second
	}
	if group, err := syscall.Getpgid(stray); err != nil || group == p.PID() {
		t.Fatalf("the stray's group is %d (%v); it should have left %d", group, err, p.PID())
	}
	p.Stop()
	if err := syscall.Kill(stray, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the stray is still there: %v", err)
	}
}
