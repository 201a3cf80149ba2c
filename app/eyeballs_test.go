package app

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestFamiliesAreTriedInTurn(t *testing.T) {
	t.Parallel()
	at := func(all ...string) (out []netip.AddrPort) {
		for _, a := range all {
			out = append(out, netip.MustParseAddrPort(a))
		}
		return out
	}
	got := interleaved(at("[2001::1]:1", "[2001::2]:1", "[2001::3]:1", "192.0.2.1:1"))
	if want := at("[2001::1]:1", "192.0.2.1:1", "[2001::2]:1", "[2001::3]:1"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// closable notes that it was closed.
type closable struct {
	net.Conn
	closed chan struct{}
}

func (c *closable) Close() error { close(c.closed); return nil }

func TestTheFirstAddressThatAnswersIsTaken(t *testing.T) {
	t.Parallel()
	three := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:1"), netip.MustParseAddrPort("192.0.2.3:1")}
	for name, c := range map[string]struct {
		// ends are when each address answers; negative for a failure.
		ends [3]time.Duration
		// took is when the race is over, tried how many addresses were tried.
		took  time.Duration
		tried int
		fails string
	}{
		"the first at once":                           {[3]time.Duration{10 * time.Millisecond, 1, 1}, 10 * time.Millisecond, 1, ""},
		"the second, as the first hangs":              {[3]time.Duration{time.Hour, 10 * time.Millisecond, time.Hour}, 260 * time.Millisecond, 2, ""},
		"the second at once, as the first has failed": {[3]time.Duration{-time.Millisecond, 5 * time.Millisecond, time.Hour}, 6 * time.Millisecond, 2, ""},
		"the slow first, before the third":            {[3]time.Duration{300 * time.Millisecond, time.Hour, time.Hour}, 300 * time.Millisecond, 2, ""},
		"none":                                        {[3]time.Duration{-1, -1, -1}, 3, 3, "192.0.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex // of tried
				tried := 0
				started := time.Now()
				conn, err := race(t.Context(), three, 250*time.Millisecond, func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
					mu.Lock()
					tried++
					mu.Unlock()
					end := c.ends[at.Addr().As4()[3]-1]
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(max(end, -end)):
					}
					if end < 0 {
						return nil, errors.New("refused by " + at.Addr().String())
					}
					return &closable{closed: make(chan struct{})}, nil
				})
				took := time.Since(started)
				mu.Lock()
				defer mu.Unlock()
				if took != c.took || tried != c.tried {
					t.Errorf("took %s and %d tries, want %s and %d", took, tried, c.took, c.tried)
				}
				if (err == nil) != (c.fails == "") || (conn == nil) != (err != nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, %v", conn, err)
				}
			})
		})
	}
}

func TestAConnectionThatIsLateIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		late := &closable{closed: make(chan struct{})}
		_, err := race(t.Context(), []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:1")}, time.Millisecond,
			func(_ context.Context, at netip.AddrPort) (net.Conn, error) {
				if at.Addr().As4()[3] == 2 {
					return &closable{closed: make(chan struct{})}, nil
				}
				time.Sleep(time.Second) //nolint:forbidigo // In a bubble it takes no time; a dial that can't be cancelled.
				return late, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		<-late.closed
	})
}

// An address that hangs takes no more than its share of the time, and two are never tried
// at once.
func TestAddressesAreTriedOneAtATime(t *testing.T) {
	t.Parallel()
	three := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:1"), netip.MustParseAddrPort("192.0.2.3:1")}
	const hangs = time.Hour
	for name, c := range map[string]struct {
		// ends are when each address answers; negative for a failure.
		ends  [3]time.Duration
		took  time.Duration
		tried int
		fails string
	}{
		"the first":                        {[3]time.Duration{time.Second, 1, 1}, time.Second, 1, ""},
		"the first, late":                  {[3]time.Duration{9 * time.Second, 1, 1}, 9 * time.Second, 1, ""},
		"the second, as the first refused": {[3]time.Duration{-time.Second, time.Second, 1}, 2 * time.Second, 2, ""},
		"the second, as the first hangs":   {[3]time.Duration{hangs, time.Second, 1}, 11 * time.Second, 2, ""},
		"the third, as the others hang":    {[3]time.Duration{hangs, hangs, time.Second}, 21 * time.Second, 3, ""},
		"what is left, after a refusal":    {[3]time.Duration{-6 * time.Second, hangs, time.Second}, 19 * time.Second, 3, ""},
		"all hang":                         {[3]time.Duration{hangs, hangs, hangs}, 30 * time.Second, 3, "deadline exceeded"},
		"all refuse":                       {[3]time.Duration{-1, -1, -1}, 3, 3, "refused by 192.0.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				tried, going := 0, 0
				started := time.Now()
				conn, err := inTurn(ctx, three, func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
					if tried, going = tried+1, going+1; going > 1 {
						t.Error("two at once")
					}
					defer func() { going-- }()
					end := c.ends[at.Addr().As4()[3]-1]
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(max(end, -end)):
					}
					if end < 0 {
						return nil, errors.New("refused by " + at.Addr().String())
					}
					return &closable{closed: make(chan struct{})}, nil
				})
				if took := time.Since(started); took != c.took || tried != c.tried {
					t.Errorf("took %s and %d tries, want %s and %d", took, tried, c.took, c.tried)
				}
				if (err == nil) != (c.fails == "") || (conn == nil) != (err != nil) || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, %v", conn, err)
				}
			})
		})
	}
}

// However many addresses a name has, each that is tried has the time that connecting takes.
func TestAShareOfTheTimeIsLongEnough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		many := make([]netip.AddrPort, 100)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		tried := 0
		conn, err := inTurn(ctx, many, func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
			answers := 300 * time.Millisecond
			if tried++; tried < 3 {
				answers = time.Hour
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(answers):
				return &closable{closed: make(chan struct{})}, nil
			}
		})
		if conn == nil || tried != 3 {
			t.Errorf("%d tries, %v", tried, err)
		}
	})
}
