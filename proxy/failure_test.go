package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// A definite failure is no answer that a second request could repeat: a client may
// ask again while the proxy is still writing to a connection that nobody reads.
func TestAskingAgainAfterAFailureIsNoRepeat(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("busy ", 1<<20)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-First") != "" {
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(rw, long)
			return
		}
		created(rw, r)
	})
	r := w.open("a")
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	// Without a tunnel the client can leave the answer unread.
	target := w.upstream.URL + "/ask"
	_, _ = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nX-First: 1\r\nContent-Type: application/json\r\nContent-Length: 10\r\nProxy-Authorization: Basic %s\r\n\r\n{\"to\":\"x\"}",
		target, strings.TrimPrefix(w.upstream.URL, "https://"), base64.StdEncoding.EncodeToString([]byte("run:"+r.token)))
	if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 429"))); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, r.post("/ask", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.wantSends("/ask", 2)
	if s := r.state().State; s != ledger.RunRunning {
		t.Errorf("run is %s", s)
	}
}

func TestAFailureWhoseAnswerIsCutIsAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, "cut")
	})
	r := w.open("a")
	g := r.post("/pay", `{"to":"x"}`)
	wantProblem(t, g, "not-sent", 502, "status 400")
	if strings.Contains(g.body, "othing was sent") {
		t.Errorf("the refusal denies what was sent: %s", g.body)
	}
	if m := w.mutation("a"); m.State != ledger.Failed || m.Class != verdict.Logic {
		t.Errorf("record is %s, class %s", m.State, m.Class)
	}
}

// An answer that its caller didn't wait for was not delivered: the same run may ask
// for it later.
func TestAnAnswerThatReachedNobodyIsReplayed(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	r := w.open("a")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
		if err == nil {
			_, err = r.client.Do(req)
		}
		gone <- err
	}()
	<-arrived
	cancel()
	if err := <-gone; err == nil {
		t.Fatal("the caller got an answer")
	}
	w.waitForGoneCaller()
	close(release)
	w.waitState("a", ledger.Applied)
	w.waitForCallers(0)
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, true)
	w.wantSends("/pay", 1)
}
