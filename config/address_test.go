package config

import (
	"strings"
	"testing"
)

// readCase is one text for a scalar: what it reads as, or what is wrong.
type readCase struct {
	name, text, want, problem string
}

func runReadCases(t *testing.T, read func(base, s string) (string, *fault), cases []readCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, f := read("/base", c.text)
			if f == nil {
				f = &fault{}
			} else if f.fix == "" {
				t.Error("a problem without a fix")
			}
			if got != c.want || f.text != c.problem {
				t.Errorf("%q reads as %q with %q, want %q with %q", c.text, got, f.text, c.want, c.problem)
			}
		})
	}
}

func TestReadListen(t *testing.T) {
	t.Parallel()
	runReadCases(t, readListen, []readCase{
		{"loopback", "127.0.0.1:8080", "127.0.0.1:8080", ""},
		{"a free port", "127.0.0.1:0", "127.0.0.1:0", ""},
		{"v6", "[::1]:8080", "[::1]:8080", ""},
		{"a name", "localhost:8080", "localhost:8080", ""},
		{"a socket", "unix:/run/keep.sock", "unix:/run/keep.sock", ""},
		{"a socket by a longer way", "unix:/run/../run/keep.sock", "unix:/run/keep.sock", ""},
		{"a relative socket", "unix:keep.sock", "", "the path of a unix socket must be absolute"},
		{"a socket with a longer path than kernels take", "unix:/" + strings.Repeat("x", maxSocketPath), "", "the path is longer than a unix socket's may be (103 bytes)"},
		{"every interface without saying so", ":8080", "", "the host is missing"},
		{"no port", "127.0.0.1", "", "not an address"},
		{"v6 without brackets", "::1:8080:x", "", "not an address"},
		{"a port beyond the last", "127.0.0.1:65536", "", "the port is not a number from 0 to 65535"},
		{"a port by name", "127.0.0.1:http", "", "the port is not a number from 0 to 65535"},
		{"an empty port", "127.0.0.1:", "", "the port is not a number from 0 to 65535"},
		{"a mistyped address", "127.0.0.256:80", "", "the host is neither an IP address nor a host name"},
		{"a URL", "http://127.0.0.1:80", "", "not an address"},
		{"a label that begins with a dash", "-a.example:80", "", "the host is neither an IP address nor a host name"},
		{"a name with an empty label", "a..example:80", "", "the host is neither an IP address nor a host name"},
		{"a name that is too long", strings.Repeat("a.", 127) + "a:80", "", "the host is neither an IP address nor a host name"},
	})
}

func TestReadAdvertise(t *testing.T) {
	t.Parallel()
	runReadCases(t, readAdvertise, []readCase{
		{"a name", "proxy.internal:8080", "proxy.internal:8080", ""},
		{"a container's name", "keep_proxy:8080", "keep_proxy:8080", ""},
		{"no port", "proxy.internal", "", "not an address"},
		{"a port that nobody can use", "proxy.internal:0", "", "the port is not a number from 1 to 65535"},
		{"an address that nobody can use", "0.0.0.0:8080", "", "nobody can connect to 0.0.0.0"},
		{"an odd name", "proxy internal:8080", "", "the host is neither an IP address nor a host name"},
	})
}

func TestReadEgress(t *testing.T) {
	t.Parallel()
	runReadCases(t, readEgress, []readCase{
		{"a prefix", "10.0.0.0/8", "10.0.0.0/8", ""},
		{"a v6 prefix", "FD00::/8", "fd00::/8", ""},
		{"a prefix with host bits", "10.1.2.3/8", "", "the prefix has bits set behind its length"},
		{"no prefix", "10.0.0.0/33", "", "not an address prefix"},
		{"an address", "10.0.0.1", "10.0.0.1", ""},
		{"an address and port", "10.0.0.1:443", "10.0.0.1:443", ""},
		{"a v6 address", "fd00::1", "fd00::1", ""},
		{"a v6 address and port", "[fd00::1]:443", "[fd00::1]:443", ""},
		{"a host in capitals with a dot at its end", "API.Example.", "api.example", ""},
		{"a suffix", "*.example", "*.example", ""},
		{"a suffix and port", "*.example:8443", "*.example:8443", ""},
		{"everything", "*", "", "not a host"},
		{"a star inside", "a.*.example", "", "not a host"},
		{"a scheme", "https://api.example", "", "not an address prefix"},
		{"port zero", "api.example:0", "", "not a host"},
		{"nothing", "", "", "not a host"},
	})
}

func TestReadConnectorHost(t *testing.T) {
	t.Parallel()
	runReadCases(t, readConnectorHost, []readCase{
		{"a pattern of the rules", "sqs.{region}.amazonaws.com", "sqs.{region}.amazonaws.com", ""},
		{"a host and port", "api.example:8443", "api.example:8443", ""},
		{"a path", "api.example/v1", "", "not a host"},
		{"user information", "me@api.example", "", "not a host"},
		{"nothing", "", "", "not a host"},
		{"a line break", "a\nb", "", "not a host"},
	})
}

func TestReadTarget(t *testing.T) {
	t.Parallel()
	runReadCases(t, readTarget, []readCase{
		{"a name", "DB.internal:5432", "db.internal:5432", ""},
		{"this machine", "localhost:6379", "localhost:6379", ""},
		{"an address", "10.0.0.1:5432", "10.0.0.1:5432", ""},
		{"another spelling of an address", "[2001:DB8:0::1]:5432", "[2001:db8::1]:5432", ""},
		{"no port", "db.internal", "", "not host:port"},
		{"a pattern", "*.internal:5432", "", "the host is neither a name nor an address"},
		{"port zero", "db.internal:0", "", "the port is not a number from 1 to 65535"},
		{"nothing", "", "", "not host:port"},
	})
}

func TestReadPath(t *testing.T) {
	t.Parallel()
	runReadCases(t, readPath, []readCase{
		{"nothing stays nothing", "", "", ""},
		{"an absolute path", "/a/../b", "/b", ""},
		{"a relative path", "a/b", "/base/a/b", ""},
		{"a tilde alone", "~", "", "~ is a shell's abbreviation and is not expanded here"},
		{"a tilde in a name", "/a~b", "/a~b", ""},
		{"a NUL", "/a\x00", "", "a path can't hold NUL"},
	})
}
