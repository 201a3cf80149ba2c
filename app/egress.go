package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"keep-proxy/config"
	"keep-proxy/upstream"
)

// egress connects to upstreams and refuses addresses that policy forbids. Names
// are looked up here, so that what was checked is what is dialled.
type egress struct {
	denyPrivate bool
	allow, deny []destination
	dialer      net.Dialer
	bound       *descriptorBound
	resolver    *net.Resolver
	// interfaces lists this machine's own addresses.
	interfaces func() ([]net.Addr, error)

	mu  sync.RWMutex
	own map[netip.AddrPort]bool
}

// destination is one entry of proxy.egress: a prefix, an address, a name or a suffix. All but a prefix have an optional
// port.
type destination struct {
	prefix netip.Prefix
	name   string // with a leading dot for a suffix
	port   string
}

func newEgress(c config.Egress) *egress {
	bound := &descriptorBound{}
	return &egress{
		bound: bound, dialer: net.Dialer{Control: bound.control},
		denyPrivate: c.DenyPrivate, allow: destinations(c.Allow), deny: destinations(c.Deny),
		resolver: bound.resolver(), interfaces: net.InterfaceAddrs, own: make(map[netip.AddrPort]bool),
	}
}

func destinations(entries []string) []destination {
	out := make([]destination, 0, len(entries))
	for _, e := range entries {
		out = append(out, parseDestination(e))
	}
	return out
}

func parseDestination(entry string) destination {
	if p, err := netip.ParsePrefix(entry); err == nil {
		return destination{prefix: unmapped(p.Masked())}
	}
	host, port := entry, ""
	if h, p, err := net.SplitHostPort(entry); err == nil {
		host, port = h, p
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		a = a.Unmap()
		return destination{prefix: netip.PrefixFrom(a, a.BitLen()), port: port}
	}
	return destination{name: strings.ToLower(strings.TrimPrefix(host, "*")), port: port}
}

// mappedBits are those before the IPv4 address in one that is mapped into IPv6.
const mappedBits = 96

// unmapped is the IPv4 prefix that is meant by one that is mapped into IPv6. Addresses are unmapped before they are
// looked at, and a mapped prefix contains none of them.
func unmapped(p netip.Prefix) netip.Prefix {
	if !p.Addr().Is4In6() || p.Bits() < mappedBits {
		return p
	}
	return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
}

// fits reports whether the entry covers host, as it was asked for, at this address.
func (d destination) fits(host string, at netip.AddrPort) bool {
	if d.port != "" && d.port != fmt.Sprint(at.Port()) {
		return false
	}
	switch {
	case d.prefix.IsValid():
		return d.prefix.Contains(at.Addr())
	case strings.HasPrefix(d.name, "."):
		return strings.HasSuffix(host, d.name)
	}
	return d.name != "" && d.name == host
}

// protect adds listeners of our own, which are never dialled.
func (e *egress) protect(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		e.mu.Lock()
		e.own[tcp.AddrPort()] = true
		e.mu.Unlock()
	}
}

// release takes away a listener of our own that is closed: its port may be another's now.
func (e *egress) release(addr net.Addr) {
	if tcp, ok := addr.(*net.TCPAddr); ok {
		e.mu.Lock()
		delete(e.own, tcp.AddrPort())
		e.mu.Unlock()
	}
}

var errOwn = errors.New("this is a listener of keep-proxy itself")

// check says why an address may not be dialled; nil allows.
func (e *egress) check(host string, at netip.AddrPort) error {
	// A prefix contains no address with a zone.
	at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	meant := []netip.AddrPort{at}
	if inner, ok := embeddedIPv4(at.Addr()); ok {
		meant = append(meant, netip.AddrPortFrom(inner, at.Port()))
	}
	for _, m := range meant {
		if e.isOwn(m) {
			return errOwn
		}
		for _, d := range e.deny {
			if d.fits(host, m) {
				return errors.New("proxy.egress.deny lists it")
			}
		}
	}
	for _, d := range e.allow {
		if d.fits(host, at) {
			return nil
		}
	}
	if e.denyPrivate && !public(at.Addr()) {
		return errors.New("it is not a public address; proxy.egress.allow can except it")
	}
	return nil
}

// isOwn reports whether at reaches one of our own listeners. An unspecified address
// stands for this machine, whether it is listened at or dialled.
func (e *egress) isOwn(at netip.AddrPort) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	for own := range e.own {
		switch {
		case own.Port() != at.Port():
		case own.Addr().Unmap().WithZone("") == at.Addr(), at.Addr().IsUnspecified():
			return true
		case own.Addr().IsUnspecified() && e.isHere(at.Addr()):
			return true
		}
	}
	return false
}

// isHere reports whether an address is one of this machine's. If they can't be
// listed, only public ones are not.
func (e *egress) isHere(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	list, err := e.interfaces()
	if err != nil {
		return !public(a)
	}
	return slices.ContainsFunc(list, func(addr net.Addr) bool {
		p, err := netip.ParsePrefix(addr.String())
		return err == nil && p.Addr().Unmap().WithZone("") == a
	})
}

// Dial connects to host:port, trying its allowed addresses one after the other. It tries the next only if nothing can
// have been sent to the one before.
func (e *egress) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	allowed, err := e.lookUp(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return inTurn(ctx, allowed, func(ctx context.Context, at netip.AddrPort) (net.Conn, error) {
		return e.dialer.DialContext(ctx, network, at.String())
	})
}

// lookUp returns the addresses of host:port that may be dialled, at least one. What is
// returned is what is dialled: a name that changes meanwhile changes nothing.
func (e *egress) lookUp(ctx context.Context, network, addr string) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := e.resolver.LookupPort(ctx, network, port)
	if err != nil {
		return nil, err
	}
	addresses, err := e.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var allowed []netip.AddrPort
	var problems []string
	for _, a := range addresses {
		at := netip.AddrPortFrom(a.Unmap(), uint16(number))
		if err := e.check(strings.ToLower(host), at); err != nil {
			problems = append(problems, located(host, at.Addr())+": "+err.Error())
			continue
		}
		allowed = append(allowed, at)
	}
	switch {
	case len(allowed) > 0:
		return allowed, nil
	case len(problems) == 0:
		return nil, errors.New(host + " has no address")
	}
	return nil, &upstream.Error{Class: upstream.ErrorEgress, Text: strings.Join(problems, "; ")}
}

// located names a host with the address that was found for it.
func located(host string, at netip.Addr) string {
	if host == at.String() {
		return host
	}
	return host + " is " + at.String()
}

// notPublic are special-purpose prefixes of the IANA registries (RFC 6890) which netip doesn't tell from public ones.
// With them are those that embed an IPv4 address, which may be a private one.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // shared between a carrier's customers
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // reserved
	compatible,
	translated,
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 of one's own: where the IPv4 address is, only the network knows
	teredo,
	sixToFour,
	netip.MustParsePrefix("5f00::/16"), // segments of a route (RFC 9602)
	netip.MustParsePrefix("fec0::/10"), // site-local
}

// Prefixes that embed an IPv4 address.
var (
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, 2.5.5.1
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765, 2.1
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052, 2.1
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380, 4: the last 32 bits, each turned over
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056, 2: the 32 bits after the prefix
)

// embeddedIPv4 is the IPv4 address that something between here and there may turn a into.
func embeddedIPv4(a netip.Addr) (inner netip.Addr, ok bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch last := [4]byte(b[12:]); {
	case compatible.Contains(a), translated.Contains(a), nat64.Contains(a):
		return netip.AddrFrom4(last), true
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^last[0], ^last[1], ^last[2], ^last[3]}), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

// public reports whether anybody on the internet could mean a. Behind the well-known NAT64
// is what the embedded address is: in a network with IPv6 alone everything else is there.
func public(a netip.Addr) bool {
	if nat64.Contains(a) {
		a, _ = embeddedIPv4(a)
	}
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// clientCertificates finds the certificate for the upstream at host:port that asks for one: the first whose host fits.
// Files are read at each handshake, as they rotate. One that can't be read ends the handshake, and nothing is sent.
func clientCertificates(list []config.ClientCert) func(addr string) (*tls.Certificate, error) {
	if len(list) == 0 {
		return nil
	}
	return func(addr string) (*tls.Certificate, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if !parseDestination(c.Host).fits(strings.ToLower(host), literal(host, port)) {
				continue
			}
			pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
			if err != nil {
				return nil, fmt.Errorf("proxy.client_certs of %s: %w", c.Host, err)
			}
			return &pair, nil
		}
		return nil, nil
	}
}

// literal is the port, at the address that a host is, if it is one.
func literal(host, port string) netip.AddrPort {
	a, _ := netip.ParseAddr(host) // Else the zero one, which no prefix contains.
	return netip.AddrPortFrom(a.Unmap(), portNumber(port))
}
