package h1

import (
	"errors"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// given is a connection with descriptor 7, unless it was closed.
type given struct {
	syscall.RawConn
	closed error
}

func (g given) Control(f func(fd uintptr)) error {
	if g.closed == nil {
		f(7)
	}
	return g.closed
}

// A signal says nothing of the peer, and whoever can't be asked has gone.
func TestWhatTellsOfAnEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		closed  error
		answers []error
		events  int
		ended   bool
	}{
		"nothing came":         {nil, []error{nil}, 0, false},
		"its end came":         {nil, []error{nil}, 1, true},
		"signals, and no end":  {nil, []error{unix.EINTR, unix.EINTR, nil}, 0, false},
		"a signal, and an end": {nil, []error{unix.EINTR, nil}, 1, true},
		"it can't be asked":    {nil, []error{unix.ENOMEM}, 0, true},
		"it was closed here":   {errors.New("closed"), nil, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			got := endedBy(given{closed: c.closed}, func(p []unix.PollFd, timeout int) (int, error) {
				if p[0].Fd != 7 || p[0].Events != unix.POLLRDHUP || timeout != 0 {
					t.Errorf("asked for %+v within %d", p[0], timeout)
				}
				asked++
				if err := c.answers[asked-1]; err != nil {
					return -1, err
				}
				return c.events, nil
			})
			if got != c.ended || asked != len(c.answers) {
				t.Errorf("ended: %t after %d questions, want %t", got, asked, c.ended)
			}
		})
	}
}
