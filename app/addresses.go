package app

import (
	"net/netip"
	"slices"
)

// notPublic are the prefixes of the IANA registries of special-purpose addresses
// (RFC 6890) which netip doesn't tell from public ones, and those that embed an IPv4
// address, which may be a private one.
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
