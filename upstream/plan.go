package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/internal/hop"
)

// plan is a request that was found fit to be written.
type plan struct {
	method string
	target string // request-target in origin form (RFC 9112 §3.2.1)
	host   string // Host or :authority
	url    *url.URL
	addr   string // host:port to connect to
	secure bool
	header http.Header // still with the fields of skipField
	drop   []string    // names that the Connection field nominates
	body   Body
	length int64
	// total and response are those of the Request.
	total, response time.Duration
	// upgrade lists the protocols that the connection may change to, as Upgrade lines. It is empty if
	// no change is asked for.
	upgrade []string
	// upload is content that is streamed; nil for none, and for a body.
	upload *upload
	// binds says that it logs in for all that follows on its connection; see [bindsConnection].
	binds bool
	// again says that it is being sent a second time, as the upstream asked for HTTP/1.1.
	again bool
}

// makePlan checks everything that could break a message's framing. A value that ends a line early
// is another request to the upstream.
func makePlan(r *Request) (*plan, error) {
	if err := checkURL(r.URL, r.asIs); err != nil {
		return nil, err
	}
	p := &plan{method: r.Method, target: targetOf(r.URL), host: r.Host, url: r.URL, header: r.Header, body: r.Body, total: r.Total, response: r.Response}
	if p.host == "" {
		p.host = r.URL.Host
	}
	if p.total <= 0 {
		p.total = DefaultTotal
	}
	p.secure = r.URL.Scheme == "https"
	p.addr = dialAddr(r.URL)
	if r.Body != nil {
		p.length = r.Body.Len()
	}
	p.drop = hop.Nominated(r.Header)
	p.binds = bindsConnection(r.Header)
	return p, p.check()
}

// targetOf is the request-target of an address. Opaque holds one that is sent as it is.
func targetOf(u *url.URL) string {
	if u.Opaque != "" {
		return u.Opaque
	}
	return u.RequestURI()
}

func checkURL(u *url.URL, asIs bool) error {
	switch {
	case u == nil:
		return errors.New("no URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL's scheme is neither http nor https")
	case u.Hostname() == "":
		return errors.New("the URL has no host")
	case u.User != nil, u.Opaque != "" && !asIs, u.Fragment != "":
		return errors.New("the URL carries user information, a fragment, or no path")
	}
	return nil
}

func (p *plan) check() error {
	switch {
	case !httpguts.ValidHeaderFieldName(p.method) || p.method == http.MethodConnect:
		return errors.New("the method is not a token, or CONNECT")
	case !httpguts.ValidHostHeader(p.host):
		return errors.New("the host is malformed")
	case !validTarget(p.target):
		return errors.New("the request target holds a space or a control character")
	case p.length < 0:
		return errors.New("the body's length is negative")
	}
	for name, values := range p.header {
		if !httpguts.ValidHeaderFieldName(name) {
			return errors.New("a header field's name is malformed")
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("the value of header field %s is malformed", http.CanonicalHeaderKey(name))
			}
		}
	}
	return nil
}

// validTarget reports whether target is one word on a request line.
func validTarget(target string) bool {
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			return false
		}
	}
	return strings.HasPrefix(target, "/")
}

func dialAddr(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	port := "80"
	if u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// endpoint is what connections are kept for: an upstream and a scheme. Connections that somebody
// logged in on have a client too.
type endpoint struct {
	addr   string
	secure bool
	client any
}

// giveUp gives up content that is not to be streamed.
func (p *plan) giveUp() {
	if p.upload != nil {
		_ = p.upload.body.Close()
	}
}

func (p *plan) endpoint() endpoint { return endpoint{addr: p.addr, secure: p.secure} }

// skips reports whether a field is not passed on: it is of this hop, or the
// framing decides on it. Expect goes too, as the whole body is at hand.
func (p *plan) skips(name string) bool {
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Host", "Content-Length", "Expect":
		return true
	}
	return hop.Is(name) || slices.Contains(p.drop, name)
}

// announcesLength reports whether the request states the length of its content. Some methods state
// it without content too (RFC 9110 §8.6).
func (p *plan) announcesLength() bool {
	if p.body != nil {
		return true
	}
	switch p.method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return true
	}
	return false
}
