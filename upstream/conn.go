package upstream

import (
	"bufio"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// conn is one connection to an upstream. It carries one dispatch at a time.
type conn struct {
	key    endpoint
	raw    *rawConn
	plain  *plainConn
	secure bool
	link   Link

	// HTTP/1.1
	br *bufio.Reader
	bw *bufio.Writer

	// HTTP/2
	h2      *http.ClientConn
	streams uint32 // opened so far

	idleSince time.Duration // by the pool's clock
	// keepFor and most are what the upstream said by Keep-Alive; zero for nothing. It said it of
	// carried answers in all.
	keepFor       time.Duration
	most, carried int
}

// bufferSize holds the head and a small body, so that most requests are one write.
const bufferSize = 8 << 10

// kill ends the connection at once. Reads, writes and the HTTP/2 loop return, and nothing more of
// what was written arrives. It may be called by any goroutine, more than once.
func (c *conn) kill() {
	c.raw.endsBroken(true)
	_ = c.raw.Close()
}

// close ends an idle connection, with the alert that TLS asks for.
func (c *conn) close() {
	c.raw.endsBroken(false)
	if c.h2 != nil {
		_ = c.h2.Close()
		return
	}
	_ = c.plain.Close()
}

// keepAliveMargin is how long before its end an idle connection isn't used any more: the upstream
// may be about to close it.
const keepAliveMargin = time.Second

// heed notes what an answer says of its connection: timeout, in seconds idle, and max, in requests.
// Some upstreams count the requests that are left by max, others all; here it counts all.
func (c *conn) heed(fields []string) {
	c.carried++
	for part := range strings.SplitSeq(strings.Join(fields, ","), ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(part)), "=")
		switch n, err := strconv.ParseUint(value, 10, 31); {
		case err != nil:
		case name == "timeout":
			c.keepFor = max(time.Duration(n)*time.Second-keepAliveMargin, 1)
		case name == "max":
			c.most = max(int(n), 1)
		}
	}
}

// lasts reports whether the connection may still be used after it was idle for so long.
func (c *conn) lasts(idle time.Duration) bool {
	return (c.keepFor == 0 || idle < c.keepFor) && (c.most == 0 || c.carried < c.most)
}

// quiet reports whether the connection can still be used: it is open, and nothing arrived on it
// unasked. The look does not block. TLS may take in a session ticket; that is no answer.
func (c *conn) quiet() bool {
	if c.h2 != nil {
		return c.h2.Err() == nil && c.h2.Available() > 0
	}
	if c.raw.sys == nil || c.br.Buffered() > 0 {
		return false
	}
	c.raw.looking = true
	_, err := c.br.Peek(1)
	c.raw.looking = false
	return errors.Is(err, os.ErrDeadlineExceeded)
}
