package rules

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"
)

// Normalise is [Set.Normalise] for a host that is judged.
func Normalise(raw Raw) (*Request, *Refusal) { return (*Set)(nil).Normalise(raw) }

// Normalise brings a request into the form that is judged and sent. It refuses a request as ambiguous where two parsers
// could read it differently:
//
//   - The method is an upper-case token.
//   - The host is lower case, A-labels, without a trailing dot. The scheme's default port is dropped.
//     Userinfo is refused.
//   - In the path, unreserved characters (RFC 3986 §2.3) are decoded once and escapes are upper case.
//     "[", "]" and "|" are escaped, as WHATWG's clients leave them bare. Dot segments, backslashes, NUL and other
//     control characters are refused. So are path parameters (";") and what is no UTF-8. Empty segments are for
//     the match to judge.
//     A slash at the end is kept, and no pattern without one matches it.
//   - The query keeps its spelling. A fragment, control characters and spaces are refused.
//   - Header field names and values are valid (RFC 9110 §5).
//
// A read on a host of no connector keeps its target byte by byte: nobody judges it. A set that has a connector for the
// host by then refuses it.
//
// Escaped slashes and method overrides depend on the rule: [Set.Match] judges them. The fields may be the request's
// from now on: raw.Header must not be changed afterwards.
func (s *Set) Normalise(raw Raw) (*Request, *Refusal) {
	if !validMethod(raw.Method) {
		return nil, refuse(ProblemAmbiguous, "the method is not an upper-case token; write it as RFC 9110 does, such as POST")
	}
	if raw.Scheme != "http" && raw.Scheme != "https" {
		return nil, refuse(ProblemAmbiguous, "the scheme is neither http nor https")
	}
	host, port, refusal := normalAuthority(raw.Authority, raw.Scheme)
	if refusal != nil {
		return nil, refusal
	}
	rawPath, query, hasQuery := strings.Cut(raw.Target, "?")
	p := path{wire: rawPath}
	asIs := false
	if s != nil && isSafe(raw.Method) && isBare(raw.Target) {
		c, _ := s.lookup(raw.Scheme, host, port, nil)
		asIs = c == nil
	}
	if !asIs {
		if p, refusal = normalPath(raw.Method, rawPath); refusal == nil {
			query, refusal = normalQuery(query)
		}
		if refusal != nil {
			return nil, refusal
		}
	}
	header, refusal := normalHeader(raw.Header)
	if refusal != nil {
		return nil, refusal
	}
	return &Request{
		Method: raw.Method, Scheme: raw.Scheme, Host: host, Port: port, Header: header, underscored: underscored(header),
		authority: joined(host, port, raw.Authority), path: p, rawQuery: query, hasQuery: hasQuery, asIs: asIs,
		body: raw.Body, hasBody: raw.HasBody || len(raw.Body) > 0,
		loaded: len(raw.Body) > 0 || !raw.HasBody,
	}, nil
}

// isBare reports whether a target is a path that fits on a request line as it is.
func isBare(target string) bool {
	return strings.HasPrefix(target, "/") && !strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '#' })
}

// validMethod takes upper-case tokens only: methods are case-sensitive (RFC 9110
// §9.1), but not every server treats them so.
func validMethod(m string) bool {
	if m == "" {
		return false
	}
	for _, c := range []byte(m) {
		if !httpguts.IsTokenRune(rune(c)) || 'a' <= c && c <= 'z' {
			return false
		}
	}
	return true
}

// normalAuthority splits and normalises host[:port].
func normalAuthority(authority, scheme string) (host, port string, _ *Refusal) {
	if strings.Contains(authority, "@") {
		return "", "", refuse(ProblemAmbiguous, "the authority holds user information; send credentials in a header")
	}
	host, port = authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:i], authority[i+1:]
	}
	host, ok := normalHost(host)
	if !ok {
		return "", "", refuse(ProblemAmbiguous, "the host is not a valid name or address")
	}
	if port == "" {
		return host, "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", "", refuse(ProblemAmbiguous, "the port is not a number from 1 to 65535")
	}
	if port[0] == '0' {
		port = strconv.FormatUint(n, 10)
	}
	if port == defaultPort(scheme) {
		port = ""
	}
	return host, port, nil
}

// defaultPort is the port of a scheme (RFC 9110 §4.2); empty for another one.
func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}

// hostProfile maps names as lookups do (UTS #46) and checks lengths and characters.
var hostProfile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// normalHost returns the host in lower case as A-labels; an address in its
// shortest form, IPv6 without brackets.
func normalHost(host string) (string, bool) {
	host = lowerASCII(host)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		// An IPv4 address in IPv6 clothes reaches the same server under another name.
		if !ok || err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" {
			return "", false
		}
		return addr.String(), true
	}
	// Trying to parse a name as an address costs an error.
	if host != "" && '0' <= host[0] && host[0] <= '9' {
		if addr, err := netip.ParseAddr(host); err == nil {
			return addr.String(), addr.Is4()
		}
	}
	host = strings.TrimSuffix(host, ".")
	if isPlainHost(host) {
		return host, !looksNumeric(host)
	}
	ascii, err := hostProfile.ToASCII(host)
	if err != nil || ascii == "" || looksNumeric(ascii) {
		return "", false
	}
	return strings.ToLower(ascii), true
}

// lowerASCII lowers A to Z and leaves the rest to IDNA.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// isPlainHost reports whether the host needs no conversion. Underscores occur in
// the names of container networks.
func isPlainHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "xn--") {
			return false
		}
		for _, c := range []byte(label) {
			if !isHostChar(c) {
				return false
			}
		}
	}
	return true
}

// isHostChar knows the characters of a normalised label.
func isHostChar(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// looksNumeric finds hosts like 127.1 or 0x7f000001, which resolvers read as
// addresses.
func looksNumeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if strings.HasPrefix(last, "0x") {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// normalQuery escapes what is not ASCII and otherwise keeps the spelling, since
// signatures are often made over it.
func normalQuery(raw string) (string, *Refusal) {
	if !utf8.ValidString(raw) {
		return "", refuse(ProblemAmbiguous, "the query is not UTF-8")
	}
	plain := true
	for _, c := range []byte(raw) {
		if c <= ' ' || c == 0x7f || c == '#' || c == '\\' {
			return "", refuse(ProblemAmbiguous, "the query holds a space, a control character, \"#\" or \"\\\"; escape it")
		}
		plain = plain && c < 0x80
	}
	if plain {
		return raw, nil
	}
	var b strings.Builder
	for _, c := range []byte(raw) {
		if c >= 0x80 {
			writeEscape(&b, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// normalHeader checks names and values, and merges spellings of one name. Fields that
// are as they should be are not copied.
func normalHeader(in http.Header) (http.Header, *Refusal) {
	spelled := true
	for name, values := range in {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, refuse(ProblemAmbiguous, "a header field has an invalid name")
		}
		canonical := http.CanonicalHeaderKey(name)
		spelled = spelled && canonical == name
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, refuse(ProblemAmbiguous, "the header field "+canonical+" holds a control character")
			}
		}
	}
	if spelled && in != nil {
		return in, nil
	}
	out := make(http.Header, len(in))
	for name, values := range in {
		canonical := http.CanonicalHeaderKey(name)
		if len(out[canonical]) > 0 {
			return nil, refuse(ProblemAmbiguous, "the header field "+canonical+" comes in two spellings")
		}
		out[canonical] = values
	}
	return out, nil
}

// underscored lists the names that hold an underscore; usually none.
func underscored(h http.Header) []string {
	var out []string
	for name := range h {
		if strings.IndexByte(name, '_') >= 0 {
			out = append(out, name)
		}
	}
	return out
}

// headerValues are the values of a field by its lower-case name.
func headerValues(h http.Header, name string) []string { return h[http.CanonicalHeaderKey(name)] }
