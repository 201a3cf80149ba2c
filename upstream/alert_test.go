package upstream

import (
	"errors"
	"io"
	"net/http"
	"testing"
)

// RFC 9112 §9.8: a client says so before it closes. Go's TLS tells the alert (io.EOF)
// from an end without one (io.ErrUnexpectedEOF).
func TestAnIdleConnectionEndsWithTheClosingAlert(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 2)
	u := serve(t, serverTLS("http/1.1"), func(p *peer) {
		r, err := http.ReadRequest(p.br)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, err = p.br.ReadByte()
		ended <- err
	})
	p := passer(t, Config{})
	if _, content, _, err := readAll(p, get(t, u.url("https", "/"))); content != "ok" || err != nil {
		t.Fatalf("got %q, %v", content, err)
	}
	p.CloseIdle()
	s := sender(t, Config{})
	send(t, s, post(u.url("https", "/"), "x")).check(t, whole)
	s.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("it ended with %v", err)
		}
	}
}
