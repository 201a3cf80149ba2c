package strict

import "bytes"

// DefaultMaxHead bounds a head, in bytes, where no limit is given.
const DefaultMaxHead = 64 << 10

// maxChunkLine bounds a chunk's size line with its extensions, in bytes.
const maxChunkLine = 1 << 10

// state is what the next byte belongs to. The zero value is the start of a
// connection.
type state uint8

const (
	atStart state = iota
	inLine
	inFields
	inSized
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailers
	atConnect
	atUpgrade
	atFault
)

// Scanner frames the requests of one connection. Its zero value is ready, with
// DefaultMaxHead. It isn't safe for concurrent use.
type Scanner struct {
	// MaxHead bounds a request's head, and its trailers, in bytes with line ends.
	MaxHead int

	state state
	// size is how much of the current head, trailer section or size line there was.
	size int
	// left is what is still to come of a body or chunk.
	left int64
	// line holds the part of a line that came in earlier reads.
	line []byte
	head head
	// heads counts those that were whole and without fault.
	heads uint64
	// faultInBody says that the head of the request at fault was whole.
	faultInBody bool
	// skippedLine says that the one empty line before a request was there.
	skippedLine bool
}

// Scan takes the next bytes of the connection. Of p, the first skip bytes are to be dropped: an
// empty line before a request (RFC 9112 §2.2). The next pass bytes may be given on. The rest must
// be shown again, unless there is a fault.
//
// A rest stays before an empty line, and until [Scanner.Resume] after a request that may be the
// last in HTTP. That is a CONNECT, or one with an Upgrade field and no content.
func (s *Scanner) Scan(p []byte) (skip, pass int, f *Fault) {
	i := 0
	// message is where the head begins that is being read, as far as it is in p.
	message := 0
	for i < len(p) {
		switch s.state {
		case atStart:
			if s.atEmptyLine(p[i]) && i > 0 {
				return skip, i, nil
			}
			if s.atEmptyLine(p[i]) {
				n, f := s.emptyLine(p)
				if f != nil {
					return 0, 0, f
				}
				skip, p = skip+n, p[n:]
				continue
			}
			if classes[p[i]]&tokenChar == 0 {
				return skip, i, s.fail(FaultNotHTTP)
			}
			s.begin()
			message = i
		case inLine, inFields:
			n, f := s.scanHead(p[i:])
			if i += n; f != nil {
				return skip, message, s.fail(f)
			}
		case atConnect, atUpgrade, atFault:
			return skip, i, nil
		default:
			n, f := s.scanBody(p[i:])
			if i += n; f != nil {
				return skip, i, s.fail(f)
			}
		}
	}
	return skip, i, nil
}

// atEmptyLine reports whether the next byte, before a request, belongs to an empty line.
func (s *Scanner) atEmptyLine(next byte) bool {
	return next == '\r' || next == '\n' || len(s.line) > 0
}

// emptyLine takes what it can of one CRLF.
func (s *Scanner) emptyLine(p []byte) (int, *Fault) {
	switch {
	case s.skippedLine:
		return 0, s.fail(FaultNotHTTP)
	case len(s.line) == 0 && p[0] == '\n', len(s.line) == 1 && p[0] != '\n':
		return 0, s.fail(FaultBareLF)
	case len(s.line) == 0:
		s.line = append(s.line, '\r')
	default:
		s.line, s.skippedLine = s.line[:0], true
	}
	return 1, nil
}

func (s *Scanner) fail(f *Fault) *Fault {
	s.faultInBody = s.state > inFields && s.state < atConnect
	s.state = atFault
	return f
}

// InBody reports whether the fault was found behind the whole head of its request.
func (s *Scanner) InBody() bool { return s.faultInBody }

// Begun reports whether part of a head was read, and the rest is to come.
func (s *Scanner) Begun() bool {
	return s.state == inLine || s.state == inFields || s.state == atStart && len(s.line) > 0
}

// Connected reports whether a CONNECT request was read. What comes next is up to its
// answer.
func (s *Scanner) Connected() bool { return s.state == atConnect }

// Upgrading reports whether a request without content was read that asks to change
// protocols (RFC 9110 §7.8). What comes next is up to its answer.
func (s *Scanner) Upgrading() bool { return s.state == atUpgrade }

// Heads is how many requests' heads have been let through whole. Of a client that doesn't wait
// for answers they may be of more requests than its server has come to.
func (s *Scanner) Heads() uint64 { return s.heads }

// Resume reads on after a request which changed nothing.
func (s *Scanner) Resume() {
	if s.state == atConnect || s.state == atUpgrade {
		s.state = atStart
	}
}

// begin starts a request.
func (s *Scanner) begin() {
	s.state, s.size, s.skippedLine = inLine, 0, false
	s.head.reset()
}

// end makes ready for the next request.
func (s *Scanner) end() { s.state, s.size = atStart, 0 }

// take finds the next whole line of p, without its CRLF. It took n bytes of p; whole is false if
// the line goes on behind p. A line that is not split isn't copied.
func (s *Scanner) take(p []byte) (line []byte, n int, whole bool, f *Fault) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		if f := wellBegun(s.line, p); f != nil {
			return nil, 0, false, f
		}
		s.line = append(s.line, p...)
		return nil, len(p), false, nil
	}
	line = p[:end]
	if len(s.line) > 0 {
		s.line = append(s.line, line...)
		line, s.line = s.line, s.line[:0]
	}
	if len(line) == 0 || line[len(line)-1] != '\r' {
		return nil, end, true, FaultBareLF
	}
	return line[:len(line)-1], end + 1, true, nil
}

// wellBegun checks the next part of a line whose end isn't there yet. So it refuses what can't
// become HTTP before the line ends.
func wellBegun(before, p []byte) *Fault {
	if len(before) > 0 && before[len(before)-1] == '\r' {
		return FaultControl
	}
	for i, c := range p {
		if classes[c]&valueChar == 0 && (c != '\r' || i < len(p)-1) {
			return FaultControl
		}
	}
	return nil
}

func (s *Scanner) maxHead() int {
	if s.MaxHead > 0 {
		return s.MaxHead
	}
	return DefaultMaxHead
}

// scanHead reads one line of a head, or the part of it that is there.
func (s *Scanner) scanHead(p []byte) (int, *Fault) {
	long := FaultLongHead
	if s.state == inLine {
		long = FaultLongTarget
	}
	if room := s.maxHead() - s.size; len(p) > room {
		// A line that ends within the limit is read; only what is behind it isn't.
		if end := bytes.IndexByte(p, '\n'); end < 0 || end >= room {
			return 0, long
		}
	}
	line, n, whole, f := s.take(p)
	s.size += n
	switch {
	case f != nil:
		return n, f
	case !whole:
		return n, nil
	case s.state == inLine:
		s.state = inFields
		return n, s.head.requestLine(line)
	case len(line) > 0:
		return n, s.head.field(line)
	}
	return n, s.endHead()
}

// endHead judges a whole head and goes on to the body.
func (s *Scanner) endHead() *Fault {
	if f := s.head.judge(); f != nil {
		return f
	}
	s.size = 0
	s.heads++
	switch {
	case s.head.connect:
		s.state = atConnect
	case s.head.chunked:
		s.state = inChunkSize
	case s.head.length > 0:
		s.state, s.left = inSized, s.head.length
	case s.head.upgrade:
		s.state = atUpgrade
	default:
		s.end()
	}
	return nil
}
