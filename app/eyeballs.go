package app

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// attemptDelay is how long an attempt has before the next address is tried beside it (RFC 8305 §8: 250 ms).
const attemptDelay = 250 * time.Millisecond

// DialRead connects to host:port for what may be sent twice: to the first of its allowed addresses that answers. They
// are tried a little apart, IPv6 and IPv4 in turn (RFC 8305).
func (e *egress) DialRead(ctx context.Context, network, addr string) (net.Conn, error) {
	allowed, err := e.lookUp(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if len(allowed) == 1 {
		return e.dialer.DialContext(ctx, network, allowed[0].String())
	}
	return race(ctx, interleaved(allowed), attemptDelay, func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
		return e.dialer.DialContext(ctx, network, at.String())
	})
}

// interleaved puts addresses of the two families in turn, beginning with the first
// one's.
func interleaved(all []netip.AddrPort) []netip.AddrPort {
	var families [2][]netip.AddrPort
	for _, at := range all {
		family := 0
		if at.Addr().Is4() != all[0].Addr().Is4() {
			family = 1
		}
		families[family] = append(families[family], at)
	}
	out := make([]netip.AddrPort, 0, len(all))
	for i := range all {
		for _, family := range families {
			if i < len(family) {
				out = append(out, family[i])
			}
		}
	}
	return out
}

// attempt is how one connection attempt ended.
type attempt struct {
	conn net.Conn
	err  error
}

// race starts the attempts in order, each when the one before has failed or delay is over. It returns the first that
// succeeds. Those that succeed later are closed.
func race(ctx context.Context, order []netip.AddrPort, delay time.Duration, dial func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan attempt)
	left, running := order, 0
	start := func() {
		at := left[0]
		left, running = left[1:], running+1
		go func() {
			c, err := dial(ctx, at)
			ended <- attempt{c, err}
		}()
	}
	defer func() {
		cancel()
		go func(running int) {
			for range running {
				if late := <-ended; late.conn != nil {
					_ = late.conn.Close()
				}
			}
		}(running)
	}()
	next := time.NewTimer(delay)
	defer next.Stop()
	var problems []error
	for start(); running > 0; {
		select {
		case a := <-ended:
			running--
			if a.err == nil {
				return a.conn, nil
			}
			problems = append(problems, a.err)
		case <-next.C:
		}
		if len(left) > 0 {
			start()
			next.Reset(delay)
		}
	}
	return nil, errors.Join(problems...)
}

// inTurn starts each attempt when the one before has failed. One that hangs leaves the others their share of the time.
// Otherwise a name whose first address is dead would be out of reach for good.
func inTurn(ctx context.Context, order []netip.AddrPort, dial func(context.Context, netip.AddrPort) (net.Conn, error)) (net.Conn, error) {
	var problems []error
	for i, at := range order {
		c, err := within(ctx, len(order)-i, func(ctx context.Context) (net.Conn, error) { return dial(ctx, at) })
		if err == nil {
			return c, nil
		}
		if problems = append(problems, err); ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(problems...)
}

// leastShare is how long an address has at least, as in package net. Where a name has many, an equal share may be less
// than connecting takes. Each would be abandoned before it answers.
const leastShare = 2 * time.Second

// within gives an attempt its part of the time that ctx has left.
func within(ctx context.Context, parts int, dial func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(time.Until(end)/time.Duration(parts), leastShare)) // And no later than end.
		defer cancel()
	}
	return dial(ctx)
}
