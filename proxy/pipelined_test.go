package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// pipelined is a client that asks without waiting for answers, of a server with this handler.
func pipelined(t *testing.T, said string, handler func(http.ResponseWriter, *http.Request, *guarded)) net.Conn {
	t.Helper()
	w := newWorld(t, created)
	client, served := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	_ = client.SetDeadline(time.Now().Add(waitLimit))
	g := w.proxy.guard(served, nil)
	server := w.proxy.newHTTP1(func(rw http.ResponseWriter, r *http.Request) { handler(rw, r, g) }, func(net.Conn) context.Context { return context.Background() })
	go server.Serve(g)
	go func() { _, _ = io.WriteString(client, said) }()
	return client
}

// reads returns once the server reads beside a handler, and what comes has to wait, or the
// client seems to have gone.
func (g *guarded) reads(r *http.Request) error {
	for r.Context().Done(); !g.waiting.Load() && r.Context().Err() == nil; {
		<-time.After(time.Millisecond)
	}
	return r.Context().Err()
}

// A request whose content is at fault is cut off by that, and no other: those that are being
// answered before it have their answers.
func TestAFaultInTheContentOfTheNextRequestWaits(t *testing.T) {
	t.Parallel()
	const head = " / HTTP/1.1\r\nHost: h\r\n"
	client := pipelined(t, "GET"+head+"\r\nPOST"+head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", func(rw http.ResponseWriter, r *http.Request, g *guarded) {
		if r.Method == http.MethodGet {
			if err := g.reads(r); err != nil {
				t.Errorf("the client of the request before it seems to have gone: %v", err)
			}
			return
		}
		if _, err := io.ReadAll(r.Body); err == nil {
			t.Error("the content is whole")
		}
		rw.WriteHeader(http.StatusTeapot)
	})
	in := bufio.NewReader(client)
	for _, want := range []int{http.StatusOK, http.StatusTeapot} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("got %+v, %v; want %d", resp, err, want)
		}
		_ = resp.Body.Close()
	}
}

// What comes behind a request that may change the language of its connection is the answer's
// to name, also where the request had to wait for its turn.
func TestBytesBehindAConnectThatWaitedAreKept(t *testing.T) {
	t.Parallel()
	const no = "\x16\x03 is no HTTP"
	client := pipelined(t, "GET / HTTP/1.1\r\nHost: h\r\n\r\nCONNECT h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n", func(rw http.ResponseWriter, r *http.Request, g *guarded) {
		if r.Method == http.MethodGet {
			return
		}
		_ = g.reads(r)
		c, _, err := hijackKeeper{rw}.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.CopyN(c, c, int64(len(no)))
	})
	in := bufio.NewReader(client)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("got %+v, %v", resp, err)
	}
	go func() { _, _ = io.WriteString(client, no) }()
	got := make([]byte, len(no))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != no {
		t.Errorf("of what came behind CONNECT %q is left, %v", got, err)
	}
}
