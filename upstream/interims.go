package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
)

// Interims takes the interim responses (RFC 9110 §15.2) to a request of a [Passthrough],
// as they come.
type Interims interface {
	Show(status int, h http.Header)
}

// InterimsKey is where the context of a request holds its Interims, if it has any. A trace of
// net/http would need another context, and that can't be watched without a goroutine.
type InterimsKey struct{}

func interimsOf(ctx context.Context) Interims {
	to, _ := ctx.Value(InterimsKey{}).(Interims)
	return to
}

// mostInterims bounds the interim responses to a request that net/http sends: with a
// trace it takes any number.
const mostInterims = 1000

var errInterims = errors.New("the upstream sends interim responses without end")

// carried sends a request by net/http's transport.
func (p *Passthrough) carried(r *http.Request) (*http.Response, error) {
	trace, used, session := &httptrace.ClientTrace{}, (*headed)(nil), net.Conn(nil)
	out := r.WithContext(httptrace.WithClientTrace(r.Context(), trace))
	if to := interimsOf(r.Context()); to != nil {
		seen := 0
		trace.Got1xxResponse = func(status int, h textproto.MIMEHeader) error {
			if seen++; seen > mostInterims {
				return errInterims
			}
			to.Show(status, http.Header(h))
			return nil
		}
	}
	if strings.HasPrefix(r.URL.Opaque, "//") {
		// net/http takes it for an authority. Behind one, HTTP/2 sends the rest.
		at := *r.URL
		at.Opaque = "//" + r.Host + at.Opaque
		out.URL = &at
	}
	_, trailers := r.Header["Te"]
	if trailers {
		out.Header = maps.Clone(r.Header)
	}
	trace.GotConn = func(c httptrace.GotConnInfo) {
		session = c.Conn
		if used, _ = c.Conn.(*headed); used != nil {
			used.begin()
		}
		if trailers && !speaksH2(c.Conn) {
			// HTTP/1.1 wants it named in Connection, too (RFC 9110 §10.1.4), which net/http
			// sends as it is, and HTTP/2 forbids.
			delete(out.Header, "Te")
		}
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil && session != nil && used == nil && unheard(session) {
		// Otherwise the transport uses this HTTP/2 connection until the system drops it after a quarter
		// of an hour.
		_ = tcpBelow(session).Close()
	}
	if err == nil && (used != nil && !used.restore(resp) || resp.ProtoMajor == 2 && !soundH2(resp)) {
		_ = resp.Body.Close()
		return nil, errMalformed
	}
	return resp, err
}

// speaksH2 reports whether HTTP/2 was negotiated for a connection.
func speaksH2(c net.Conn) bool {
	session, ok := c.(*tls.Conn)
	return ok && session.ConnectionState().NegotiatedProtocol == "h2"
}
