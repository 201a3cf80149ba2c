package app

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"keep-proxy/config"
	"keep-proxy/upstream"
)

// nameserver answers on loopback; answers are told the name and how often it was asked
// for its IPv4 addresses. "cname NAME" makes it an alias, and what follows are that name's.
func nameserver(t *testing.T, answers func(name string, asked int) []string) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var asked atomic.Int64
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			if reply := resolve(packet[:n], &asked, answers); reply != nil {
				_, _ = conn.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func resolve(query []byte, asked *atomic.Int64, answers func(string, int) []string) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	if q.Type == dnsmessage.TypeA {
		for _, a := range answers(strings.TrimSuffix(q.Name.String(), "."), int(asked.Add(1))) {
			head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
			if alias, ok := strings.CutPrefix(a, "cname "); ok {
				q.Name, head.Type = dnsmessage.MustNewName(alias+"."), dnsmessage.TypeCNAME
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.CNAMEResource{CNAME: q.Name}})
				continue
			}
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: netip.MustParseAddr(a).As4()}})
		}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// listener counts who connects to a loopback address.
func listener(t *testing.T, address string) (port string, connected *atomic.Int64) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	connected = &atomic.Int64{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			_ = c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, connected
}

// A name that shows an allowed address when it is checked and a forbidden one when it
// is dialled gets nowhere: it is looked up once.
func TestANameIsLookedUpOnce(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{false, true} {
		e := newEgress(config.Egress{DenyPrivate: true, Allow: []string{"127.0.0.2/32"}})
		e.resolver = nameserver(t, func(_ string, asked int) []string {
			if asked == 1 {
				return []string{"127.0.0.2"}
			}
			return []string{"127.0.0.3"}
		})
		port, connected := listener(t, "127.0.0.2:0")
		dial := e.Dial
		if read {
			dial = e.DialRead
		}
		c, err := dial(t.Context(), "tcp", "rebinding.test:"+port)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.RemoteAddr().String(); got != "127.0.0.2:"+port {
			t.Errorf("connected to %s", got)
		}
		_ = c.Close()
		if _, err := dial(t.Context(), "tcp", "rebinding.test:"+port); classOf(err) != upstream.ErrorEgress {
			t.Errorf("the forbidden address was dialled: %v", err)
		}
		if connected.Load() > 1 {
			t.Errorf("%d connections", connected.Load())
		}
	}
}

func TestOnlyTheAllowedAddressesOfANameAreDialled(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{DenyPrivate: true, Allow: []string{"127.0.0.2/32"}, Deny: []string{"denied.test"}})
	e.resolver = nameserver(t, func(name string, _ int) []string {
		return map[string][]string{
			"mixed.test": {"127.0.0.3", "127.0.0.2"}, "metadata.test": {"169.254.169.254"}, "own.test": {"127.0.0.3", "10.0.0.1"},
			"denied.test": {"127.0.0.2"},
		}[strings.ToLower(name)]
	})
	port, allowed := listener(t, "127.0.0.2:0")
	_, forbidden := listener(t, "127.0.0.3:"+port)
	c, err := e.Dial(t.Context(), "tcp", "mixed.test:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	for _, name := range []string{"metadata.test", "own.test", "denied.test", "Denied.test"} {
		if _, err := e.Dial(t.Context(), "tcp", name+":"+port); classOf(err) != upstream.ErrorEgress {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := e.Dial(t.Context(), "tcp", "nobody.test:"+port); err == nil || classOf(err) == upstream.ErrorEgress {
		t.Errorf("a name without an address: %v", err)
	}
	if allowed.Load() > 1 || forbidden.Load() > 0 {
		t.Errorf("%d allowed and %d forbidden connections", allowed.Load(), forbidden.Load())
	}
}

// An IPv4 address is one however it was spelt or came in: families are tried in turn, and what a
// refusal names is what an operator would write into proxy.egress.
func TestAnIPv4AddressIsOfItsFamily(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{DenyPrivate: true, Allow: []string{"127.0.0.2/32"}})
	e.resolver = nameserver(t, func(name string, _ int) []string {
		return map[string][]string{"allowed.test": {"127.0.0.2"}, "private.test": {"10.0.0.1"}}[strings.ToLower(name)]
	})
	for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]", "allowed.test"} {
		found, err := e.lookUp(t.Context(), "tcp", host+":80")
		if want := netip.MustParseAddrPort("127.0.0.2:80"); err != nil || len(found) != 1 || found[0] != want {
			t.Errorf("%s: %v, %v, want %v", host, found, err, want)
		}
	}
	for host, says := range map[string]string{"10.0.0.1": "10.0.0.1: it is not", "private.test": "private.test is 10.0.0.1: it is not"} {
		if _, err := e.lookUp(t.Context(), "tcp", host+":80"); err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "upstream: egress: "), says) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func classOf(err error) upstream.ErrorClass {
	if e, ok := errors.AsType[*upstream.Error](err); ok {
		return e.Class
	}
	return ""
}
