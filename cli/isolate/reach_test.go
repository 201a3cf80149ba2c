package isolate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

// resolved is what names resolve to outside.
func resolved(found map[string]string) func(context.Context, string) ([]netip.Addr, error) {
	return func(_ context.Context, host string) ([]netip.Addr, error) {
		if found[host] == "" {
			return nil, errors.New("no such host")
		}
		addr := netip.MustParseAddr(found[host])
		return []netip.Addr{addr.Next(), addr}, nil
	}
}

func mustReach(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), targets ...string) *Reach {
	t.Helper()
	return NewReach(targets, dial, resolved(map[string]string{
		"db": "10.0.0.20", "db.corp.example.": "10.0.0.20", "db.elsewhere.example.": "10.0.0.30", "db.internal": "::ffff:10.0.0.7", "here.internal": "127.0.0.1", "localhost": "127.0.0.1",
	}))
}

func TestWhatNamesNoServiceIsNoEntry(t *testing.T) {
	for _, target := range []string{"db.internal", "db.internal:", "db.internal:65536", ":5432", "*.internal:5432", "db.internal\n:5432"} {
		if ports := mustReach(t, nil, target).Ports(); len(ports) > 0 {
			t.Errorf("%q is an entry at %d", target, ports)
		}
	}
}

func TestTargetIsTheEntryThatAConnectionIsFor(t *testing.T) {
	r := mustReach(t, nil,
		"db.internal:5432", "db:5432", "10.0.0.5:5432", "[2001:db8::1]:6379", "localhost:8080", "127.0.0.1:9090", "127.0.0.9:9090",
		"here.internal:7000", "db.internal:6379", "127.0.0.9:7001")
	for _, c := range []struct{ name, found, to, want string }{
		{"a name", "db.internal", "198.18.0.2:5432", "db.internal:5432"},
		{"a name in capitals with a dot at its end", "Db.Internal.", "198.18.0.2:5432", "db.internal:5432"},
		{"a name on another port", "db.internal", "198.18.0.2:5433", ""},
		{"a name that no entry has", "other.internal", "198.18.0.2:5432", ""},
		{"a name that ends alike", "my-db.internal", "198.18.0.2:5432", ""},
		{"a name that a search list lengthened", "db.corp.example", "198.18.0.2:5432", "db:5432"},
		{"a name that only begins like an entry's", "db.elsewhere.example", "198.18.0.2:5432", ""},
		{"a lengthened name that nobody knows", "db.unknown.example", "198.18.0.2:5432", ""},
		{"an equal name goes before one that is lengthened", "db", "198.18.0.2:5432", "db:5432"},
		{"a name never fits an entry's address", "a.example", "10.0.0.5:5432", ""},
		{"an address", "", "10.0.0.5:5432", "10.0.0.5:5432"},
		{"an IPv4 address within IPv6", "", "[::ffff:10.0.0.5]:5432", "10.0.0.5:5432"},
		{"an address on another port", "", "10.0.0.5:6379", ""},
		{"an address that no entry has", "", "10.0.0.6:5432", ""},
		{"an IPv6 address", "", "[2001:db8::1]:6379", "[2001:db8::1]:6379"},
		{"an address that an entry's name resolves to", "", "10.0.0.7:5432", "db.internal:5432"},
		{"the same on another entry's port", "", "10.0.0.7:8080", ""},
		{"localhost by IPv4", "", "127.0.0.1:8080", "localhost:8080"},
		{"localhost by IPv6", "", "[::1]:8080", "localhost:8080"},
		{"localhost by any address", "", "0.0.0.0:8080", "localhost:8080"},
		{"localhost by any IPv6 address", "", "[::]:9090", "127.0.0.1:9090"},
		{"localhost's other address", "", "[::1]:9090", "127.0.0.1:9090"},
		{"a loopback address that an entry has", "", "127.0.0.9:9090", "127.0.0.9:9090"},
		{"a loopback address that no entry has", "", "127.0.0.8:9090", ""},
		{"localhost isn't the rest of loopback", "", "127.0.0.1:7001", ""},
		{"a name that resolves to a local address stands for none", "", "127.0.0.1:7000", ""},
		{"a local address isn't that of a name elsewhere", "", "127.0.0.1:5432", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := r.Target(t.Context(), c.found, netip.MustParseAddrPort(c.to)); got != c.want {
				t.Errorf("target = %q, want %q", got, c.want)
			}
		})
	}
	if got := r.Target(t.Context(), "", netip.AddrPortFrom(netip.Addr{}, 5432)); got != "" {
		t.Errorf("no address is for %q", got)
	}
	for name, want := range map[string]bool{"DB.internal.": true, "db.corp.example": true, "other.internal": false, "10.0.0.5": false, "": false} {
		if got := r.Names(name); got != want {
			t.Errorf("an entry has the name %q: %v, want %v", name, got, want)
		}
	}
	if got, want := r.Ports(), []uint16{5432, 5432, 5432, 6379, 8080, 9090, 9090, 7000, 6379, 7001}; !slices.Equal(got, want) {
		t.Errorf("ports = %v, want %v", got, want)
	}
}

// tcpPair is a connection over loopback, seen from both sides.
func tcpPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); accepted.Close() })
	return c.(*net.TCPConn), accepted.(*net.TCPConn)
}

type carried struct {
	sent, received int64
	err            error
}

// carrying is a client and a service that Carry has joined.
func carrying(ctx context.Context, t *testing.T) (client, service *net.TCPConn, end chan carried) {
	t.Helper()
	client, c := tcpPair(t)
	there, service := tcpPair(t)
	r := mustReach(t, func(_ context.Context, network, address string) (net.Conn, error) {
		if network != "tcp" || address != "db.internal:5432" {
			t.Errorf("dialled %s %s", network, address)
		}
		return there, nil
	}, "db.internal:5432", "other:1")
	end = make(chan carried, 1)
	go func() {
		var got carried
		got.sent, got.received, got.err = r.Carry(ctx, hidden{c}, "db.internal:5432")
		end <- got
	}()
	return client, service, end
}

// hidden is a connection around another one.
type hidden struct{ net.Conn }

func (h hidden) NetConn() net.Conn { return h.Conn }
func (h hidden) CloseWrite() error { return h.Conn.(*net.TCPConn).CloseWrite() }

func mustRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

// mustBeReset demands that the other side has reset a connection.
func mustBeReset(t *testing.T, who string, c net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the %s's connection ended with %v, want a reset", who, err)
	}
}

func TestCarryCarriesBothWaysAndKeepsHalfClose(t *testing.T) {
	client, service, end := carrying(t.Context(), t)
	io.WriteString(service, "greeting") // A service may speak first.
	mustRead(t, client, "greeting")
	io.WriteString(client, "question")
	client.CloseWrite()
	if got, err := io.ReadAll(service); err != nil || string(got) != "question" {
		t.Fatalf("the service read %q, %v", got, err)
	}
	answer := bytes.Repeat([]byte("answer"), 100_000)
	go func() { service.Write(answer); service.CloseWrite() }()
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, answer) {
		t.Fatalf("after its end the client read %d bytes, %v", len(got), err)
	}
	if got, want := <-end, (carried{8, int64(8 + len(answer)), nil}); got != want {
		t.Errorf("carried %+v, want %+v", got, want)
	}
}

func TestCarryPassesAResetOn(t *testing.T) {
	for _, who := range []string{"client", "service"} {
		for _, half := range []bool{false, true} {
			t.Run(who+map[bool]string{true: " when the other has ended its direction"}[half], func(t *testing.T) {
				one, other, end := carrying(t.Context(), t)
				if who == "service" {
					one, other = other, one
				}
				if half {
					other.CloseWrite()
					if _, err := one.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
						t.Fatal(err)
					}
				} else {
					io.WriteString(one, "x")
					mustRead(t, other, "x")
				}
				one.SetLinger(0)
				one.Close()
				mustBeReset(t, "other", other)
				if got := <-end; !errors.Is(got.err, syscall.ECONNRESET) {
					t.Errorf("error = %v, want a reset", got.err)
				}
			})
		}
	}
}

func TestCarryResetsBothWhenTheRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	client, service, end := carrying(ctx, t)
	io.WriteString(client, "x")
	mustRead(t, service, "x")
	over := errors.New("the run is over")
	cancel(over)
	mustBeReset(t, "client", client)
	mustBeReset(t, "service", service)
	if got := <-end; !errors.Is(got.err, over) {
		t.Errorf("error = %v, want %v", got.err, over)
	}
}

func TestCarryResetsAClientThatItCannotConnect(t *testing.T) {
	down := errors.New("connection refused")
	client, there := tcpPair(t)
	r := mustReach(t, func(context.Context, string, string) (net.Conn, error) { return nil, down }, "db.internal:5432")
	if _, _, err := r.Carry(t.Context(), hidden{there}, "db.internal:5432"); !errors.Is(err, down) {
		t.Errorf("error = %v, want %v", err, down)
	}
	mustBeReset(t, "client", client)
}
