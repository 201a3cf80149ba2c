package h1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

var errMalformed = errors.New("h1: malformed head")

// exchange is a request and the answer to it. It is the http.ResponseWriter.
type exchange struct {
	answer
	req  *http.Request
	ctx  requestContext
	body *body
}

// request reads a head, which has an empty line at its end, and makes the request.
func (c *conn) request(raw []byte) (*exchange, error) {
	text := string(raw[:len(raw)-len("\r\n")])
	line, rest, _ := strings.Cut(text, "\r\n")
	method, target, minor, ok := requestLine(line)
	if !ok {
		return nil, errMalformed
	}
	header, ok := fields(rest)
	if !ok {
		return nil, errMalformed
	}
	u, err := parseTarget(method, target)
	if err != nil {
		return nil, err
	}
	host := u.Host
	if hosts := header["Host"]; host == "" && len(hosts) > 0 {
		host = hosts[0]
	}
	delete(header, "Host")
	oldCacheControl(header)
	x := &exchange{}
	x.ctx.conn = c
	x.ctx.Context, x.ctx.end = context.WithCancel(c.ctx)
	x.req = (&http.Request{
		Method: method, URL: u, Proto: line[len(line)-len("HTTP/1.1"):], ProtoMajor: 1, ProtoMinor: minor, Header: header, Host: host,
		RemoteAddr: c.remote, RequestURI: target, TLS: c.tls, Close: closes(minor, header), Body: http.NoBody,
	}).WithContext(&x.ctx)
	x.init(c, x)
	if err := x.frame(header); err != nil {
		return nil, err
	}
	return x, nil
}

// frame gives the request its content.
func (x *exchange) frame(header http.Header) error {
	r := x.req
	switch {
	case len(header["Transfer-Encoding"]) > 0:
		delete(header, "Transfer-Encoding")
		r.TransferEncoding, r.ContentLength = []string{"chunked"}, -1
		x.body = &body{x: x, chunked: true}
		r.Trailer = announced(header)
	case len(header["Content-Length"]) > 0:
		n, err := strconv.ParseInt(header["Content-Length"][0], 10, 63)
		if err != nil || n < 0 {
			return errMalformed
		}
		if r.ContentLength = n; n > 0 {
			x.body = &body{x: x, left: n}
		}
	}
	if x.body == nil {
		return nil
	}
	r.Body, x.ctx.unread = x.body, true
	if !x.body.AtHand() {
		_ = x.conn.setReadDeadline(time.Time{})
	}
	if r.ProtoMinor > 0 && len(header["Expect"]) > 0 {
		x.asking.Store(mayAsk)
		x.body.expect = true
	}
	return nil
}

// requestLine parts a request line.
func requestLine(line string) (method, target string, minor int, ok bool) {
	const version = "HTTP/1.1"
	method, rest, found := strings.Cut(line, " ")
	if !found || len(rest) <= len(version) || rest[len(rest)-len(version)-1] != ' ' {
		return "", "", 0, false
	}
	target, v := rest[:len(rest)-len(version)-1], rest[len(rest)-len(version):]
	if v[:7] != version[:7] || v[7] < '0' || v[7] > '9' {
		return "", "", 0, false
	}
	return method, target, int(v[7] - '0'), target != "" && method != ""
}

// fields reads field lines, each with its end.
func fields(text string) (http.Header, bool) {
	n := strings.Count(text, "\n")
	header, values := make(http.Header, n), make([]string, n)
	for text != "" {
		end := strings.IndexByte(text, '\n')
		if end < 1 {
			return nil, false
		}
		name, value, ok := cutField(text[:end-1])
		if !ok {
			return nil, false
		}
		text = text[end+1:]
		name = textproto.CanonicalMIMEHeaderKey(name)
		if more := header[name]; more != nil {
			header[name] = append(more, value)
			continue
		}
		values[0] = value
		header[name], values = values[:1:1], values[1:]
	}
	return header, true
}

// cutField parts a field line, without its end.
func cutField(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, ":")
	return name, textproto.TrimString(value), ok && name != ""
}

// parseTarget is url.ParseRequestURI, without its work where there is none. A path whose escapes are none is taken as
// it stands: rules judge the target itself.
func parseTarget(method, target string) (*url.URL, error) {
	path, query, asked := strings.Cut(target, "?")
	if target[0] == '/' && (!asked || query != "") && plainPath(path) {
		return &url.URL{Path: path, RawQuery: query}, nil
	}
	if method == http.MethodConnect && target[0] != '/' {
		target = "http://" + target
		u, err := url.ParseRequestURI(target)
		if err == nil {
			u.Scheme = ""
		}
		return u, err
	}
	u, err := url.ParseRequestURI(target)
	if err == nil {
		return u, nil
	}
	front, rest := "", path
	if scheme, after, absolute := strings.Cut(path, "://"); absolute && target[0] != '/' {
		authority, behind, _ := strings.Cut(after, "/")
		front, rest = scheme+"://"+authority, "/"+behind
	}
	if u, err = url.ParseRequestURI(front + "/"); err == nil {
		u.Path, u.RawQuery = rest, query
	}
	return u, err
}

// plainPath reports whether a path is spelt only with what is never escaped.
func plainPath(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '/', c == '-', c == '_', c == '.', c == '~':
		default:
			return false
		}
	}
	return true
}

// closes reports whether the client wants its connection to end with this request
// (RFC 9112 §9.3).
func closes(minor int, header http.Header) bool {
	lines := header["Connection"]
	if len(lines) == 0 {
		return minor == 0
	}
	return httpguts.HeaderValuesContainsToken(lines, "close") ||
		minor == 0 && !httpguts.HeaderValuesContainsToken(lines, "keep-alive")
}

// closeSaid reports whether the word is there at all, even if only set off by spaces. For net/http
// that ends the connection too, and ending one is safe.
func closeSaid(lines []string) bool {
	if len(lines) == 0 {
		return false
	}
	for word := range strings.FieldsFuncSeq(lines[0], func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		if len(word) == len("close") && strings.EqualFold(word, "close") {
			return true
		}
	}
	return false
}

// oldCacheControl reads Pragma as net/http does (RFC 9111 §5.4).
func oldCacheControl(header http.Header) {
	if p := header["Pragma"]; len(p) > 0 && p[0] == "no-cache" {
		if _, ok := header["Cache-Control"]; !ok {
			header["Cache-Control"] = []string{"no-cache"}
		}
	}
}

// announced takes the Trailer field out of header.
func announced(header http.Header) http.Header {
	lines, ok := header["Trailer"]
	if !ok {
		return nil
	}
	delete(header, "Trailer")
	trailer := make(http.Header)
	for _, line := range lines {
		for name := range strings.SplitSeq(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				trailer[http.CanonicalHeaderKey(name)] = nil
			}
		}
	}
	if len(trailer) == 0 {
		return nil
	}
	return trailer
}

// Reset ends a connection so that nobody takes that for an end in good order. It sends no closing
// alert of TLS, and resets the transport where it can. What was written and hasn't arrived yet may
// be lost.
func Reset(c net.Conn) {
	below := c
	for {
		wrapped, ok := below.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		below = wrapped.NetConn()
	}
	if tcp, ok := below.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = below.Close()
	_ = c.Close() // Who counts connections, or waits for their end, is told.
}
