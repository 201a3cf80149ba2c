package strict

import "bytes"

// scanBody reads the next piece of a body.
func (s *Scanner) scanBody(p []byte) (int, *Fault) {
	switch s.state {
	case inSized, inChunkData:
		n := int(min(int64(len(p)), s.left))
		if s.left -= int64(n); s.left > 0 {
			return n, nil
		}
		if s.state == inSized {
			s.end()
		} else {
			s.state = inChunkEnd
		}
		return n, nil
	case inChunkEnd:
		return s.chunkEnd(p)
	case inChunkSize:
		return s.chunkSize(p)
	default:
		return s.trailers(p)
	}
}

// chunkEnd reads the CRLF behind a chunk's data.
func (s *Scanner) chunkEnd(p []byte) (int, *Fault) {
	want := "\r\n"[s.size]
	if p[0] != want {
		return 0, FaultChunkEnd
	}
	if s.size++; s.size == len("\r\n") {
		s.size, s.state = 0, inChunkSize
	}
	return 1, nil
}

// chunkSize reads a size line (RFC 9112 §7.1).
func (s *Scanner) chunkSize(p []byte) (int, *Fault) {
	if room := maxChunkLine - s.size; len(p) > room {
		if end := bytes.IndexByte(p, '\n'); end < 0 || end >= room {
			return 0, FaultChunkLine
		}
	}
	// A fault in a part of a line must not wait for its end. What was let through could be read as
	// another line.
	if f := chunkBegun(s.line, p); f != nil {
		return 0, f
	}
	line, n, whole, f := s.take(p)
	if f != nil || !whole {
		if s.size += n; f != nil {
			n = 0
		}
		return n, f
	}
	size, f := parseChunk(line)
	if f != nil {
		return 0, f
	}
	s.size = 0
	if s.left = size; size > 0 {
		s.state = inChunkData
	} else {
		s.state = inTrailers
	}
	return n, nil
}

// chunkBegun checks the first byte of a size line.
func chunkBegun(before, p []byte) *Fault {
	if len(before) == 0 && classes[p[0]]&hexChar == 0 {
		return FaultChunkSize
	}
	return nil
}

// parseChunk reads a size with its extensions. Their bad whitespace (RFC 9112
// §7.1.1) is refused: it is where parsers differ.
func parseChunk(line []byte) (int64, *Fault) {
	digits := 0
	var size int64
	for digits < len(line) && classes[line[digits]]&hexChar != 0 {
		if digits == 15 {
			return 0, FaultChunkSize
		}
		size = size<<4 | int64(hexValue(line[digits]))
		digits++
	}
	if digits == 0 {
		return 0, FaultChunkSize
	}
	rest := line[digits:]
	if len(rest) > 0 && rest[0] != ';' {
		return 0, FaultChunkSize
	}
	for len(rest) > 0 {
		var ok bool
		if rest, ok = extension(rest); !ok {
			return 0, FaultChunkExt
		}
	}
	return size, nil
}

// extension takes one `;name` or `;name=value` off the front.
func extension(b []byte) (rest []byte, ok bool) {
	if b[0] != ';' {
		return nil, false
	}
	b = b[1:]
	n := tokenLen(b)
	if n == 0 {
		return nil, false
	}
	if b = b[n:]; len(b) == 0 || b[0] != '=' {
		return b, true
	}
	b = b[1:]
	if len(b) > 0 && b[0] == '"' {
		n = quotedLen(b)
	} else {
		n = tokenLen(b)
	}
	return b[n:], n > 0
}

func tokenLen(b []byte) int {
	n := 0
	for n < len(b) && classes[b[n]]&tokenChar != 0 {
		n++
	}
	return n
}

// quotedLen is the length of the quoted string at the front (RFC 9110 §5.6.4), 0 if
// there is none.
func quotedLen(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch {
		case classes[b[i]]&valueChar == 0:
			return 0
		case b[i] == '"':
			return i + 1
		case b[i] == '\\':
			if i++; i == len(b) || classes[b[i]]&valueChar == 0 {
				return 0
			}
		}
	}
	return 0
}

func hexValue(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

// trailers reads one line of the trailer section (RFC 9112 §7.1.2). A line is given
// on only when it is known to be well formed as far as it goes.
func (s *Scanner) trailers(p []byte) (int, *Fault) {
	if room := s.maxHead() - s.size; len(p) > room {
		if end := bytes.IndexByte(p, '\n'); end < 0 || end >= room {
			return 0, FaultLongTrailer
		}
	}
	line, n, whole, f := s.take(p)
	if f != nil {
		return 0, f
	}
	if s.size += n; !whole {
		return n, nil
	}
	if len(line) == 0 {
		s.end()
		return n, nil
	}
	name, _, f := parseField(line)
	switch {
	case f != nil:
		return 0, FaultTrailerField
	case notInTrailer(name):
		return 0, FaultTrailer
	}
	return n, nil
}

// forbidden are the fields that frame, route, authenticate or say how to read content (RFC 9110
// §6.5.1), in lower case.
var forbidden = []string{
	"authorization", "connection", "content-encoding", "content-length", "content-range", "content-type", "cookie", "expect",
	"host", "keep-alive", "max-forwards", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// MayTrail reports whether a request's trailer section may hold a field of this name.
func MayTrail(name string) bool { return !notInTrailer([]byte(name)) }

func notInTrailer(name []byte) bool {
	if len(name) > 5 && is(name[:5], "keep-") {
		return true
	}
	for _, word := range forbidden {
		if is(name, word) || spelt(name, word) {
			return true
		}
	}
	return false
}
