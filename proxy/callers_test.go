package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/upstream"
)

// waitForNobody returns once no caller of any key is left.
func (w *world) waitForNobody() {
	w.t.Helper()
	left := 0
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		w.proxy.calls.mu.Lock()
		left = len(w.proxy.calls.byKey)
		w.proxy.calls.mu.Unlock()
		if left == 0 {
			return
		}
	}
	w.t.Fatalf("%d keys still have callers", left)
}

// A caller that waited for another's answer and left is forgotten, like any other.
func TestACallerThatLeavesWhileItWaitsIsForgotten(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		created(rw, r)
	})
	r := w.open("a")
	first := make(chan got, 1)
	go func() { first <- r.post("/pay", `{"to":"x"}`, "Idempotency-Key", "k") }()
	<-arrived
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
		if err == nil {
			req.Header.Set("Idempotency-Key", "k")
			_, err = r.client.Do(req)
		}
		gone <- err
	}()
	w.waitForCallers(2)
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("the second caller got %v", err)
	}
	w.waitForCallers(1)
	close(release)
	wantAnswer(t, <-first, 201, `{"id":1}`, false)
	w.waitForNobody()
	w.wantSends("/pay", 1)
}

// stuck is a sender that fails in a way that nobody foresaw, once it is let.
type stuck struct{ release chan struct{} }

// Send implements Sender.
func (s stuck) Send(context.Context, *upstream.Request) *upstream.Answer {
	<-s.release
	panic("sender")
}

// The answer to whoever's work breaks is its own; those who waited for it are judged by
// themselves, by what is known then.
func TestThoseWhoWaitForWorkThatPanicsAreAnswered(t *testing.T) {
	t.Parallel()
	sender := stuck{make(chan struct{})}
	w := newWorld(t, created, func(c *Config) { c.Sender = sender })
	r := w.open("a")
	answers := make(chan got, 3)
	for range cap(answers) {
		go func() { answers <- r.post("/ask", `{"to":"x"}`, "Idempotency-Key", "k") }()
	}
	w.waitForCallers(cap(answers))
	close(sender.release)
	found := map[string]int{}
	for range cap(answers) {
		found[(<-answers).problem()]++
	}
	if found["internal"] != 1 || found["run-aborted"] != 2 {
		t.Errorf("answered with %v", found)
	}
	w.waitForNobody()
}

// lateInterims says something more after it has answered.
type lateInterims struct{ to upstream.Interims }

// RoundTrip implements http.RoundTripper.
func (l *lateInterims) RoundTrip(r *http.Request) (*http.Response, error) {
	l.to, _ = r.Context().Value(upstream.InterimsKey{}).(upstream.Interims)
	l.to.Show(http.StatusEarlyHints, http.Header{"Link": {"</1>"}})
	return newResponse(r, http.StatusOK, http.Header{}, []byte("ok")), nil
}

// headsOf notes the heads that are written.
type headsOf struct {
	*httptest.ResponseRecorder
	seen  []int
	reads *lateInterims
}

// WriteHeader implements http.ResponseWriter.
func (h *headsOf) WriteHeader(status int) {
	if h.seen = append(h.seen, status); status == http.StatusOK {
		h.reads.to.Show(http.StatusEarlyHints, http.Header{"Link": {"</2>"}})
	}
	h.ResponseRecorder.WriteHeader(status)
}

// Whatever still comes in then would be written into the final response.
func TestNoInterimResponseComesAfterTheFinalOne(t *testing.T) {
	t.Parallel()
	reads := &lateInterims{}
	w := newWorld(t, created, func(c *Config) { c.Reads = reads })
	r := w.open("a")
	request := httptest.NewRequest(http.MethodGet, w.upstream.URL+"/read", nil)
	request.Header.Set("Proxy-Authorization", strings.TrimSpace(strings.TrimPrefix(w.basic(r.token), "Proxy-Authorization:")))
	client := &headsOf{ResponseRecorder: httptest.NewRecorder(), reads: reads}
	w.proxy.outer.Handler.ServeHTTP(client, request)
	if want := []int{http.StatusEarlyHints, http.StatusOK}; !slices.Equal(client.seen, want) || client.Header().Get("Link") != "" {
		t.Errorf("heads %v, fields %v; want %v", client.seen, client.Header(), want)
	}
}

// A read may be sent again, and may have arrived: that is not denied.
func TestALostReadIsNotSaidToBeUnsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	g := w.open("a").get("/read")
	wantProblem(t, g, "not-sent", 502, "may have arrived")
	if strings.Contains(g.body, "othing was sent") || !strings.Contains(g.body, "No answer came") {
		t.Errorf("it says %s", g.body)
	}
}

// Content of a stream that was cut is read no more.
func TestContentIsNotReadAfterACut(t *testing.T) {
	t.Parallel()
	came := false
	b := &clientBody{ReadCloser: io.NopCloser(strings.NewReader("more")), expect: func() bool { return false }, came: func() { came = true }}
	if n, err := b.Read(make([]byte, 4)); n > 0 || err == nil || came {
		t.Errorf("%d bytes, %v, at its end %t", n, err, came)
	}
}

// conditionalRules tell a mutation by its body, so that it is read before it is known which
// rule applies.
const conditionalRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: call
    match: {method: POST, path: /call, when: json.call == 'pay'}
    effect: mutation
    describe: "Call {json.to}"
    identity: {to: json.to}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
    max_body: 4KiB
`

// payRule is an operation that its path tells.
const payRule = `  - name: pay
    match: {method: POST, path: /pay}
    effect: mutation
    describe: "Pay {json.to}"
    identity: {to: json.to}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
    max_body: 4KiB
`

// The limits hold also where the body is read for the sake of the rule.
func TestABodyThatTellsTheRuleIsBounded(t *testing.T) {
	t.Parallel()
	// What is over a limit is space, without which the body would be sound.
	const small, large = 2 << 10, 4 << 10
	for name, c := range map[string]struct {
		limit  int64
		path   string
		length int
		want   int
	}{
		"just within both":                     {64 << 10, "/call", large, 0},
		"just over the rule's limit":           {64 << 10, "/call", large + 1, large},
		"far over the rule's limit":            {64 << 10, "/call", 200 << 10, 64 << 10},
		"just over the proxy's limit":          {small, "/call", small + 1, small},
		"just within that of a rule without":   {small, "/pay", large, 0},
		"just over that of a rule without":     {small, "/pay", large + 1, large},
		"over that of a rule without, spooled": {small, "/pay", 200 << 10, large},
	} {
		for framing, known := range map[string]bool{"": true, ", in chunks": false} {
			t.Run(name+framing, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, created, func(conf *Config) { conf.MaxBody = c.limit })
				w.use(conditionalRules + payRule)
				body := `{"call":"pay","to":"x"}`
				body += strings.Repeat(" ", c.length-len(body))
				g := w.open("a").upload(c.path, body, known)
				if c.want == 0 {
					wantAnswer(t, g, http.StatusCreated, `{"id":1}`, false)
					w.wantSends(c.path, 1)
					return
				}
				wantProblem(t, g, "too-large", http.StatusRequestEntityTooLarge, fmt.Sprint(" ", c.want, " bytes"))
				w.wantSends(c.path, 0)
				w.noRecords("a")
			})
		}
	}
}

// upload posts content whose length is announced, or not.
func (r *run) upload(path, body string, known bool) got {
	r.t.Helper()
	var content io.Reader = strings.NewReader(body)
	if !known {
		content = io.MultiReader(content)
	}
	req, err := http.NewRequest(http.MethodPost, r.upstream.URL+path, content)
	if err != nil {
		return got{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return got{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(text), err}
}
