package proxy

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

func TestReadsStreamBothWays(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		for line := range next {
			_, _ = io.WriteString(rw, line+"\n")
			rw.(http.Flusher).Flush()
		}
	})
	r := w.open("a")
	resp := r.start(t, "/stream", next)
	lines := bufio.NewReader(resp.Body)
	for _, want := range []string{"one", "two"} {
		next <- want
		if line, err := lines.ReadString('\n'); line != want+"\n" || err != nil {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	close(next)
	if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
		t.Errorf("rest %q, %v", rest, err)
	}
}

// start opens a stream; the first line makes the head arrive.
func (r *run) start(t *testing.T, path string, next chan<- string) *http.Response {
	t.Helper()
	go func() { next <- "head" }()
	resp, err := r.client.Get(r.upstream.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if line := make([]byte, len("head\n")); true {
		if _, err := io.ReadFull(resp.Body, line); err != nil {
			t.Fatal(err)
		}
	}
	return resp
}

func TestAStopCutsOpenStreams(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	done := make(chan struct{})
	end := sync.OnceFunc(func() { close(done) })
	t.Cleanup(end)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pay" {
			lost(rw, r)
		}
		for {
			select {
			case line := <-next:
				_, _ = io.WriteString(rw, line+"\n")
				rw.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			case <-done:
				return
			}
		}
	})
	other, waiting := w.open("b"), w.open("c")
	resp := other.start(t, "/stream", next)
	read := make(chan got, 1)
	go func() { read <- waiting.get("/stream") }()
	for deadline := time.Now().Add(waitLimit); w.sends.of("/stream") < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the second read didn't arrive")
		}
	}
	wantProblem(t, w.open("a").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	defer time.AfterFunc(waitLimit, end).Stop() // What isn't cut ends, and fails the test.
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it were whole")
	}
	cut := <-read
	wantProblem(t, cut, "run-aborted", 424, "stop")
	if strings.Contains(cut.body, "othing was sent") {
		t.Errorf("the read had arrived: %s", cut.body)
	}
	for _, r := range []*run{other, waiting} {
		if got := r.state(); got.State != ledger.RunAborted || got.Class != verdict.Transient {
			t.Errorf("the run that was cut is %s, class %q: it saw the world with a hole in it", got.State, got.Class)
		}
	}
}

// endless answers with a line of this length and then with nothing, as long as the proxy
// waits, and drops mutations of "lost".
func endless(length int) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "lost") {
			lost(rw, r)
		}
		_, _ = io.WriteString(rw, strings.Repeat("x", length-1)+"\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestARunThatEndsHasNoOpenStreams(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*run) error{
		"by a person": func(r *run) error {
			_, err := r.ledger.EndRun(r.t.Context(), r.id, verdict.Transient, "test", "test")
			return err
		},
		"by its command's end, while what it started reads on": func(r *run) error {
			_, err := r.ledger.FinishRun(r.t.Context(), r.id, ledger.OutcomeDone, false)
			return err
		},
		"by a takeover": func(r *run) error {
			_, err := r.tryOpen("a", func(o *ledger.OpenRun) { o.Takeover = true })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, endless(10))
			r := w.open("a")
			resp, err := r.client.Get(w.upstream.URL + "/stream")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if err := end(r); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(resp.Body); err == nil {
				t.Errorf("the stream ended as if it were whole: %q", text)
			}
		})
	}
}

// The rest of an answer over the limit is a stream like another.
func TestAStopCutsTheRestOfALongAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, endless(10_000))
	r := w.open("a")
	resp, err := r.client.Post(w.upstream.URL+"/pay", "application/json", strings.NewReader(`{"to":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || len(line) != 10_000 {
		t.Fatalf("%d bytes of the answer, %v", len(line), err)
	}
	wantProblem(t, w.open("b").post("/pay", `{"to":"lost"}`), "unknown-outcome", 424, "")
	if rest, err := io.ReadAll(resp.Body); err == nil || len(rest) > 0 {
		t.Errorf("%d bytes came after the stop, %v", len(rest), err)
	}
	if m := w.mutation("a"); m.State != ledger.Applied || m.ResultState != ledger.ResultTooLarge {
		t.Errorf("record is %s, result %s", m.State, m.ResultState)
	}
}

func TestAStreamThatEndsBecauseItIsCutIsNotWhole(t *testing.T) {
	t.Parallel()
	ctx, cut := context.WithCancel(t.Context())
	body := &uncut{io.NopCloser(strings.NewReader("part")), ctx}
	if text, err := io.ReadAll(body); string(text) != "part" || err != nil {
		t.Errorf("a whole stream: %q, %v", text, err)
	}
	cut()
	if _, err := io.ReadAll(body); err == nil {
		t.Error("a stream that was cut ended as if it were whole")
	}
	// What is there still is nobody's any more.
	body = &uncut{io.NopCloser(strings.NewReader("more")), ctx}
	if n, err := body.Read(make([]byte, 4)); n > 0 || err == nil {
		t.Errorf("%d bytes came after the cut, %v", n, err)
	}
	// The end comes in while it is read, and is that of a connection that is cut.
	ctx, cut = context.WithCancel(t.Context())
	body = &uncut{io.NopCloser(endsBy(cut)), ctx}
	if _, err := io.ReadAll(body); err == nil {
		t.Error("a stream that was cut while it was read ended as if it were whole")
	}
}

// endsBy is content that is cut while it is read, and ends in good order.
type endsBy func()

// Read implements io.Reader.
func (e endsBy) Read([]byte) (int, error) {
	e()
	return 0, io.EOF
}

// An inline try may lift the stop before anybody was refused.
func TestAnInlineTryCutsNothing(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			lost(rw, r)
		}
		for line := range next {
			_, _ = io.WriteString(rw, line+"\n")
			rw.(http.Flusher).Flush()
		}
	})
	other := w.open("b")
	resp := other.start(t, "/stream", next)
	w.inliner.try = func(ctx context.Context, m *ledger.Mutation) (*ledger.Mutation, error) {
		if a := w.proxy.standing(caller{workflow: "wf", item: "b"}); a.Open {
			t.Error("the scope is open during the try")
		}
		w.proxy.cutStopped()
		out, err := w.ledger.Observe(ctx, ledger.Observe{
			Key: m.Key, Version: m.Version, Inline: true, Result: &ledger.Result{Status: http.StatusOK},
			Observation: ledger.Observation{At: ledger.Stamp(clock.Take(w.clock)), Strategy: "probe", Seen: ledger.SeenApplied},
		})
		return out.Mutation, err
	}
	wantAnswer(t, w.open("a").post("/ask", `{"to":"x"}`), 200, "", false)
	next <- "after"
	close(next)
	if text, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(text), "after\n") {
		t.Errorf("the stream was cut: %q, %v", text, err)
	}
	if got := other.state(); got.State != ledger.RunRunning {
		t.Errorf("the run is %s", got.State)
	}
}

func TestACutReadIsCutForTheClient(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"text/plain", "text/event-stream"} {
		t.Run(media, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", media)
				_, _ = io.WriteString(rw, "half")
				rw.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			})
			g := w.open("a").get("/read")
			if g.err == nil {
				t.Errorf("got a whole answer: %d %q", g.status, g.body)
			}
		})
	}
}

func TestHopByHopFieldsStay(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		rw.Header().Set("Connection", "X-Hop")
		rw.Header().Set("X-Hop", "1")
		rw.Header().Set("Keep-Replayed", "true")
		rw.Header().Set("X-End", "2")
		_, _ = io.WriteString(rw, "ok")
	})
	r := w.open("a")
	for _, send := range []func() got{
		func() got { return send(r.client, "GET", w.upstream.URL+"/read", "", "Keep-Item", "a", "X-Mine", "m") },
		func() got {
			return send(r.client, "POST", w.upstream.URL+"/pay", `{"to":"x"}`, "X-Mine", "m")
		},
	} {
		g := send()
		if g.status != http.StatusOK {
			t.Fatalf("got %d %s", g.status, g.body)
		}
		h := <-seen
		if h.Get("Keep-Item") != "" || h.Get("Proxy-Authorization") != "" || h.Get("X-Mine") != "m" {
			t.Errorf("the upstream saw %v", h)
		}
		if g.header.Get("X-Hop") != "" || g.header.Get("Keep-Replayed") != "" || g.header.Get("X-End") != "2" {
			t.Errorf("the script saw %v", g.header)
		}
	}
}

func TestIgnoredRequestsLeaveNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	if g := r.post("/telemetry", `{"n":1}`); g.status != 201 {
		t.Errorf("got %d %s", g.status, g.body)
	}
	w.wantSends("/telemetry", 1)
	if page, err := w.ledger.Mutations(t.Context(), ledger.Filter{}); err != nil || len(page.Items) != 0 {
		t.Errorf("%d records, %v", len(page.Items), err)
	}
}

func TestBothProtocolsTowardsTheClient(t *testing.T) {
	t.Parallel()
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			r := w.open("a")
			r.client = w.newClient(url.UserPassword("run", r.token), h2)
			wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
			w.wantSends("/pay", 1)
		})
	}
}

func TestAnAnswerOverTheLimitIsGivenOnceAndNotKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 10_000)
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, long) })
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 200, long, false)
	if m := w.mutation("a"); m.State != ledger.Applied || m.ResultState != ledger.ResultTooLarge {
		t.Errorf("record is %s, result %s", m.State, m.ResultState)
	}
	if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	wantProblem(t, w.open("a").post("/pay", `{"to":"x"}`), "no-result", 424, "happened")
	w.wantSends("/pay", 1)
}

func TestASuccessWhoseBodyIsLateIsCommittedFirst(t *testing.T) {
	t.Parallel()
	of400 := `outcome: [{when: "response.status == 400 && response.json.ok == false", then: uncertain}]`
	for name, c := range map[string]struct{ rules, path string }{
		"no condition reads the body":        {testRules, "/pay"},
		"only one of another status does so": {changed("success: response.json.ok == true", of400), "/shape"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := make(chan struct{})
			release := sync.OnceFunc(func() { close(late) })
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(http.StatusCreated)
				rw.(http.Flusher).Flush()
				<-late
				panic(http.ErrAbortHandler)
			})
			t.Cleanup(release)
			w.use(c.rules)
			r := w.open("a")
			answer := make(chan got, 1)
			go func() { answer <- r.post(c.path, `{"to":"x"}`) }()
			deadline := time.After(waitLimit)
			for committed := false; !committed; {
				select {
				case <-deadline:
					t.Fatal("the success was not recorded ahead of its body")
				default:
				}
				page, err := w.ledger.Mutations(t.Context(), ledger.Filter{Item: "a"})
				if err != nil {
					t.Fatal(err)
				}
				committed = len(page.Items) == 1 && page.Items[0].Committed
			}
			release()
			wantProblem(t, <-answer, "no-result", 424, "It happened")
			if m := w.mutation("a"); m.State != ledger.Applied || m.ResultState != ledger.ResultUnknown {
				t.Errorf("record is %s, result %s", m.State, m.ResultState)
			}
			if s := r.state().State; s != ledger.RunRunning {
				t.Errorf("run is %s", s)
			}
		})
	}
}

// lateSender holds content back until a success has been recorded ahead of it, where one
// is. That is armed before the content is read, and is over before a timer that is begun then.
type lateSender struct{ dispatch.Sender }

func (l lateSender) Send(ctx context.Context, r *upstream.Request) *upstream.Answer {
	a := l.Sender.Send(ctx, r)
	a.Body = &lateBody{Reader: a.Body}
	return a
}

type lateBody struct {
	io.Reader
	late sync.Once
}

func (l *lateBody) Read(p []byte) (int, error) {
	l.late.Do(func() { <-time.After(2 * earlyCommit) })
	return l.Reader.Read(p)
}

// A success that the body decides about is not known by its head.
func TestALateBodyThatDecidesIsAwaited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules, path   string
		status        int
		answer, given string
		state         ledger.State
		committed     bool
	}{
		"its head alone decides": {testRules, "/pay", 201, `{"id":1}`, "", ledger.Applied, true},
		"the rule asks it":       {testRules, "/shape", 200, `{"ok":false}`, "unknown-outcome", ledger.Indeterminate, false},
		"the rule refuses its head": {
			changed("success: response.json.ok == true", `outcome: [{when: "response.status == 200", then: failed, class: logic}]`),
			"/shape", 200, `{"ok":false}`, "", ledger.Failed, false,
		},
		"the rule asks it once it is whole": {
			changed("success: response.json.ok == true", `outcome: [{when: "response.complete && response.json.ok == false", then: failed, class: logic}]`),
			"/shape", 200, `{"ok":false}`, "", ledger.Failed, false,
		},
		"the rule asks of the head once it is whole": {
			changed("success: response.json.ok == true", `outcome: [{when: "response.complete && response.status == 200", then: failed, class: logic}]`),
			"/shape", 200, `{"ok":false}`, "", ledger.Failed, false,
		},
		"the rule asks it of this status": {
			changed("success: response.json.ok == true", `outcome: [{when: "response.status == 200 && response.json.ok == false", then: failed, class: logic}]`),
			"/shape", 200, `{"ok":false}`, "", ledger.Failed, false,
		},
		"it is to be followed": {watchedRules, "/jobs", 202, `{"id":"j1"}`, "", ledger.NeedsReconcile, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(c.status)
				rw.(http.Flusher).Flush()
				_, _ = io.WriteString(rw, c.answer)
			}, func(c *Config) { c.Sender = lateSender{c.Sender} })
			w.use(c.rules)
			g := w.open("a").post(c.path, `{"to":"x"}`)
			if c.given != "" {
				wantProblem(t, g, c.given, 424, "unknown")
			} else {
				wantAnswer(t, g, c.status, c.answer, false)
			}
			if m := w.mutation("a"); m.State != c.state || m.Committed != c.committed {
				t.Errorf("record is %s, committed %t, want %s, %t", m.State, m.Committed, c.state, c.committed)
			}
		})
	}
}

// The stored answer must suit any client that it is replayed to.
func TestNoContentCodingIsAskedFor(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Accept-Encoding")
		created(rw, r)
	})
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`, "Accept-Encoding", "gzip, br"), 201, `{"id":1}`, false)
	if got := <-seen; got != "identity" {
		t.Errorf("the upstream was asked for %q", got)
	}
}
