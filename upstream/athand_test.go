package upstream

import (
	"io"
	"strings"
	"testing"
)

func TestWhatIsAtHandWaitsForNobody(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
	for name, c := range map[string]struct {
		// first is written at once, and rest when the head was read.
		first, rest string
		// unread is a request that the upstream doesn't read to its end.
		unread bool
		want   bool
	}{
		"all of it in one piece":   {first: ok, want: true},
		"no content":               {first: "HTTP/1.1 204 No Content\r\n\r\n", want: true},
		"content that comes later": {first: head, rest: "ok"},
		"half of it comes later":   {first: head + "o", rest: "k"},
		"chunks":                   {first: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		"before the whole request": {first: "HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nok", unread: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			u := serve(t, nil, func(p *peer) {
				if !c.unread {
					if _, _, whole := p.request(); !whole {
						return
					}
				} else if _, err := io.ReadFull(p, make([]byte, 1)); err != nil { // Else it would answer nothing.
					return
				}
				_, _ = io.WriteString(p, c.first)
				select {
				case <-seen:
					_, _ = io.WriteString(p, c.rest)
				case <-p.up.halt:
				}
			})
			body := "a body"
			if c.unread {
				body = strings.Repeat("more than sockets buffer", 1<<20)
			}
			a := sender(t, Config{}).Send(t.Context(), post(u.url("http", "/m"), body))
			defer a.Close()
			if a.AtHand != c.want || a.Status == 0 {
				t.Errorf("at hand: %t (status %d), want %t", a.AtHand, a.Status, c.want)
			}
			close(seen)
			if content, err := io.ReadAll(a.Body); a.Status == 200 && (string(content) != "ok" || err != nil) {
				t.Errorf("content %q, %v", content, err)
			}
		})
	}
}
