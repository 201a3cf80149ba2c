package names

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// TargetFault says what is wrong with a host:port, and how to mend it. The host is a name, an IPv4 address, or an IPv6
// address in brackets. It says nothing for one that may be connected to.
func TargetFault(target string) (what, how string) {
	host, port, err := net.SplitHostPort(target)
	_, noNumber := strconv.ParseUint(port, 10, 16)
	bracketed := strings.HasPrefix(target, "[")
	addr, _ := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "not host:port", "write the host and the port, such as db.internal:5432 or [2001:db8::1]:5432"
	case noNumber != nil || port[0] == '0':
		return "the port is not a number from 1 to 65535", "write it in digits, such as db.internal:5432"
	case addr.Zone() != "" || addr.Is4In6():
		return "an address that can be read in two ways", "write it without a zone, and IPv4 as 10.0.0.1:5432"
	case addr.IsUnspecified():
		return "nobody can connect to " + host, "write the address of the host"
	case bracketed != addr.Is6() || !IsHost(host):
		return "the host is neither a name nor an address", "write letters, digits, - and . alone, without *, and IPv6 in brackets"
	}
	return "", ""
}

// IsHost reports whether s is an IP address or a host name (RFC 1123 §2.1). An underscore is allowed, as container
// networks use it.
func IsHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if len(s) > 253 {
		return false
	}
	last := ""
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
		last = label
	}
	// A name that ends in a number is a mistyped IPv4 address.
	return strings.Trim(last, "0123456789") != ""
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for _, r := range s {
		if r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
