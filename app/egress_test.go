package app

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"keep-proxy/config"
	"keep-proxy/upstream"
)

func TestOnlyPublicAddressesAreDialledUnlessAllowed(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{
		DenyPrivate: true,
		Allow:       []string{"10.1.0.0/16", "Intern.test:8443", "192.168.1.9:80", "[::ffff:192.168.1.8]:80", "[fd00::9]:80", "[fd00::8]"},
		Deny:        []string{"203.0.113.0/24", "10.1.9.0/24", "::ffff:198.51.100.128/121", "*.Bad.test", "bad.test", "mail.test:25"},
	})
	for _, c := range []struct {
		name, host, at string
		// refused is a part of the reason, empty for allowed.
		refused string
	}{
		{"a public address", "api.test", "198.51.100.7:443", ""},
		{"a public IPv6 address", "api.test", "[2001:4860::1]:443", ""},
		{"loopback", "api.test", "127.0.0.1:80", "not a public address"},
		{"loopback in IPv6", "api.test", "[::1]:80", "not a public address"},
		{"loopback mapped into IPv6", "api.test", "[::ffff:127.0.0.1]:80", "not a public address"},
		{"loopback as an IPv4-compatible address", "api.test", "[::127.0.0.1]:80", "not a public address"},
		{"a private address", "api.test", "10.0.0.1:80", "not a public address"},
		{"a private address behind NAT64", "api.test", "[64:ff9b::a00:1]:80", "not a public address"},
		{"the metadata service of clouds behind NAT64", "api.test", "[64:ff9b::a9fe:a9fe]:80", "not a public address"},
		{"a public address behind NAT64", "api.test", "[64:ff9b::c633:6407]:443", ""},
		{"a denied prefix behind NAT64", "api.test", "[64:ff9b::cb00:7109]:443", "proxy.egress.deny"},
		{"an allowed prefix behind NAT64", "api.test", "[64:ff9b::a01:203]:443", "not a public address"},
		{"a private address translated into IPv6", "api.test", "[::ffff:0:a00:1]:80", "not a public address"},
		{"a public address translated into IPv6", "api.test", "[::ffff:0:c633:6407]:80", "not a public address"},
		{"a segment of a route", "api.test", "[5f00::1]:80", "not a public address"},
		{"a private address behind Teredo", "api.test", "[2001:0:a00:1::1]:80", "not a public address"},
		{"a private address behind 6to4", "api.test", "[2002:a00:1::1]:80", "not a public address"},
		{"a unique local address", "api.test", "[fd00::1]:80", "not a public address"},
		{"the metadata service of clouds", "api.test", "169.254.169.254:80", "not a public address"},
		{"a link-local address with a zone", "api.test", "[fe80::1%eth0]:80", "not a public address"},
		{"an address shared by a carrier's customers", "api.test", "100.64.0.1:80", "not a public address"},
		{"any address of this machine", "api.test", "0.0.0.0:80", "not a public address"},
		{"an address of this network", "api.test", "0.0.0.1:80", "not a public address"},
		{"any address of this machine in IPv6", "api.test", "[::]:80", "not a public address"},
		{"multicast", "api.test", "224.0.0.1:80", "not a public address"},
		{"multicast in IPv6", "api.test", "[ff0e::1]:80", "not a public address"},
		{"everybody on the link", "api.test", "255.255.255.255:80", "not a public address"},
		{"a private address of the second class", "api.test", "172.16.0.1:80", "not a public address"},
		{"a private address of the third class", "api.test", "192.168.0.1:80", "not a public address"},
		{"an address of a protocol", "api.test", "192.0.0.9:80", "not a public address"},
		{"an address for benchmarks", "api.test", "198.19.0.1:80", "not a public address"},
		{"a reserved address", "api.test", "240.0.0.1:80", "not a public address"},
		{"a private address behind a NAT64 of one's own", "api.test", "[64:ff9b:1::a00:1]:80", "not a public address"},
		{"a site-local address", "api.test", "[fec0::1]:80", "not a public address"},
		{"an allowed prefix", "api.test", "10.1.2.3:80", ""},
		{"an allowed prefix mapped into IPv6", "api.test", "[::ffff:10.1.2.3]:80", ""},
		{"a denied prefix inside of an allowed one", "api.test", "10.1.9.3:80", "proxy.egress.deny"},
		{"an allowed name and port", "intern.test", "10.9.9.9:8443", ""},
		{"an allowed name at another port", "intern.test", "10.9.9.9:443", "not a public address"},
		{"an allowed address and port", "x.test", "192.168.1.9:80", ""},
		{"an allowed address at another port", "x.test", "192.168.1.9:443", "not a public address"},
		{"an allowed address that was mapped into IPv6", "x.test", "192.168.1.8:80", ""},
		{"an allowed IPv6 address and port", "x.test", "[fd00::9]:80", ""},
		{"an allowed IPv6 address at any port", "x.test", "[fd00::8]:8080", ""},
		{"a denied prefix", "api.test", "203.0.113.9:443", "proxy.egress.deny"},
		{"a denied prefix mapped into IPv6", "api.test", "[::ffff:203.0.113.9]:443", "proxy.egress.deny"},
		{"a prefix that was denied as mapped into IPv6", "api.test", "198.51.100.129:443", "proxy.egress.deny"},
		{"the same behind NAT64", "api.test", "[64:ff9b::c633:6481]:443", "proxy.egress.deny"},
		{"a denied name", "bad.test", "198.51.100.7:443", "proxy.egress.deny"},
		{"a denied suffix", "very.bad.test", "198.51.100.7:443", "proxy.egress.deny"},
		{"a denied name and port", "mail.test", "198.51.100.7:25", "proxy.egress.deny"},
		{"a denied name at another port", "mail.test", "198.51.100.7:443", ""},
		{"a name that only ends alike", "notbad.test", "198.51.100.7:443", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := e.check(c.host, netip.MustParseAddrPort(c.at))
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s at %s: %v, want %q", c.host, c.at, err, c.refused)
			}
		})
	}
}

// What is denied or ours stays so behind everything that turns addresses into others, also where
// private addresses aren't denied.
func TestAnEmbeddedAddressIsJudgedToo(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{Deny: []string{"169.254.169.254"}})
	e.protect(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 7070})
	for name, at := range map[string]string{
		"NAT64, denied":           "[64:ff9b::a9fe:a9fe]:80",
		"IPv4-compatible, denied": "[::a9fe:a9fe]:80",
		"IPv4-translated, denied": "[::ffff:0:a9fe:a9fe]:80",
		"6to4, denied":            "[2002:a9fe:a9fe::1]:80",
		"Teredo, denied":          "[2001:0:c000:201::5601:5601]:80",
		"NAT64, ours":             "[64:ff9b::c000:209]:7070",
		"6to4, ours":              "[2002:c000:209::]:7070",
	} {
		if err := e.check("api.test", netip.MustParseAddrPort(at)); err == nil {
			t.Errorf("%s: %s was let through", name, at)
		}
	}
	for _, at := range []string{"[64:ff9b::a9fe:a9fd]:80", "[64:ff9b::c000:209]:7071", "[2001:db8::a9fe:a9fe]:80"} {
		if err := e.check("api.test", netip.MustParseAddrPort(at)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestADeniedPrefixCoversAddressesWithAZone(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{Deny: []string{"fe80::/10"}})
	if err := e.check("x.test", netip.MustParseAddrPort("[fe80::1%eth0]:80")); err == nil {
		t.Error("an address with a zone was let through")
	}
}

// Whatever the policy allows, requests must not come back to us: the admin API trusts
// who can reach it, and a proxy that dials itself never ends.
func TestOurOwnListenersAreNeverDialled(t *testing.T) {
	t.Parallel()
	at := func(listen string) *egress {
		e := newEgress(config.Egress{Allow: []string{"0.0.0.0/0", "::/0", "localhost", "admin.test"}})
		e.interfaces = func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP("198.51.100.7"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("fe80::7"), Mask: net.CIDRMask(64, 128)}}, nil
		}
		e.protect(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(listen)))
		return e
	}
	for _, c := range []struct {
		name, listen, dial string
		own                bool
	}{
		{"the same address", "127.0.0.1:8081", "127.0.0.1:8081", true},
		{"the same address mapped into IPv6", "127.0.0.1:8081", "[::ffff:127.0.0.1]:8081", true},
		{"the unspecified address, which is this machine", "127.0.0.1:8081", "0.0.0.0:8081", true},
		{"the unspecified IPv6 address", "[::1]:8081", "[::]:8081", true},
		{"listening at an address mapped into IPv6", "[::ffff:127.0.0.1]:8081", "127.0.0.1:8081", true},
		{"listening at an address with a zone", "[fe80::9%eth0]:8081", "[fe80::9%2]:8081", true},
		{"another port", "127.0.0.1:8081", "127.0.0.1:8082", false},
		{"listening everywhere, loopback", "[::]:8080", "127.0.0.1:8080", true},
		{"listening everywhere, another loopback address", "0.0.0.0:8080", "127.1.2.3:8080", true},
		{"listening everywhere, a public address of this machine", "[::]:8080", "198.51.100.7:8080", true},
		{"listening everywhere, an address with a zone", "[::]:8080", "[fe80::7%eth0]:8080", true},
		{"listening everywhere, another machine", "[::]:8080", "198.51.100.8:8080", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := at(c.listen).check("admin.test", netip.MustParseAddrPort(c.dial))
			if (err != nil) != c.own || err != nil && !strings.Contains(err.Error(), "keep-proxy itself") {
				t.Errorf("listening at %s, dialling %s: %v", c.listen, c.dial, err)
			}
		})
	}
	t.Run("listening everywhere, without a list of interfaces", func(t *testing.T) {
		t.Parallel()
		e := at("[::]:8080")
		e.interfaces = func() ([]net.Addr, error) { return nil, errors.New("none") }
		for dial, own := range map[string]bool{"10.0.0.7:8080": true, "[fe80::7%eth0]:8080": true, "127.0.0.1:8080": true, "198.51.100.7:8080": false} {
			if err := e.check("admin.test", netip.MustParseAddrPort(dial)); (err != nil) != own {
				t.Errorf("dialling %s: %v", dial, err)
			}
		}
	})
	t.Run("through a name, and without a list of interfaces", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		e := at(l.Addr().String())
		e.interfaces = func() ([]net.Addr, error) { return nil, errors.New("none") }
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, host := range []string{"localhost", "127.0.0.1", "0.0.0.0"} {
			c, err := e.Dial(t.Context(), "tcp", net.JoinHostPort(host, port))
			var refused *upstream.Error
			if err == nil {
				_ = c.Close()
			}
			if !errors.As(err, &refused) && host != "localhost" {
				t.Errorf("%s: %v, want a refusal by policy", host, err)
			} else if err == nil {
				t.Errorf("%s was dialled", host)
			}
		}
	})
}
