package proxy

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

const ratedRules = "reads: safe-methods\nrate: {requests: 1, per: 1h}\n"

// queue lets one dispatch pass for each admission, and tells who waits.
type queue struct{ waiting, admit chan struct{} }

func (q queue) Turn(ctx context.Context, _ *rules.Connector) error {
	q.waiting <- struct{}{}
	select {
	case <-q.admit:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newRatedWorld is a world whose connector has a rate.
func newRatedWorld(t *testing.T, handler http.HandlerFunc, change ...func(*Config)) (*world, queue) {
	t.Helper()
	q := queue{make(chan struct{}, 8), make(chan struct{}, 8)}
	w := newWorld(t, handler, append(change, func(c *Config) { c.Turns = q })...)
	w.use(strings.Replace(testRules, "reads: safe-methods\n", ratedRules, 1))
	return w, q
}

// noRecords asserts that nothing was claimed for an item.
func (w *world) noRecords(item string) {
	w.t.Helper()
	page, err := w.ledger.Mutations(context.Background(), ledger.Filter{Item: item})
	if err != nil || len(page.Items) != 0 {
		w.t.Errorf("%d records of %s, want none, %v", len(page.Items), item, err)
	}
}

func (r *run) posting(path, body string) <-chan got {
	answer := make(chan got, 1)
	go func() { answer <- r.post(path, body) }()
	return answer
}

func TestNothingIsClaimedBeforeItsTurn(t *testing.T) {
	t.Parallel()
	w, q := newRatedWorld(t, created)
	answer := w.open("a").posting("/pay", `{"to":"x"}`)
	select {
	case <-q.waiting:
	case a := <-answer:
		t.Fatalf("it didn't wait for its turn: %d %s", a.status, a.body)
	}
	w.noRecords("a")
	w.wantSends("/pay", 0)
	q.admit <- struct{}{}
	wantAnswer(t, <-answer, 201, `{"id":1}`, false)
	w.wantSends("/pay", 1)
}

func TestAReplayNeedsNoTurn(t *testing.T) {
	t.Parallel()
	w, q := newRatedWorld(t, created)
	q.admit <- struct{}{}
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
	wantAnswer(t, again.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, true)
	w.wantSends("/pay", 1)
	if len(q.waiting) != 1 {
		t.Errorf("%d turns were waited for, want 1", len(q.waiting))
	}
}

func TestACallerThatLeavesBeforeItsTurnSendsNothing(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w, q := newRatedWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	ctx, leave := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k")
	left := make(chan error, 1)
	go func() {
		resp, err := r.client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		left <- err
	}()
	<-q.waiting
	other := make(chan got, 1)
	go func() { other <- r.post("/pay", `{"to":"x"}`, "Idempotency-Key", "k") }()
	w.waitForCallers(2)
	leave()
	if err := <-left; err == nil {
		t.Error("it was answered")
	}
	// Who had joined it takes its place in the queue.
	select {
	case <-q.waiting:
	case a := <-other:
		t.Fatalf("it didn't wait for its turn: %d %s", a.status, a.body)
	}
	w.noRecords("a")
	q.admit <- struct{}{}
	wantAnswer(t, <-other, 201, `{"id":1}`, false)
	w.wantSends("/pay", 1)
	for deadline := time.Now().Add(waitLimit); log.with(`"problem":"incomplete-request"`) != 1; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("no log line says that a caller went away")
		}
	}
}

// What was stopped while it waited is not sent when its turn comes.
func TestAStopHoldsForWhatWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	w, q := newRatedWorld(t, lost)
	second := w.open("b").posting("/pay", `{"to":"y"}`)
	<-q.waiting
	// Sendings of a rule that admits everything: the stop comes from elsewhere.
	w.use(testRules)
	wantProblem(t, w.open("a").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "unknown")
	q.admit <- struct{}{}
	wantProblem(t, <-second, "blocked", 423, "unknown")
	w.noRecords("b")
	w.wantSends("/pay", 1)
}

func TestShuttingDownEndsTheWaitForATurn(t *testing.T) {
	t.Parallel()
	w, q := newRatedWorld(t, created)
	answer := w.open("a").posting("/pay", `{"to":"x"}`)
	<-q.waiting
	if err := w.proxy.Shutdown(context.Background()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	g := <-answer
	wantProblem(t, g, "draining", 503, "shutting down; nothing was sent")
	if wait := g.header.Get("Retry-After"); wait != "1" {
		t.Errorf("Retry-After %q", wait)
	}
	w.noRecords("a")
	w.wantSends("/pay", 0)
}
