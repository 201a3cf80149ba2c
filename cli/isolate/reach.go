package isolate

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Reach carries connections to what the command may reach past the proxy. Nobody looks into them.
type Reach struct {
	entries []*reachable
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// reachable is one entry: a name or an address, and a port.
type reachable struct {
	target string
	name   string
	addr   netip.Addr
	port   uint16
}

// NewReach takes entries HOST:PORT; what is none is left out. dial connects to one, and resolve looks a name up, both
// outside.
func NewReach(
	targets []string,
	dial func(ctx context.Context, network, address string) (net.Conn, error),
	resolve func(ctx context.Context, host string) ([]netip.Addr, error),
) *Reach {
	r := &Reach{dial: dial, resolve: resolve}
	for _, target := range targets {
		host, port, _ := net.SplitHostPort(target)
		n, err := strconv.ParseUint(port, 10, 16)
		name, named := hostName(host)
		addr, noAddress := netip.ParseAddr(host)
		switch {
		case err != nil:
		case named:
			r.entries = append(r.entries, &reachable{target: target, name: name, port: uint16(n)})
		case noAddress == nil:
			r.entries = append(r.entries, &reachable{target: target, addr: addr.Unmap(), port: uint16(n)})
		}
	}
	return r
}

// Ports lists the entries' ports.
func (r *Reach) Ports() (ports []uint16) {
	for _, e := range r.entries {
		ports = append(ports, e.port)
	}
	return ports
}

// Names says whether a name may be one of the entries'.
func (r *Reach) Names(name string) bool {
	return slices.ContainsFunc(r.entries, func(e *reachable) bool { return e.name != "" && Agree(e.name, name) })
}

// Target is the entry that a connection is for, "" for none. The name is that of a synthetic address, "" for a real
// one. An entry that is equal goes before one that is alike.
func (r *Reach) Target(ctx context.Context, name string, to netip.AddrPort) (target string) {
	name, _ = hostName(name)
	for _, e := range r.entries {
		switch {
		case e.port != to.Port() || !to.IsValid():
		case e.name == name && (name != "" || e.addr == to.Addr().Unmap()):
			return e.target
		case target == "" && r.alike(ctx, e, name, to.Addr().Unmap()):
			target = e.target
		}
	}
	return target
}

// alike says whether an entry stands for a name or an address otherwise. A name that a search list lengthened is at the
// entry's own address: "db" isn't for db.elsewhere.test. What is local inside stands for this machine only if the entry
// itself says so. A name that resolves to a local address doesn't.
func (r *Reach) alike(ctx context.Context, e *reachable, name string, addr netip.Addr) bool {
	wanted := []netip.Addr{addr}
	switch {
	case name != "" && !Agree(e.name, name):
		return false
	case name != "":
		wanted, _ = r.resolve(ctx, name+".")
	case addr.IsLoopback() || addr.IsUnspecified():
		return isLocalhost(addr) && (e.name == "localhost" || isLocalhost(e.addr))
	case e.name == "":
		return false
	}
	found, err := r.resolve(ctx, e.name)
	return err == nil && slices.ContainsFunc(found, func(a netip.Addr) bool {
		return slices.ContainsFunc(wanted, func(w netip.Addr) bool { return w.Unmap() == a.Unmap() })
	})
}

// isLocalhost is true for what programs use alike for their own machine. The rest of 127.0.0.0/8 is apart.
func isLocalhost(a netip.Addr) bool {
	return a.IsUnspecified() || a == netip.IPv6Loopback() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1})
}

// Carry connects to an entry's target, and carries c there. It closes c, by a reset if it can't connect.
func (r *Reach) Carry(ctx context.Context, c net.Conn, target string) (sent, received int64, err error) {
	there, err := r.dial(ctx, "tcp", target)
	if err != nil {
		reset(c)
		return 0, 0, fmt.Errorf("reach: no connection to %s: %w", target, err)
	}
	if sent, received, err = carry(ctx, c, there); err != nil {
		err = fmt.Errorf("reach: connection to %s: %w", target, cmp.Or(context.Cause(ctx), err))
	}
	return sent, received, err
}
