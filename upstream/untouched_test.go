package upstream

import (
	"net/http"
	"testing"
)

// TLS reports nothing as written when its record went out in part, and over HTTP/2 others
// write: what reached the wire, or may have, was sent.
func TestWhatMayHaveGoneOutWasTouched(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h2        bool
		happens   func(*conn)
		untouched bool
	}{
		"nothing":                     {false, func(*conn) {}, true},
		"a byte of the request":       {false, func(c *conn) { c.plain.begun.Add(1); c.plain.written.Add(1) }, false},
		"a part of a record of TLS":   {false, func(c *conn) { c.plain.begun.Add(9); c.raw.written.Add(5) }, false},
		"nothing, over HTTP/2":        {true, func(*conn) {}, true},
		"a write that was begun":      {true, func(c *conn) { c.plain.begun.Add(9) }, false},
		"a write that was begun, raw": {true, func(c *conn) { c.plain.begun.Add(9); c.raw.written.Add(5) }, false},
	} {
		d := &dispatch{conn: &conn{plain: &plainConn{}, raw: &rawConn{}}}
		if c.h2 {
			d.conn.h2 = &http.ClientConn{}
		}
		d.handed = d.conn.count()
		c.happens(d.conn)
		if got := d.untouched(); got != c.untouched {
			t.Errorf("%s: untouched %t", name, got)
		}
	}
}
