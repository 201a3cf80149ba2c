package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"keep-proxy/internal/names"
)

// maxSocketPath is the longest unix socket path that every supported kernel takes, without the NUL at its end. The
// kernel's sun_path has 104 bytes on darwin, 108 on Linux.
const maxSocketPath = 103

const unixPrefix = "unix:"

var (
	faultAddress = &fault{"not an address", "write host:port, such as 127.0.0.1:8080, or unix:/absolute/path"}
	faultPort    = &fault{"the port is not a number from 0 to 65535", "write host:port, such as 127.0.0.1:8080; port 0 takes a free one"}
	faultHost    = &fault{"the host is neither an IP address nor a host name", "write an IP address, or letters, digits, - and . alone"}
)

// readListen reads host:port or unix:/absolute/path. An empty host, which would
// listen everywhere without saying so, is refused.
func readListen(_, s string) (string, *fault) {
	if path, ok := strings.CutPrefix(s, unixPrefix); ok {
		return readSocket(path)
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", faultAddress
	}
	if host == "" {
		return "", &fault{"the host is missing", "write 127.0.0.1 for this machine alone, or 0.0.0.0 or [::] for every interface"}
	}
	if !names.IsHost(host) {
		return "", faultHost
	}
	if !isPort(port, 0) {
		return "", faultPort
	}
	return s, nil
}

// readRunListen reads host:port.
func readRunListen(base, s string) (string, *fault) {
	if strings.HasPrefix(s, unixPrefix) {
		return "", &fault{"a run's own listener is for clients that take host:port alone", "write host:port, such as 127.0.0.1:0"}
	}
	return readListen(base, s)
}

func readSocket(path string) (string, *fault) {
	switch {
	case !filepath.IsAbs(path) || strings.ContainsRune(path, 0):
		return "", &fault{"the path of a unix socket must be absolute", "write unix:/run/keep-proxy/proxy.sock"}
	case len(path) > maxSocketPath:
		return "", &fault{"the path is longer than a unix socket's may be (" + strconv.Itoa(maxSocketPath) + " bytes)", "use a shorter path"}
	default:
		return unixPrefix + filepath.Clean(path), nil
	}
}

// readAdvertise reads the host:port that others use.
func readAdvertise(_, s string) (string, *fault) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", &fault{"not an address", "write host:port as sandboxes reach the proxy, such as proxy.internal:8080"}
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return "", &fault{"nobody can connect to " + host, "write the address that sandboxes use"}
	}
	if !names.IsHost(host) {
		return "", faultHost
	}
	if !isPort(port, 1) {
		return "", &fault{"the port is not a number from 1 to 65535", "write the port that sandboxes use"}
	}
	return s, nil
}

// readHostPattern reads host, host:port or *.suffix with an optional port. It returns it in lower case without a
// trailing dot.
func readHostPattern(_, s string) (string, *fault) {
	wrong := &fault{"not a host", "write a host name or address, *.suffix for every name below it, and :port for one port only; no scheme or path"}
	host, port := splitPort(s)
	if port != "" && !isPort(port, 1) {
		return "", wrong
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if !names.IsHost(strings.TrimPrefix(host, "*.")) {
		return "", wrong
	}
	if port == "" {
		return host, nil
	}
	return net.JoinHostPort(host, port), nil
}

// readTarget reads the host:port of one service. It returns names in lower case, and addresses in their shortest form.
func readTarget(_, s string) (string, *fault) {
	if what, how := names.TargetFault(s); what != "" {
		return "", &fault{what, how}
	}
	if address, err := netip.ParseAddrPort(s); err == nil {
		return address.String(), nil
	}
	return strings.ToLower(s), nil
}

// readEgress reads what readHostPattern does, and address prefixes.
func readEgress(base, s string) (string, *fault) {
	if !strings.Contains(s, "/") {
		return readHostPattern(base, s)
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return "", &fault{"not an address prefix", "write one such as 10.0.0.0/8 or fd00::/8"}
	}
	if prefix != prefix.Masked() {
		return "", &fault{"the prefix has bits set behind its length", "write " + prefix.Masked().String()}
	}
	return prefix.String(), nil
}

// readConnectorHost reads an entry of settings.hosts. Patterns with {variables}
// are judged by the rules, so only what can't be a host is refused here.
func readConnectorHost(_, s string) (string, *fault) {
	if s == "" || strings.ContainsAny(s, "/@?# \t") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return "", &fault{"not a host", "write host or host:port, without scheme or path"}
	}
	return s, nil
}

// splitPort parts host:port, [v6]:port and bare hosts, v6 addresses included.
func splitPort(s string) (host, port string) {
	if h, p, err := net.SplitHostPort(s); err == nil && p != "" {
		return h, p
	}
	return s, ""
}

func isPort(s string, least int) bool {
	n, fault := readInt("", s)
	return fault == nil && n >= least && n <= 65535
}
