package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
)

// taker is a client that has its answer before the proxy is told so.
type taker struct {
	*httptest.ResponseRecorder
	// has is closed once the content is there, and told lets the proxy go on.
	has, told chan struct{}
	once      sync.Once
	// leaves says that the client doesn't take it after all.
	leaves bool
}

func newTaker() *taker {
	return &taker{ResponseRecorder: httptest.NewRecorder(), has: make(chan struct{}), told: make(chan struct{})}
}

// Write implements http.ResponseWriter.
func (k *taker) Write(b []byte) (int, error) {
	n, err := k.ResponseRecorder.Write(b)
	k.once.Do(func() { close(k.has) })
	<-k.told
	if k.leaves {
		return 0, errors.New("the client has left")
	}
	return n, err
}

// take asks for a mutation of the run, and returns once the exchange has ended.
func (k *taker) take(r *run, path, body string, header ...string) {
	request := httptest.NewRequest(http.MethodPost, r.upstream.URL+path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Proxy-Authorization", strings.TrimSpace(strings.TrimPrefix(r.basic(r.token), "Proxy-Authorization:")))
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	r.proxy.outer.Handler.ServeHTTP(k, request)
}

func takesOver(o *ledger.OpenRun) { o.Takeover = true }

// driftRules refuse a run that asks for another identity than the runs before it did, and not
// for theirs.
const driftRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: pay
    match: {method: POST, path: /pay}
    effect: mutation
    describe: "Pay {json.to}"
    identity: {to: json.to}
    drift: refuse
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
`

// A script that has an answer goes on with it, before the proxy knows that it has: what its
// run asks for next comes after it.
func TestWhatARunIsBeingAnsweredWithCountsAsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	w.use(driftRules)
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	again, k := w.open("a", takesOver), newTaker()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.take(again, "/pay", `{"to":"x"}`)
	}()
	<-k.has
	wantAnswer(t, again.post("/pay", `{"to":"y"}`), 201, `{"id":1}`, false)
	close(k.told)
	<-ended
	w.wantSends("/pay", 2)
	if got := again.state().State; got != ledger.RunRunning {
		t.Errorf("the run is %s", got)
	}
}

// Of a run that left while it was answered with what another one did it is known that it
// asked, and that the answer is none of its own yet: it may ask again.
func TestAnAnswerThatWasBegunIsNoted(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(*run){
		"the client leaves": func(r *run) {
			k := newTaker()
			k.leaves = true
			close(k.told)
			k.take(r, "/pay", `{"to":"x"}`)
		},
		"the stored answer can't be read": func(r *run) {
			c, err := r.proxy.callerOf(TokenDigest(r.token), runUser)
			if err != nil {
				r.t.Fatal(err)
			}
			lost := dispatch.Stored(9, func() (io.ReadCloser, error) { return nil, ledger.ErrDamaged })
			resp := r.proxy.answered(&exchange{caller: c}, httptest.NewRequest(http.MethodPost, r.upstream.URL+"/pay", nil), &work{},
				&reply{mutation: r.mutation("a"), status: http.StatusOK, body: lost, replayed: true})
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != http.StatusServiceUnavailable {
				r.t.Errorf("answered %s", resp.Status)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			w.use(driftRules)
			wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
			again := w.open("a", takesOver)
			m := w.mutation("a")
			answer(again)
			w.waitDelivered(again.id, "a")
			if err := w.store.Update(t.Context(), func(tx ledger.Tx) error {
				d, err := tx.Delivery(again.id, m.Key)
				if err == nil && !d.Begun {
					t.Errorf("it is noted as %+v", *d)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			wantAnswer(t, again.post("/pay", `{"to":"y"}`), 201, `{"id":1}`, false)
			wantAnswer(t, again.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, true)
			w.wantSends("/pay", 2)
		})
	}
}

// Who shares an answer that is no success asks again as soon as it has it, as the one does
// that did the work.
func TestAskingAgainAfterASharedFailureIsNoRepeat(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	first := sync.OnceValue(func() bool { close(arrived); return true })
	var w *world
	w = newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if w.sends.of(r.URL.Path) == 1 && first() {
			<-release
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(rw, "later")
			return
		}
		created(rw, r)
	})
	r, k := w.open("a"), newTaker()
	leads, ended := make(chan got, 1), make(chan struct{})
	go func() { leads <- r.post("/ask", `{"to":"x"}`, "Idempotency-Key", "k") }()
	<-arrived
	go func() {
		defer close(ended)
		k.take(r, "/ask", `{"to":"x"}`, "Idempotency-Key", "k")
	}()
	w.waitForCallers(2)
	close(release)
	wantAnswer(t, <-leads, 429, "later", false)
	<-k.has
	wantAnswer(t, r.post("/ask", `{"to":"x"}`), 201, `{"id":1}`, false)
	close(k.told)
	<-ended
	if k.Code != http.StatusTooManyRequests {
		t.Errorf("who waited got %d", k.Code)
	}
	w.wantSends("/ask", 2)
}

// The run of a caller that has gone by then shares the outcome that it waited for.
func TestARunWhoseCallerHasLeftIsStoppedByWhatItWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	joiner := w.open("a", takesOver)
	c, err := w.proxy.callerOf(TokenDigest(joiner.token), runUser)
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	call := &call{run: "another", answer: &reply{
		mutation: w.mutation("a"), refusal: refuse(problemUnknownOutcome, "It is unknown."), shared: true, stops: true,
	}}
	request := httptest.NewRequestWithContext(gone, http.MethodPost, w.upstream.URL+"/pay", nil)
	_ = w.proxy.joined(&exchange{caller: c, client: gone}, request, &work{}, call).Body.Close()
	if got := joiner.state(); got.State != ledger.RunAborted || !strings.Contains(got.Reason, "unknown") {
		t.Errorf("the run is %s: %s", got.State, got.Reason)
	}
}

// Without a run there is nobody whose second intent a request could be.
func TestCallersWithoutARunShareTheWork(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	}, func(c *Config) { c.Unmanaged = Unmanaged{"wf", "shared"} })
	client := w.newClient(nil, false)
	answers := make(chan got, 2)
	ask := func() { answers <- send(client, http.MethodPost, w.upstream.URL+"/pay", `{"to":"x"}`) }
	go ask()
	<-arrived
	go ask()
	w.waitForCallers(2)
	close(release)
	for range cap(answers) {
		wantAnswer(t, <-answers, 201, `{"id":1}`, false)
	}
	w.wantSends("/pay", 1)
}

// What was skipped, and is answered by its rule, is answered once, as what was applied is; so
// is what was accepted and is followed.
func TestAskingAgainForWhatIsNotAppliedIsARepeat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		begin  func(*world)
		path   string
		status int
	}{
		"skipped": {lost, func(w *world) {
			w.skipped(changed("    max_body: 4KiB\n", "    max_body: 4KiB\n    on_skip: {status: 404, json: {skipped: true}}\n"))
		}, "/pay", http.StatusNotFound},
		"followed": {func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(rw, `{"id":"j1"}`)
		}, func(w *world) { w.use(watchedRules) }, "/jobs", http.StatusAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.answer)
			c.begin(w)
			r, k := w.open("a"), newTaker()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				k.take(r, c.path, payX)
			}()
			<-k.has
			wantProblem(t, r.post(c.path, payX), "repeated", 422, "second intent")
			close(k.told)
			<-ended
			if k.Code != c.status {
				t.Errorf("the first got %d", k.Code)
			}
			w.wantSends(c.path, 1)
		})
	}
}

// Who is being answered with another run's work has its answer, too.
func TestAskingAgainForASharedAnswerIsARepeat(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	leads := w.open("a").posting("/pay", payX)
	<-arrived
	joiner, k := w.open("a", takesOver), newTaker()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.take(joiner, "/pay", payX)
	}()
	w.waitForCallers(2)
	close(release)
	wantAnswer(t, <-leads, 201, `{"id":1}`, false)
	<-k.has
	wantProblem(t, joiner.post("/pay", payX), "repeated", 422, "second intent")
	close(k.told)
	<-ended
	w.waitForNobody()
	w.wantSends("/pay", 1)
}
