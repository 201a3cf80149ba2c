package proxy

import (
	"net/http"
	"testing"
)

// What observe lets through is recorded before it is sent.
func TestWhatCannotBeObservedIsNotSent(t *testing.T) {
	t.Parallel()
	other := newWorld(t, created)
	s := &failingUpdates{}
	s.left.Store(-1)
	w := newWorld(t, created, func(c *Config) {
		s.Store, c.Ledger.Store = c.Ledger.Store, s
		c.Unmatched, c.Reads, c.Sender = PolicyObserve, other.proxy.config.Reads, other.proxy.config.Sender
	})
	run := w.open("a")
	s.left.Store(0)
	g := send(run.client, http.MethodPost, other.upstream.URL+"/observed", `{"x":1}`)
	wantProblem(t, g, "ledger-unavailable", http.StatusServiceUnavailable, errTrouble.Error())
	other.wantSends("/observed", 0)
	s.left.Store(-1)
	if g := send(w.open("b").client, http.MethodPost, other.upstream.URL+"/observed", `{"x":1}`); g.status != http.StatusCreated {
		t.Errorf("with a ledger that records: %d %s", g.status, g.body)
	}
	other.wantSends("/observed", 1)
}
