package proxy

import (
	"bytes"
	"errors"
	"io"
	stdlog "log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"keep-proxy/proxy/strict"
)

// serveOuter answers what arrives at a listener: CONNECT, plain proxy requests,
// and requests that were not meant for a proxy.
func (p *Proxy) serveOuter(w http.ResponseWriter, r *http.Request) {
	switch {
	case p.draining.Load():
		w.Header().Set("Connection", "close")
		c, _ := p.who(r) // Nobody, if it can't be told.
		p.turnAway(w, r, c, draining())
	case r.Method == http.MethodConnect && r.ProtoMajor == 1:
		p.connect(w, r)
	case r.Method == http.MethodConnect:
		p.turnAway(w, r, caller{}, refuse(problemDenied, "CONNECT over HTTP/2 is refused."))
	case !r.URL.IsAbs():
		p.turnAway(w, r, caller{}, refuse(problemNotAProxyRequest, "Set http_proxy and https_proxy to this address; it answers no requests of its own."))
	default:
		c, err := p.who(r)
		switch {
		case errors.Is(err, errCredentials):
			p.challenge(w, r)
		case err != nil:
			p.turnAway(w, r, caller{}, ledgerRefusal(err))
		default:
			p.serve(w, r, c, nil)
		}
	}
}

// serveInner answers a request inside a tunnel.
func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	t := tunnelOf(r.Context())
	if t != nil {
		t.told.Store(true)
	}
	if t == nil || r.Method == http.MethodConnect {
		c := caller{}
		if t != nil {
			c = t.caller
		}
		p.turnAway(w, r, c, refuse(problemDenied, "This can't be asked for inside a tunnel; nothing was sent."))
		return
	}
	if f := checkFraming(r); f != nil {
		p.turnAway(w, r, t.caller, f)
		return
	}
	scheme := "http"
	if t.secure {
		scheme = "https"
	}
	if _, port, err := net.SplitHostPort(t.target); err == nil && port == "443" && !t.secure {
		p.turnAway(w, r, t.caller, refuse(problemMalformed,
			"The client speaks plain HTTP in a tunnel to port 443, where TLS is spoken; nothing was sent."))
		return
	}
	if r.Host == "" && r.Proto == "HTTP/1.0" {
		r.Host = t.target // It asks for no Host field (RFC 9112 §3.2).
	}
	// HTTP/2's :scheme decides whether r.TLS is set.
	said := !r.URL.IsAbs() || strings.EqualFold(r.URL.Scheme, scheme)
	r.URL.Scheme = scheme
	if !said || t.secure != (r.TLS != nil) || !agrees(r, t) {
		p.turnAway(w, r, t.caller, refuse(problemMisdirected,
			"The request is for "+r.Host+", but its tunnel was opened to "+t.target+"; nothing was sent."))
		return
	}
	r.URL.Host = t.target
	p.serve(w, r, t.caller, t)
}

// agrees reports whether the request names the tunnel's target. That holds for its authority, a
// Host field beside it (RFC 9113 §8.3.1), and the TLS server name.
func agrees(r *http.Request, t *tunnel) bool {
	if known := t.agreed.Load(); known != nil && *known == r.Host && len(r.Header["Host"]) == 0 {
		return true
	}
	host, _, err := net.SplitHostPort(t.target)
	if err != nil {
		return false
	}
	for _, authority := range append([]string{r.Host}, r.Header["Host"]...) {
		if _, _, err := net.SplitHostPort(authority); err != nil {
			authority = net.JoinHostPort(strings.Trim(authority, "[]"), defaultPort(r.URL.Scheme))
		}
		if asked, err := normalTarget(authority); err != nil || asked != t.target {
			return false
		}
	}
	delete(r.Header, "Host")
	if r.TLS != nil && r.TLS.ServerName != "" && strings.TrimSuffix(strings.ToLower(r.TLS.ServerName), ".") != host {
		return false
	}
	// Scheme and server name are the same for everything inside the tunnel.
	authority := r.Host
	t.agreed.Store(&authority)
	return true
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// serve runs one request through the pipeline, and learns whether the client got the whole answer.
// Plain requests go through goproxy. Those of a tunnel no longer need it. What asks to change
// protocols may not pass it, as it has its own ways there.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, c caller, t *tunnel) {
	p.under.requests.Add(1)
	defer p.under.requests.Add(-1)
	answer := answerTo(w, r)
	x := &exchange{caller: c, tunnel: t, client: r.Context(), answer: answer, started: p.config.Clock.Now()}
	x.digestContent(r)
	delivered := false
	defer func() {
		if x.switched != nil && x.switched.counted {
			defer p.switched.End()
		}
		x.done(delivered)
		p.config.Metrics.Request(x.effect, string(x.problem), answer.status, p.config.Clock.Now().Sub(x.started))
		p.told(x, r, answer, delivered)
		if answer.severed.Load() {
			// Nothing could be written to this connection any more.
			panic(http.ErrAbortHandler)
		}
	}()
	if t == nil && !wantsUpgrade(r) {
		p.goproxy.ServeHTTP(answer, r.WithContext(withExchange(r.Context(), x)))
	} else {
		resp := p.pipeline(x, r) //nolint:bodyclose // carry closes it; the exchange holds the context.
		if x.switched != nil && resp.StatusCode == http.StatusSwitchingProtocols {
			delivered = p.carrySwitched(x, r, resp)
			return
		}
		answer.carry(resp)
	}
	if delivered = answer.finish(); answer.cut {
		// The server would end the answer as if it were whole.
		panic(http.ErrAbortHandler)
	}
}

// turnAway answers a request that never gets to the pipeline, and tells of it.
func (p *Proxy) turnAway(w http.ResponseWriter, r *http.Request, c caller, f *refusal) {
	p.early(w, r, c, f.problem, func(x *exchange) {
		resp := p.refusing(x, r, f)
		defer func() { _ = resp.Body.Close() }()
		maps.Copy(x.answer.Header(), resp.Header)
		x.answer.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(x.answer, resp.Body)
	})
}

// early has a request answered before the pipeline, and writes its log line.
func (p *Proxy) early(w http.ResponseWriter, r *http.Request, c caller, name problem, write func(*exchange)) {
	answer := answerTo(w, r)
	x := &exchange{caller: c, client: r.Context(), answer: answer, started: p.config.Clock.Now(), problem: name}
	x.digestContent(r)
	write(x)
	delivered := answer.finish() && r.Context().Err() == nil
	p.config.Metrics.Request("", string(name), answer.status, p.config.Clock.Now().Sub(x.started))
	p.told(x, r, answer, delivered)
}

// quietLog sends what the servers say about broken connections to the debug level.
func quietLog(l zerolog.Logger) *stdlog.Logger {
	return stdlog.New(debugWriter{l}, "", 0)
}

type debugWriter struct{ log zerolog.Logger }

// Write implements io.Writer.
func (d debugWriter) Write(line []byte) (int, error) {
	d.log.Debug().Str("detail", string(bytes.TrimSpace(line))).Msg("connection")
	return len(line), nil
}

// checkFraming refuses over HTTP/2 what a strict.Scanner refuses over HTTP/1. Those are fields that
// an HTTP/1 upstream could take for framing or routing. Frames and pseudo-header fields were held
// to RFC 9113 by net/http before.
func checkFraming(r *http.Request) *refusal {
	if r.ProtoMajor != 2 {
		return nil
	}
	if !oneLength(r) {
		return refuse(problemMalformed, "Content-Length is not the length of the content, in digits and once (RFC 9113 §8.1.1); nothing was sent.")
	}
	if !strings.HasPrefix(r.RequestURI, "/") && r.RequestURI != "*" {
		return refuse(problemMalformed, "The :path does not begin with \"/\" (RFC 9113 §8.3.1); nothing was sent.")
	}
	for _, value := range r.Header["Expect"] {
		if !strings.EqualFold(value, "100-continue") {
			return faultRefusal(strict.FaultExpectation)
		}
	}
	for name := range r.Trailer {
		// net/http takes no trailer field that the head doesn't announce.
		if !strict.MayTrail(name) {
			return faultRefusal(strict.FaultTrailer)
		}
	}
	for name, values := range r.Header {
		if slices.ContainsFunc(values, padded) {
			return refuse(problemMalformed, "A field's value begins or ends with whitespace (RFC 9113 §8.2.1); nothing was sent.")
		}
		if !strings.Contains(name, "_") {
			continue
		}
		switch http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-")) {
		case "Content-Length", "Transfer-Encoding":
			return refuse(problemMalformed, "A field that frames is spelt with \"_\", which some servers take for \"-\"; nothing was sent.")
		}
	}
	if strings.ContainsFunc(r.Host, func(c rune) bool { return c >= 0x80 || c == '%' || c == '@' }) {
		return refuse(problemMalformed, "The :authority is not host or host:port (RFC 9113 §8.3.1); nothing was sent.")
	}
	return nil
}

// oneLength reports whether a Content-Length, if there is one, says what net/http made of
// it. Frames of another length are net/http's to refuse; a request that ends with its
// head has none.
func oneLength(r *http.Request) bool {
	lengths := r.Header["Content-Length"]
	switch len(lengths) {
	case 0:
		return true
	case 1:
		n, err := strconv.ParseInt(lengths[0], 10, 64)
		return digits(lengths[0]) && err == nil && n == r.ContentLength
	}
	return false
}

// padded reports whitespace around a field's value.
func padded(value string) bool {
	return value != "" && (isBlank(value[0]) || isBlank(value[len(value)-1]))
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

func digits(s string) bool {
	return s != "" && len(s) <= 18 && strings.Trim(s, "0123456789") == ""
}
