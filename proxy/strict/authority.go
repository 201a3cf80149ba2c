package strict

import (
	"bytes"
	"net/netip"
)

// splitAuthority parts host and port (RFC 3986 §3.2). An empty port is as good as
// none.
func splitAuthority(a []byte) (host, port []byte, f *Fault) {
	if bytes.IndexByte(a, '@') >= 0 {
		return nil, nil, FaultUserinfo
	}
	host = a
	if len(a) > 0 && a[0] == '[' {
		end := bytes.IndexByte(a, ']')
		if end < 0 || !isAddress(a[1:end]) {
			return nil, nil, FaultAuthority
		}
		host, port = a[:end+1], a[end+1:]
		if len(port) > 0 && port[0] != ':' {
			return nil, nil, FaultAuthority
		}
	} else {
		if i := bytes.IndexByte(a, ':'); i >= 0 {
			host, port = a[:i], a[i:]
		}
		if len(host) == 0 || !all(host, hostChar) {
			return nil, nil, FaultAuthority
		}
	}
	if len(port) < 2 {
		return host, nil, nil
	}
	port = port[1:]
	if n, ok := number(port); !ok || n < 1 || n > 65535 {
		return nil, nil, FaultPort
	}
	return host, port, nil
}

// isAddress reports whether b is an IPv6 address without a zone.
func isAddress(b []byte) bool {
	addr, err := netip.ParseAddr(string(b))
	return err == nil && addr.Is6() && addr.Zone() == ""
}

func undotted(host []byte) []byte {
	if n := len(host); n > 1 && host[n-1] == '.' {
		return host[:n-1]
	}
	return host
}

func samePort(a, b []byte, scheme string) bool {
	return portOf(a, scheme) == portOf(b, scheme)
}

func portOf(port []byte, scheme string) int64 {
	n, ok := number(port)
	switch {
	case ok:
		return n
	case scheme == "http":
		return 80
	case scheme == "https":
		return 443
	}
	return 0
}
