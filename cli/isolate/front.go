package isolate

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/cli/netns"
)

// Front serves a command's own network, and brings its connections to the proxy. As a listener it gives connections that
// speak to a proxy. Those to the proxy's own port are as they came. All others begin with a CONNECT.
type Front struct {
	// Transparent are the ports on which clients are taken that know no proxy.
	Transparent []uint16
	// User is for the proxy; nil for none.
	User *url.Userinfo
	// Names are those of the addresses that were made up.
	Names *Names
	// Reach is what the command may reach past the proxy.
	Reach *Reach
	// Refused counts what is refused.
	Refused *Refusals
	// Log has a line for each connection past the proxy.
	Log zerolog.Logger

	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

// NewFront makes a front that takes the proxy's port alone. Its fields are set before Serve.
func NewFront() *Front {
	return &Front{conns: make(chan net.Conn), done: make(chan struct{}), Refused: NewRefusals()}
}

// firstWait bounds the wait for a client to say whom it wants.
const firstWait = 30 * time.Second

// dns is the port of the domain name system.
const dns = 53

// Spec is what a network offers: the proxy's port on loopback, and further ones on any address. With any of these DNS is
// answered.
func Spec(proxy uint16, ports []uint16) netns.Spec {
	s := netns.Spec{TCP: []string{"127.0.0.1:" + digits(proxy)}}
	for _, p := range ports {
		if p != dns {
			s.TCP = append(s.TCP, ":"+digits(p))
		}
	}
	if len(ports) > 0 {
		s.TCP, s.UDP = append(s.TCP, ":"+digits(dns)), []string{":" + digits(dns)}
	}
	return s
}

// Serve serves a network of that spec until ctx ends. It returns when all has been handed on.
func (f *Front) Serve(ctx context.Context, n *netns.Network) {
	var open sync.WaitGroup
	part := func(err error) {
		if err != nil {
			f.Log.Error().Err(err).Msg("a part of the command's network ended")
		}
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		part(f.Refused.Watch(ctx, n.Packets, f.called))
	}()
	for _, c := range n.UDP {
		open.Go(func() { part(f.Names.ServePackets(ctx, c)) })
	}
	for i, l := range n.TCP {
		at, _ := netip.ParseAddrPort(l.Addr().String())
		switch {
		case i == 0:
			open.Go(func() { each(&open, l, f.push) })
		case at.Port() == dns && len(n.UDP) > 0:
			open.Go(func() { part(f.Names.ServeStreams(ctx, l)) })
		default:
			open.Go(func() { each(&open, l, func(c net.Conn) { f.enter(ctx, c) }) })
		}
	}
	<-ctx.Done()
	<-watched
	_ = f.Close()
	n.Close()
	open.Wait()
}

// each takes a listener's connections until it is closed.
func each(open *sync.WaitGroup, l net.Listener, take func(net.Conn)) {
	for {
		c, err := accept(l)
		if err != nil {
			return
		}
		open.Go(func() { take(c) })
	}
}

// accept takes a listener's next connection. Where the system has no descriptor left it tries again.
func accept(l net.Listener) (net.Conn, error) {
	for {
		c, err := l.Accept()
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) {
			return c, err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// push hands a connection to whoever accepts it.
func (f *Front) push(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.done:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (f *Front) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (f *Front) Close() error {
	f.close.Do(func() { close(f.done) })
	return nil
}

// Addr implements net.Listener; it has no address of its own.
func (*Front) Addr() net.Addr { return &net.UnixAddr{Name: "isolated", Net: "unix"} }

// enter brings a connection that the command made to an address to whom it is for.
func (f *Front) enter(ctx context.Context, c net.Conn) {
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		reset(c)
		return
	}
	to := netip.AddrPortFrom(local.Addr().Unmap().WithZone(""), local.Port())
	found := f.Names.Of(to.Addr())
	if entry := f.Reach.Target(ctx, found, to); entry != "" {
		sent, received, err := f.Reach.Carry(ctx, c, entry)
		level := zerolog.InfoLevel
		if err != nil {
			level = zerolog.WarnLevel
		}
		f.Log.WithLevel(level).Str("target", entry).Int64("sent", sent).Int64("received", received).Err(err).Msg("past the proxy")
		return
	}
	var first heard
	if slices.Contains(f.Transparent, to.Port()) {
		_ = c.SetReadDeadline(time.Now().Add(firstWait))
		first = hear(ctx, c)
		_ = c.SetReadDeadline(time.Time{})
	}
	if len(first.said) == 0 {
		f.Refused.Note("tcp", f.called(to))
		reset(c)
		return
	}
	host := meant(first.host, found, to.Addr())
	f.push(&tunnelled{Conn: c, ahead: append(f.connect(net.JoinHostPort(host, digits(to.Port()))), first.said...), tls: first.tls})
}

// called is a target as the command called it.
func (f *Front) called(to netip.AddrPort) string {
	return net.JoinHostPort(cmp.Or(f.Names.Of(to.Addr()), to.Addr().String()), digits(to.Port()))
}

func digits(port uint16) string { return strconv.Itoa(int(port)) }

// meant is the host that a connection is for. That is the one that the client says, else the one that its address stands
// for, else the address. If the first two disagree, it is the second: the proxy refuses the first in its tunnel (421).
func meant(said, found string, address netip.Addr) string {
	switch {
	case said != "" && (found == "" || Agree(said, found)):
		return said
	case found != "":
		return found
	}
	return address.String()
}

// connect is the head of a CONNECT request for a tunnel to the target (RFC 9110 §9.3.6).
func (f *Front) connect(target string) []byte {
	head := "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n"
	if f.User != nil {
		password, _ := f.User.Password()
		head += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(f.User.Username()+":"+password)) + "\r\n"
	}
	return []byte(head + "\r\n")
}
