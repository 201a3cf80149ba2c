package upstream

import (
	"bytes"
	"net"
	"net/http"
	"sync"
)

// headWatch reads along the head of an HTTP/1 answer and keeps what net/http's parser hides. That
// is two ways to find the end of the content, and what Connection says beside close.
type headWatch struct {
	line []byte // the start of the current line
	head bool   // the status line was there
	done bool   // the final head was
	// old is HTTP/1.0, coding and length say that the fields are there.
	old, interim, coding, length bool
	// broken says that the status line or a field that frames is misspelt.
	broken bool
	// connection holds the lines of the Connection fields, without those that are close or keep-alive
	// alone. The latest line belongs to such a field if folding is set.
	connection []string
	folding    bool
}

// lineStart is how much of a line matters: a status line, or a field's name.
const lineStart = len("Transfer-Encoding :")

func (w *headWatch) reset() { *w = headWatch{line: w.line[:0]} }

// see takes the next bytes of the connection.
func (w *headWatch) see(p []byte) {
	for len(p) > 0 && !w.done {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part = p[:end]
		}
		room := min(max(lineStart-len(w.line), 0), len(part))
		w.line = append(w.line, part[:room]...)
		if w.ofConnection(w.line) {
			w.line = append(w.line, part[room:]...)
		}
		if end < 0 {
			return
		}
		w.take(bytes.TrimSuffix(w.line, []byte("\r")))
		w.line, p = w.line[:0], p[end+1:]
	}
}

// take looks at the start of a whole line.
func (w *headWatch) take(line []byte) {
	switch {
	case !w.head:
		w.head = true
		w.broken = !isStatusLine(line)
		w.old = bytes.HasPrefix(line, []byte("HTTP/1.0"))
		// What follows 101 is no HTTP any more.
		w.interim = len(line) > 9 && line[9] == '1' && !bytes.HasPrefix(line[9:], []byte("101"))
	case len(line) == 0 && w.interim:
		w.reset()
	case len(line) == 0:
		w.done = true
	default:
		if w.folding = w.ofConnection(line); w.folding {
			w.nominate(line)
		}
		w.coding = w.names(line, "transfer-encoding") || w.coding
		w.length = w.names(line, "content-length") || w.length
	}
}

const connectionField = "connection:"

// ofConnection reports whether line begins a Connection field, or goes on with one
// (RFC 9112 §5.2).
func (w *headWatch) ofConnection(line []byte) bool {
	if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
		return w.folding
	}
	return len(line) >= len(connectionField) && bytes.EqualFold(line[:len(connectionField)], []byte(connectionField))
}

// nominate keeps what a line of a Connection field says.
func (w *headWatch) nominate(line []byte) {
	if line[0] != ' ' && line[0] != '\t' {
		line = line[len(connectionField):]
	}
	line = bytes.Trim(line, " \t")
	if !bytes.EqualFold(line, []byte("close")) && !bytes.EqualFold(line, []byte("keep-alive")) {
		w.connection = append(w.connection, string(line))
	}
}

// isStatusLine knows the start of a status line (RFC 9112 §4).
func isStatusLine(line []byte) bool {
	const version = len("HTTP/1.1")
	if len(line) < version+4 || line[version] != ' ' || len(line) > version+4 && line[version+4] != ' ' {
		return false
	}
	for _, c := range line[version+1 : version+4] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// names reports whether line is the field with this name. Space before the colon would
// hide it from net/http.
func (w *headWatch) names(line []byte, name string) bool {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return false
	}
	rest := bytes.TrimLeft(line[len(name):], " \t")
	if len(rest) == 0 {
		// No colon, or one that is further away than is looked at.
		w.broken = true
		return true
	}
	if rest[0] != ':' {
		return false
	}
	w.broken = w.broken || len(rest) < len(line)-len(name)
	return true
}

// restore puts back what net/http takes out with what it nominates, once it says close.
func (w *headWatch) restore(resp *http.Response) {
	if resp.Close && len(w.connection) > 0 && len(resp.Header["Connection"]) == 0 {
		resp.Header["Connection"] = w.connection
	}
}

// faulty reports a head whose status or framing must not be believed. It is misspelt, or
// has Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1).
func (w *headWatch) faulty() bool { return w.broken || w.coding && w.old }

// loose reports a head after which the connection must not be used again (RFC 9112
// §6.3): Transfer-Encoding wins over Content-Length, but the upstream may have meant
// the other.
func (w *headWatch) loose() bool { return w.coding && w.length }

// headed is an HTTP/1 connection of net/http's transport, with a watch on the heads of answers.
// From answers that say close the transport takes the whole Connection field.
type headed struct {
	net.Conn
	mu   sync.Mutex
	head headWatch
}

// Read implements io.Reader.
func (c *headed) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.see(p[:n])
	return n, err
}

// begin lets the next head be that of an answer.
func (c *headed) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.reset()
}

// restore puts back what the head of resp said. It reports whether the head can be believed.
func (c *headed) restore(resp *http.Response) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.head.restore(resp)
	return !c.head.faulty()
}
