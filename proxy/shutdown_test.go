package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"keep-proxy/ledger"
)

// Shutdown waits for outcomes that are still to be recorded, as long as it may.
func TestShutdownWaitsForUnrecordedOutcomes(t *testing.T) {
	t.Parallel()
	w, store := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			s.updates.Store(true)
			created(rw, r)
		}
	})
	r := w.open("a")
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "could not be recorded")
	r.client.CloseIdleConnections()
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		ended <- w.proxy.Shutdown(ctx)
	}()
	for deadline := time.Now().Add(waitLimit); !w.proxy.draining.Load(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("Shutdown didn't begin")
		}
	}
	store.updates.Store(false)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if m := w.mutation("a"); m.State != ledger.Applied || m.ResultState != ledger.ResultKnown {
		t.Errorf("record is %s, result %q, after Shutdown", m.State, m.ResultState)
	}
}

// A request that is on its way while the proxy shuts down is refused before it claims.
func TestNothingIsClaimedWhileShuttingDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	wantAnswer(t, r.get("/read"), 201, `{"id":1}`, false)
	w.proxy.draining.Store(true)
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "draining", 503, "nothing was sent")
	w.wantSends("/pay", 0)
}

// One that comes together with another payload under the same identity doesn't get
// the answer of the first.
func TestAJoinerWithAnotherPayloadIsJudgedByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path string
		by   func(*run) *run
	}{
		"of the same run": {"/again", func(r *run) *run { return r }},
		"of another run":  {"/pay", func(r *run) *run { return r.open("a", takesOver) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-release
				created(rw, r)
			})
			r := w.open("a")
			first := r.posting(c.path, `{"to":"x","amount":1}`)
			<-arrived
			second := c.by(r).posting(c.path, `{"to":"x","amount":2}`)
			w.waitForCallers(2)
			close(release)
			wantAnswer(t, <-first, 201, `{"id":1}`, false)
			wantProblem(t, <-second, "payload-mismatch", 422, "payload")
			w.waitForNobody()
			w.wantSends(c.path, 1)
		})
	}
}

// A client of HTTP/2 is told by GOAWAY (RFC 9113 §6.8) which of its streams will still be
// answered: it gets their whole answers, and what it asks after that is not sent.
func TestShuttingDownSaysGoodbyeOverHTTP2(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	defer answer()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-release
		_, _ = io.WriteString(rw, "whole")
	})
	r := w.open("a")
	framer := r.h2session()
	ask := func(stream uint32, path string) {
		t.Helper()
		fields := [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", w.authority}, {":path", path}}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(fields), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
	}
	ask(1, "/read")
	<-arrived
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		ended <- w.proxy.Shutdown(ctx)
	}()
	var content []byte
	said, status, over := false, "", false
	for !over {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("the connection ended with %v; a GOAWAY: %t, an answer: %s %q", err, said, status, content)
		}
		switch f := f.(type) {
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo || f.LastStreamID < 1 {
				t.Errorf("it says goodbye with %s after stream %d", f.ErrCode, f.LastStreamID)
			}
			if !said {
				said = true
				ask(3, "/late")
				answer()
			}
		case *http2.MetaHeadersFrame:
			status = f.PseudoValue("status")
		case *http2.DataFrame:
			content, over = append(content, f.Data()...), f.StreamEnded()
		}
	}
	if status != "200" || string(content) != "whole" {
		t.Errorf("answered %s %q", status, content)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	w.wantSends("/read", 1)
	w.wantSends("/late", 0)
}

// Who shuts down is told that an outcome was still to be recorded when the time was over.
func TestShuttingDownTooSoonSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	recorded := make(chan struct{})
	defer close(recorded)
	if !w.proxy.background.Go(func() { <-recorded }) {
		t.Fatal("nothing may be recorded")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.proxy.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

// Where the time for it is over nobody goes on recording: the next start finds the mutation in
// flight.
func TestTheEndOfTheProxyEndsItsRecording(t *testing.T) {
	t.Parallel()
	w, _ := newTroubledWorld(t, func(s *troubled) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			s.updates.Store(true)
			created(rw, r)
		}
	})
	wantProblem(t, w.open("a").post("/pay", payX), "unknown-outcome", 424, "could not be recorded")
	w.proxy.Close()
	ended := make(chan struct{})
	go func() { w.proxy.background.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(waitLimit):
		t.Error("it goes on")
	}
	if m := w.mutation("a"); m.State != ledger.InFlight {
		t.Errorf("the record is %s", m.State)
	}
}
