package upstream

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/fakes/sockets"
)

func unsent(c ErrorClass) Evidence { return Evidence{NotSent: true, ErrorClass: c} }

// silent is a Body of one's own making.
type silent struct {
	content string
	length  int64
	openErr error
	readErr error
}

func (b silent) Open() (io.ReadCloser, error) {
	if b.openErr != nil {
		return nil, b.openErr
	}
	var r io.Reader = strings.NewReader(b.content)
	if b.readErr != nil {
		r = io.MultiReader(r, failing{b.readErr})
	}
	return io.NopCloser(r), nil
}

func (b silent) Len() int64 { return b.length }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestUnreachableUpstreamIsProvenNotSent(t *testing.T) {
	t.Parallel()
	refusing := &url.URL{Scheme: "https", Host: sockets.Deaf(t)}
	plain := serve(t, nil, func(p *peer) { p.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
	mute := serve(t, nil, (*peer).wait)
	good := serve(t, serverTLS("http/1.1"), answering(ok))
	closing := serve(t, nil, func(*peer) {})
	dialing := func(err error) Config {
		return Config{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, err }}
	}

	for name, tc := range map[string]struct {
		cfg   Config
		url   *url.URL
		class ErrorClass
		text  string
	}{
		"host not found":        {dialing(&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example"}}), refusing, ErrorDNS, "looking up api.example: no such host"},
		"connection refused":    {Config{}, refusing, ErrorDial, "connecting: connection refused"},
		"an upstream proxy":     {dialing(&Error{ErrorProxy, "the proxy answered 503"}), refusing, ErrorProxy, "the proxy answered 503"},
		"some other dial error": {dialing(errors.New("token=secret")), refusing, ErrorDial, "connecting: the connection failed"},
		"no connection in time": {Config{DialTimeout: time.Millisecond, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, refusing, ErrorDial, "connecting: the deadline ran out"},
		"upstream does not speak TLS": {Config{}, plain.url("https", "/"), ErrorTLS, "the upstream does not speak TLS"},
		"handshake not in time": {Config{
			DialTimeout: 20 * time.Millisecond,
			// However late the connection is there.
			Dial: func(_ context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) },
		}, mute.url("https", "/"), ErrorTLS, "TLS handshake: the deadline ran out"},
		"closed in the handshake":     {Config{}, closing.url("https", "/"), ErrorTLS, "TLS handshake: "},
		"certificate of another name": {Config{}, &url.URL{Scheme: "https", Host: "localhost:" + good.url("https", "/").Port()}, ErrorCertificate, "certificate"},
		"certificate not trusted":     {Config{Roots: x509.NewCertPool()}, good.url("https", "/"), ErrorCertificate, "proxy.upstream_ca"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := send(t, sender(t, tc.cfg), post(tc.url, "x"))
			g.check(t, unsent(tc.class))
			if !strings.Contains(g.ev.Error, tc.text) {
				t.Errorf("error %q, want one with %q", g.ev.Error, tc.text)
			}
			if g.Status != 0 || !errors.Is(g.err, ErrNoAnswer) {
				t.Errorf("status %d, body error %v", g.Status, g.err)
			}
		})
	}
	if n := good.sends.Load(); n != 0 {
		t.Errorf("an upstream that failed verification read %d requests", n)
	}
}

func TestEgressIsAskedForEveryAddress(t *testing.T) {
	t.Parallel()
	direct := func(_ context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) }
	for name, tc := range map[string]struct {
		dial  func(context.Context, string, string) (net.Conn, error)
		conns int64
	}{
		"before it is dialled":                 {nil, 0},
		"with a dialer of one's own, after it": {direct, 1},
	} {
		t.Run(name, func(t *testing.T) {
			u := serve(t, nil, answering(ok))
			var asked []string
			cfg := Config{Dial: tc.dial, Egress: func(ap netip.AddrPort) error {
				asked = append(asked, ap.String())
				return errors.New("127.0.0.0/8 is private")
			}}
			g := send(t, sender(t, cfg), post(u.url("http", "/"), "x"))
			g.check(t, unsent(ErrorEgress))
			if g.ev.Error != "127.0.0.0/8 is private" {
				t.Errorf("error %q, want the policy's own words", g.ev.Error)
			}
			if addr := u.l.Addr().String(); len(asked) != 1 || asked[0] != addr {
				t.Errorf("asked for %q, want %s once", asked, addr)
			}
			if tc.conns == 0 && u.conns.Load() != 0 {
				t.Error("a refused address was dialled")
			}
			if u.bytes.Load() != 0 {
				t.Error("a refused address got bytes")
			}
		})
	}
	u := serve(t, nil, answering(ok))
	allowed := Config{Egress: func(netip.AddrPort) error { return nil }}
	send(t, sender(t, allowed), post(u.url("http", "/"), "x")).check(t, Evidence{Head: true, Status: 200, BodyComplete: true})
}

func TestEgressRefusesAddressesItCannotRead(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer theirs.Close()
	cfg := Config{
		Dial:   func(context.Context, string, string) (net.Conn, error) { return ours, nil },
		Egress: func(netip.AddrPort) error { return nil },
	}
	send(t, sender(t, cfg), post(&url.URL{Scheme: "http", Host: "api.example"}, "x")).check(t, unsent(ErrorEgress))
}

func TestRequestsThatWouldBreakTheFramingAreNotSent(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, answering(ok))
	good := u.url("http", "/")
	for name, r := range map[string]*Request{
		"no URL":                     {Method: "POST"},
		"another scheme":             {Method: "POST", URL: &url.URL{Scheme: "ftp", Host: good.Host}},
		"a protocol of its own":      {Method: "POST", URL: &url.URL{Scheme: "ws", Host: good.Host}},
		"a fragment":                 {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, Path: "/", Fragment: "x"}},
		"an opaque path":             {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, Opaque: "/x"}},
		"no path but a star":         {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, Path: "*"}},
		"a query with a DEL":         {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, RawQuery: "a\x7fb"}},
		"no host":                    {Method: "POST", URL: &url.URL{Scheme: "http", Path: "/"}},
		"user information":           {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, User: url.User("u")}},
		"an opaque URL":              {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, Opaque: "//x/ HTTP/1.1\r\n"}},
		"a query with a line break":  {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, RawQuery: "a\r\nb"}},
		"a query with a space":       {Method: "POST", URL: &url.URL{Scheme: "http", Host: good.Host, RawQuery: "a b"}},
		"no method":                  {URL: good},
		"a method with a space":      {Method: "POST /x", URL: good},
		"CONNECT":                    {Method: "CONNECT", URL: good},
		"a host with a line break":   {Method: "POST", URL: good, Host: "a\r\nb"},
		"a field name with a colon":  {Method: "POST", URL: good, Header: http.Header{"A:": {"b"}}},
		"a field with a line break":  {Method: "POST", URL: good, Header: http.Header{"A": {"b\r\nC: d"}}},
		"a field with a NUL":         {Method: "POST", URL: good, Header: http.Header{"A": {"\x00"}}},
		"a body of negative length":  {Method: "POST", URL: good, Body: silent{length: -1}},
		"an empty Host that is none": {Method: "POST", URL: &url.URL{Scheme: "http", Host: ":80"}},
	} {
		t.Run(name, func(t *testing.T) {
			send(t, sender(t, Config{}), r).check(t, unsent(ErrorRequest))
		})
	}
	if n := u.conns.Load(); n != 0 {
		t.Errorf("%d connections for requests that can't be sent", n)
	}
}

func TestWhatFailsBeforeByteOneIsNotSent(t *testing.T) {
	t.Parallel()
	u := serve(t, nil, (*peer).wait)
	fake := clock.NewFake(time.Now())
	slowly := func(_ context.Context, network, addr string) (net.Conn, error) {
		defer fake.Sleep(time.Minute)
		return net.Dial(network, addr)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	for name, tc := range map[string]struct {
		cfg   Config
		ctx   context.Context
		edit  func(*Request)
		class ErrorClass
		text  string
	}{
		"the caller's check":             {Config{}, nil, func(r *Request) { r.Check = func() error { return errors.New("lease is over") } }, ErrorCheck, "lease is over"},
		"a body that can't be opened":    {Config{}, nil, func(r *Request) { r.Body = silent{openErr: io.ErrNoProgress, length: 1} }, ErrorBody, "can't be opened"},
		"a body that breaks":             {Config{}, nil, func(r *Request) { r.Body = silent{content: "ab", readErr: io.ErrNoProgress, length: 3} }, ErrorBody, ""},
		"a body that ends early":         {Config{}, nil, func(r *Request) { r.Body = silent{content: "ab", length: 3} }, ErrorBody, "not as long as announced"},
		"a body that goes on":            {Config{}, nil, func(r *Request) { r.Body = silent{content: "abcd", length: 3} }, ErrorBody, "not as long as announced"},
		"an empty body that goes on":     {Config{}, nil, func(r *Request) { r.Body = silent{content: "a"} }, ErrorBody, "not as long as announced"},
		"the deadline, while it slept":   {Config{Clock: fake, Dial: slowly}, nil, func(r *Request) { r.Total = time.Minute }, ErrorTimeout, "the deadline ran out"},
		"cancelled while connecting":     {Config{}, cancelled, func(*Request) { cancel() }, ErrorCanceled, "cancelled while connecting"},
		"cancelled after having dialled": {Config{Dial: func(_ context.Context, network, addr string) (net.Conn, error) { return net.Dial(network, addr) }}, cancelled, func(*Request) { cancel() }, ErrorCanceled, "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			r := post(u.url("http", "/"), "x")
			tc.edit(r)
			ctx := tc.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			a := sender(t, tc.cfg).Send(ctx, r)
			_, err := io.ReadAll(a.Body)
			g := got{Answer: a, err: err, ev: a.Evidence()}
			g.check(t, unsent(tc.class))
			if !strings.Contains(g.ev.Error, tc.text) {
				t.Errorf("error %q, want one with %q", g.ev.Error, tc.text)
			}
		})
	}
	if n := u.bytes.Load(); n != 0 {
		t.Errorf("the upstream read %d bytes", n)
	}
}
