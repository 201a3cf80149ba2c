package rules

import (
	"net/http"
	"strings"
	"sync"
	"unicode/utf8"
)

// Raw is a request as it came in, before anything is judged.
type Raw struct {
	// Method is the request method (RFC 9110 §9).
	Method string
	// Scheme is http or https.
	Scheme string
	// Authority is host or host:port, without userinfo.
	Authority string
	// Target is the request target in origin form (RFC 9112 §3.2.1), or "*" for
	// OPTIONS.
	Target string
	Header http.Header
	// Body is the content; it may be nil while HasBody says that there is one
	// that was not read yet.
	Body    []byte
	HasBody bool
}

// Request is a request in the one form that is judged and sent. Its host is in lower case as A-labels without a default
// port. Its path has unreserved characters decoded and no ambiguous spelling. It is immutable; callers must not change
// its Header or the slices that it returns.
//
// For a ledger it is Method, URL, Header, Body and HasBody; [Rebuild] makes the same Request of them.
type Request struct {
	Method string
	// Scheme is http or https.
	Scheme string
	// Host is without port; an IPv6 address is without brackets.
	Host string
	// Port is empty for the scheme's default port.
	Port string
	// Header holds the fields by their canonical names, as they came.
	Header http.Header

	// underscored are the names of Header that hold an underscore.
	underscored []string

	// authority is what Authority gives.
	authority string
	path      path
	rawQuery  string
	hasQuery  bool // a target ending in "?" keeps it
	asIs      bool // the target is as it came, and judged by nobody
	body      []byte
	hasBody   bool
	loaded    bool

	// accounts are what WithAccount said, by the hash of the connector's file.
	accounts map[string]string

	// One read of the body serves every judgement; a request is shared by the
	// goroutines that judge and send it.
	once    sync.Once
	content *content
	// alike has the same content, and reads it for both. It is nil once that is done, and for a request that reads its
	// own. Only once may look at it.
	alike *Request
}

// HasBody reports whether the request has content, read or not.
func (r *Request) HasBody() bool { return r.hasBody }

// BodyLoaded reports whether Body gives the content. It is true for a request
// that has none.
func (r *Request) BodyLoaded() bool { return r.loaded || !r.hasBody }

// Body is the content as it is sent, encodings included.
func (r *Request) Body() []byte { return r.body }

// AsIs reports whether the target is to be sent as it came, byte by byte.
func (r *Request) AsIs() bool { return r.asIs }

// Authority is the host with its port, unless that is the scheme's default; an
// IPv6 address is in brackets.
func (r *Request) Authority() string { return r.authority }

// joined is the authority of a host and its port. Where that is how it was given, it is given
// back.
func joined(host, port, given string) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		return host
	}
	if len(given) == len(host)+1+len(port) && given[:len(host)] == host && given[len(host)] == ':' && given[len(host)+1:] == port {
		return given
	}
	return host + ":" + port
}

// Target is the rebuilt request target in origin form.
func (r *Request) Target() string {
	if !r.hasQuery {
		return r.path.wire
	}
	return r.path.wire + "?" + r.rawQuery
}

// URL is the rebuilt absolute URL, without fragment.
func (r *Request) URL() string { return r.Scheme + "://" + r.Authority() + r.Target() }

// Raw gives the request back as it would have come in, in its judged form.
func (r *Request) Raw() Raw {
	return Raw{
		Method: r.Method, Scheme: r.Scheme, Authority: r.Authority(), Target: r.Target(),
		Header: r.Header, Body: r.body, HasBody: r.hasBody,
	}
}

// WithBody returns the request with its whole content, as the script sent it. An empty body means that there is none.
func (r *Request) WithBody(body []byte) *Request {
	next := r.copy()
	next.body, next.hasBody, next.loaded = body, len(body) > 0, true
	return next
}

// WithHeader returns the request with these fields in place of all of its own, or refuses
// them as [Normalise] does. What [Request.WithAccount] said isn't carried over, as it was
// about the fields.
func (r *Request) WithHeader(header http.Header) (*Request, *Refusal) {
	header, refusal := normalHeader(header)
	if refusal != nil {
		return nil, refusal
	}
	next := r.copy()
	next.Header, next.underscored, next.accounts = header, underscored(header), nil
	if r.BodyLoaded() && declaredBy(r.Header).equal(declaredBy(header)) {
		next.alike = r
	}
	return next, nil
}

// Rebuild makes the request that a ledger keeps: method, URL, header and body as
// a Request gave them. A URL that is not in the judged form is refused as
// [Normalise] would.
func Rebuild(method, url string, header http.Header, body []byte) (*Request, *Refusal) {
	scheme, authority, target, ok := splitURL(url, method)
	if !ok {
		return nil, refuse(ProblemAmbiguous, "the stored URL has no scheme")
	}
	req, refusal := Normalise(Raw{
		Method: method, Scheme: scheme, Authority: authority, Target: target,
		Header: header, Body: body, HasBody: len(body) > 0,
	})
	if refusal != nil {
		return nil, refusal
	}
	req.loaded = true
	return req, nil
}

// splitURL takes an absolute URL apart without changing anything.
func splitURL(url, method string) (scheme, authority, target string, ok bool) {
	scheme, rest, ok := strings.Cut(url, "://")
	authority, target = rest, "/"
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, target = rest[:i], rest[i:]
	} else if star, found := strings.CutSuffix(rest, "*"); found && method == http.MethodOptions {
		authority, target = star, "*"
	}
	return scheme, authority, target, ok
}

// copy returns a copy that shares nothing mutable with r.
func (r *Request) copy() *Request {
	return &Request{
		Method: r.Method, Scheme: r.Scheme, Host: r.Host, Port: r.Port, Header: r.Header, underscored: r.underscored,
		authority: r.authority, path: r.path, rawQuery: r.rawQuery, hasQuery: r.hasQuery, asIs: r.asIs,
		body: r.body, hasBody: r.hasBody, loaded: r.loaded, accounts: r.accounts,
	}
}

// unreadable says why a field can't be read without guessing; nil if it can. name
// is in lower case. Servers behind CGI and its kin take X_Name for X-Name.
func (r *Request) unreadable(name string) *Refusal {
	for _, other := range r.underscored {
		if lower := strings.ToLower(other); lower != name && strings.ReplaceAll(lower, "_", "-") == name {
			return refuse(ProblemAmbiguous, "the header field "+name+
				" comes with an underscore in its name, which some servers take for \"-\"; write it with \"-\"")
		}
	}
	for _, v := range headerValues(r.Header, name) {
		if !utf8.ValidString(v) {
			return refuse(ProblemAmbiguous, "the header field "+name+" is not UTF-8")
		}
	}
	return nil
}
