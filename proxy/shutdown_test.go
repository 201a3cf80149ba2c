package proxy

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"time"

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
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	r := w.open("a")
	first, second := make(chan got, 1), make(chan got, 1)
	go func() { first <- r.post("/again", `{"to":"x","amount":1}`) }()
	<-arrived
	go func() { second <- r.post("/again", `{"to":"x","amount":2}`) }()
	w.waitForCallers(2)
	close(release)
	wantAnswer(t, <-first, 201, `{"id":1}`, false)
	wantProblem(t, <-second, "payload-mismatch", 422, "payload")
	w.wantSends("/again", 1)
}
