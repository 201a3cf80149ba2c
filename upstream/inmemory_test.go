package upstream

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// remembered is a body that is in memory, and says how long it is. Opening it fails.
type remembered struct {
	content string
	says    int64
}

var errOpened = errors.New("opened")

func (r remembered) Open() (io.ReadCloser, error) { return nil, errOpened }
func (r remembered) Len() int64                   { return r.says }
func (r remembered) Whole() ([]byte, bool)        { return []byte(r.content), true }

// Short content that is in memory goes out with the head, and isn't opened to be read. What
// is longer, or not as long as it says, is.
func TestShortContentInMemoryIsNotOpened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   remembered
		opened bool
	}{
		"short":               {remembered{"some content", 12}, false},
		"none":                {remembered{"", 0}, false},
		"as long as can be":   {remembered{strings.Repeat("x", inlineBody), inlineBody}, false},
		"long":                {remembered{strings.Repeat("x", inlineBody+1), inlineBody + 1}, true},
		"longer than it says": {remembered{"some content", 11}, true},
		"not as long":         {remembered{"some content", 13}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 1)
			u := serve(t, nil, func(p *peer) {
				if _, content, ok := p.request(); ok {
					arrived <- string(content)
					p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
			r := post(u.url("http", "/"), "")
			r.Body = c.body
			g := send(t, sender(t, Config{}), r)
			if c.opened {
				g.check(t, Evidence{NotSent: true, ErrorClass: ErrorBody})
				return
			}
			g.check(t, Evidence{Head: true, Status: 200, BodyComplete: true})
			if content := <-arrived; content != c.body.content {
				t.Errorf("%d bytes arrived of %d", len(content), len(c.body.content))
			}
		})
	}
}
