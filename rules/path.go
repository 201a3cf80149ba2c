package rules

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// path is a parsed request path.
type path struct {
	// wire is the normalised spelling that is sent, "/" or "*" included.
	wire string
	// segments are the decoded segments, without an empty one at the end.
	segments []string
	// slash says that the path ends in a slash.
	slash bool
	// encodedSlash says that a segment holds an escaped slash.
	encodedSlash bool
	// emptySegment says that a segment is empty ("//").
	emptySegment bool
}

// normalPath parses a path as [Normalise] describes.
func normalPath(method, raw string) (path, *Refusal) {
	if raw == "*" && method == http.MethodOptions {
		return path{wire: "*"}, nil
	}
	if raw == "" {
		raw = "/"
	}
	if raw[0] != '/' {
		return path{}, refuse(ProblemAmbiguous, "the request target is not a path; it must begin with \"/\"")
	}
	if raw == "/" {
		return path{wire: "/", slash: true}, nil
	}
	var p path
	p.slash = strings.HasSuffix(raw, "/")
	var wire strings.Builder
	wire.Grow(len(raw))
	p.segments = make([]string, 0, strings.Count(raw, "/"))
	for segment := range strings.SplitSeq(strings.TrimSuffix(raw[1:], "/"), "/") {
		wire.WriteByte('/')
		if segment == "" {
			p.emptySegment, p.segments = true, append(p.segments, "")
			continue
		}
		value, refusal := normalSegment(&wire, segment)
		if refusal != nil {
			return path{}, refusal
		}
		p.encodedSlash = p.encodedSlash || strings.Contains(value, "/")
		p.segments = append(p.segments, value)
	}
	if p.slash {
		wire.WriteByte('/')
	}
	p.wire = wire.String()
	return p, nil
}

// plain is the one spelling of the path, in which all that is reserved is escaped.
func (p *path) plain() string {
	if p.wire == "*" {
		return p.wire
	}
	var b strings.Builder
	for _, segment := range p.segments {
		b.WriteByte('/')
		b.WriteString(escapeSegment(segment))
	}
	if p.slash {
		b.WriteByte('/')
	}
	return b.String()
}

// normalSegment writes the normalised spelling of one segment and returns its
// decoded value.
func normalSegment(wire *strings.Builder, raw string) (string, *Refusal) {
	var value []byte
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '%' {
			d, ok := unhex(raw, i)
			if !ok {
				return "", refuse(ProblemAmbiguous, "the path holds an invalid escape")
			}
			i += 2
			if isUnreserved(d) {
				wire.WriteByte(d)
			} else {
				writeEscape(wire, d)
			}
			value = append(value, d)
			continue
		}
		switch {
		case c == ';':
			return "", refuse(ProblemAmbiguous, "the path holds path parameters (\";\"); escape the semicolon if it is data")
		case c >= 0x80 || c == '[' || c == ']' || c == '|':
			writeEscape(wire, c)
		case isUnreserved(c) || strings.IndexByte("!$&'()*+,=:@", c) >= 0:
			wire.WriteByte(c)
		default:
			return "", refuse(ProblemAmbiguous, "the path holds a character that must be escaped")
		}
		value = append(value, c)
	}
	return checkSegment(string(value))
}

// checkSegment refuses decoded values that servers treat specially.
func checkSegment(value string) (string, *Refusal) {
	switch {
	case value == "":
		return "", refuse(ProblemAmbiguous, "the path holds an empty segment (\"//\")")
	case value == "." || value == "..":
		return "", refuse(ProblemAmbiguous, "the path holds a dot segment (\".\" or \"..\")")
	case !utf8.ValidString(value):
		return "", refuse(ProblemAmbiguous, "the path is not UTF-8")
	}
	for _, c := range []byte(value) {
		if c < ' ' || c == 0x7f || c == '\\' {
			return "", refuse(ProblemAmbiguous, "the path holds a control character or a backslash")
		}
	}
	for part := range strings.SplitSeq(value, "/") {
		if part == "." || part == ".." {
			return "", refuse(ProblemAmbiguous, "the path holds a dot segment behind an escaped slash")
		}
	}
	return value, nil
}

// isUnreserved is RFC 3986 §2.3.
func isUnreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '.' || c == '_' || c == '~'
}

// unhex reads the escape that begins at s[i].
func unhex(s string, i int) (byte, bool) {
	if i+2 >= len(s) {
		return 0, false
	}
	hi, ok1 := hexDigit(s[i+1])
	lo, ok2 := hexDigit(s[i+2])
	return hi<<4 | lo, ok1 && ok2
}

// hexDigit is the value of a hexadecimal digit.
func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// writeEscape writes %XX.
func writeEscape(b *strings.Builder, c byte) {
	const digits = "0123456789ABCDEF"
	b.WriteByte('%')
	b.WriteByte(digits[c>>4])
	b.WriteByte(digits[c&15])
}

// escapeSegment escapes a value so that it stays one segment.
func escapeSegment(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if isUnreserved(c) {
			b.WriteByte(c)
		} else {
			writeEscape(&b, c)
		}
	}
	return b.String()
}
