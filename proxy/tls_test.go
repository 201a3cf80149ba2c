package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// session shakes hands in a tunnel to the upstream.
func (r *run) session(c *tls.Config) (*tls.Conn, error) {
	r.t.Helper()
	below, _, resp := r.tunnelTo(strings.TrimPrefix(r.upstream.URL, "https://"))
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("no tunnel: %d", resp.StatusCode)
	}
	_ = below.SetDeadline(time.Now().Add(waitLimit))
	c = c.Clone()
	c.RootCAs, c.ServerName = r.roots, "127.0.0.1" // An address: no name is sent (RFC 6066 §3).
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	session := tls.Client(below, c)
	return session, session.HandshakeContext(r.t.Context())
}

// readOver asks for a read by HTTP/1.1 and gives its status.
func (r *run) readOver(session *tls.Conn) int {
	r.t.Helper()
	_, _ = fmt.Fprintf(session, "GET /read HTTP/1.1\r\nHost: %s\r\n\r\n", strings.TrimPrefix(r.upstream.URL, "https://"))
	resp, err := http.ReadResponse(bufio.NewReader(session), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TLS 1.2 and 1.3, with and without ALPN; what is older, or speaks something else, isn't
// served.
func TestWhatClientsSpeakInTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	r := w.open("a")
	for name, c := range map[string]struct {
		config   *tls.Config
		protocol string
		refused  string
	}{
		"TLS 1.2":                         {config: &tls.Config{MaxVersion: tls.VersionTLS12}},
		"TLS 1.3":                         {config: &tls.Config{MinVersion: tls.VersionTLS13}},
		"TLS 1.1":                         {config: &tls.Config{MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11}, refused: "protocol version"},
		"no ALPN":                         {config: &tls.Config{}},
		"HTTP/1.1 by ALPN":                {config: &tls.Config{NextProtos: []string{"http/1.1"}}, protocol: "http/1.1"},
		"HTTP/2 and HTTP/1.1":             {config: &tls.Config{NextProtos: []string{"http/1.1", "h2"}}, protocol: "h2"},
		"HTTP/2 alone":                    {config: &tls.Config{NextProtos: []string{"h2"}}, protocol: "h2"},
		"HTTP/2 over TLS 1.2":             {config: &tls.Config{NextProtos: []string{"h2"}, MaxVersion: tls.VersionTLS12}, protocol: "h2"},
		"a protocol that isn't known":     {config: &tls.Config{NextProtos: []string{"h3"}}, refused: "no application protocol"},
		"one that isn't known and HTTP/1": {config: &tls.Config{NextProtos: []string{"h3", "http/1.1"}}, protocol: "http/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			session, err := r.session(c.config)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got %v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			state := session.ConnectionState()
			if state.NegotiatedProtocol != c.protocol || c.config.MaxVersion != 0 && state.Version != c.config.MaxVersion {
				t.Errorf("%q in %s", state.NegotiatedProtocol, tls.VersionName(state.Version))
			}
			if c.protocol == "h2" {
				framer := r.h2over(session)
				fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", strings.TrimPrefix(w.upstream.URL, "https://")}, {":path", "/read"}}
				if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields), EndHeaders: true, EndStream: true}); err != nil {
					t.Fatal(err)
				}
				if got := outcomeOf(t, framer); got != "200" {
					t.Errorf("status %s", got)
				}
				return
			}
			if status := r.readOver(session); status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		})
	}
}

// A client resumes its session in another tunnel (RFC 8446 §2.2, RFC 5077), without a
// signature of the proxy, and is judged as in any other: what it may ask is the tunnel's.
func TestSessionsAreResumedInOtherTunnels(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
			r, other := w.open("a"), w.open("b")
			c := &tls.Config{MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(8)}
			for i, r := range []*run{r, r, other} {
				session, err := r.session(c)
				if err != nil {
					t.Fatal(err)
				}
				if status := r.readOver(session); status != http.StatusOK { // Tickets come with the first answer.
					t.Errorf("tunnel %d: status %d", i, status)
				}
				if resumed := session.ConnectionState().DidResume; resumed != (i > 0) {
					t.Errorf("tunnel %d: resumed %t", i, resumed)
				}
				_, _ = fmt.Fprint(session, "GET /read HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(session), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusMisdirectedRequest {
					t.Errorf("tunnel %d: another authority: status %d", i, resp.StatusCode)
				}
			}
		})
	}
}
