package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// eventRules are those of a server that answers a call by a stream of events.
const eventRules = `apiVersion: keep/v1
connector: api
version: 1
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: call
    match: {method: POST, path: /mcp, jsonrpc: {method: tools/call}}
    effect: mutation
    describe: "Call {jsonrpc.params.name}"
    identity: {name: jsonrpc.params.name}
    stream: true
    payload: {ignore: [jsonrpc.params.inputs]}
    outcome:
      - {when: "response.jsonrpc.?result.?resultType.orValue('') == 'input_required'", then: continues}
    reconcile:
      - none: "the server can't be asked"
    manual_check: "look"
`

const (
	calledAs = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}`
	progress = "id: e1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n"
	answer   = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
)

// eventStream is an upstream that begins with progress, and goes on once the client has it.
func eventStream(read <-chan struct{}, then func(w io.Writer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, progress)
		_ = http.NewResponseController(w).Flush()
		if read != nil {
			<-read
		}
		then(w)
	}
}

// begin posts the call, and reads what comes up to the progress.
func (r *run) begin() (*http.Response, *bufio.Reader) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.upstream.URL+"/mcp", strings.NewReader(calledAs))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = resp.Body.Close() })
	in := bufio.NewReader(resp.Body)
	got := make([]byte, len(progress))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != progress {
		r.t.Fatalf("the stream began with %q, %v", got, err)
	}
	return resp, in
}

func TestEventsPassAheadOfTheAnswer(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	w := newWorld(t, eventStream(read, func(w io.Writer) { _, _ = fmt.Fprintf(w, "event: message\r\ndata: %s\r\n\r\ndata: more\n\n", answer) }))
	w.use(eventRules)
	r := w.open("A-1")
	resp, in := r.begin()
	if m := w.mutation("A-1"); m.State != ledger.InFlight {
		t.Errorf("the head alone made it %s", m.State)
	}
	close(read)
	rest, err := io.ReadAll(in)
	if want := "event: message\ndata: " + answer + "\n\n"; err != nil || string(rest) != want {
		t.Errorf("the stream ended with %q, %v, want %q", rest, err, want)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("Content-Type %q", kind)
	}
	if m := w.mutation("A-1"); m.State != ledger.Applied {
		t.Errorf("it is %s", m.State)
	}
	w.end(r)
	again := w.open("A-1").post("/mcp", calledAs)
	wantAnswer(t, again, http.StatusOK, answer, true)
	if kind := again.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("the replay is %q", kind)
	}
	w.wantSends("/mcp", 1)
}

func TestAStreamWithoutTheAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(io.Writer){
		"it ends":                 func(io.Writer) {},
		"it answers another call": func(w io.Writer) { _, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{}}\n\n") },
		"it asks by the same id": func(w io.Writer) {
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n")
		},
		"the answer is cut": func(w io.Writer) { _, _ = io.WriteString(w, "data: "+answer+"\n") },
		"the answer is an error": func(w io.Writer) {
			_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":1}}\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, eventStream(nil, then))
			w.use(eventRules)
			_, in := w.open("A-1").begin()
			rest, err := io.ReadAll(in)
			if err != nil || !strings.Contains(string(rest), `"id":7,"error":{"code":-32001`) || !strings.Contains(string(rest), "unknown-outcome") {
				t.Errorf("the stream ended with %q, %v", rest, err)
			}
			if m := w.mutation("A-1"); m.State != ledger.NeedsReconcile && m.State != ledger.Indeterminate {
				t.Errorf("it is %s", m.State)
			}
		})
	}
}

func TestAClientThatLeavesAStreamFindsItsAnswer(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	w := newWorld(t, eventStream(left, func(w io.Writer) { _, _ = fmt.Fprintf(w, "data: %s\n\n", answer) }))
	w.use(eventRules)
	r := w.open("A-1")
	resp, _ := r.begin()
	_ = resp.Body.Close()
	r.client.CloseIdleConnections()
	w.end(r)
	second := make(chan got, 1)
	next := w.open("A-1")
	go func() { second <- next.post("/mcp", calledAs) }()
	close(left)
	if g := <-second; g.err != nil || g.body != answer {
		t.Errorf("got %d %q, %v", g.status, g.body, g.err)
	}
	w.wantSends("/mcp", 1)
}

func TestTheAnswerIsRecordedBeforeItIsTold(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	w := newWorld(t, eventStream(read, func(w io.Writer) { _, _ = fmt.Fprintf(w, "data: %s\n\n", answer) }))
	w.use(eventRules)
	_, in := w.open("A-1").begin()
	w.store.FailBefore()
	close(read)
	rest, err := io.ReadAll(in)
	if err != nil || strings.Contains(string(rest), "content") || !strings.Contains(string(rest), "unknown-outcome") {
		t.Errorf("the stream ended with %q, %v", rest, err)
	}
}

// A server may close its connection, and let the client ask for the rest.
func TestTheRestOfAStreamIsAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rest  func(http.ResponseWriter)
		asked int
		state ledger.State
	}{
		"it holds the answer": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "data: %s\n\n", answer)
		}, 1, ledger.Applied},
		"it comes bit by bit": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: e2\ndata: {}\n\n")
		}, 2, ledger.Applied},
		"it holds nothing": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
		}, 3, ledger.Indeterminate},
		"there is none": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) }, 1, ledger.Indeterminate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			var last atomic.Int64 // when it was asked
			w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					eventStream(nil, func(w io.Writer) { _, _ = io.WriteString(w, "retry: 1\n\n") })(w, r)
					return
				}
				n := asked.Add(1)
				last.Store(time.Now().UnixMicro())
				if want := map[bool]string{false: "e1", true: "e2"}[n > 1 && name == "it comes bit by bit"]; r.Header.Get("Last-Event-ID") != want || r.Header.Get("Content-Type") != "" {
					t.Errorf("asked with %v, want event %s", r.Header, want)
				}
				if n > 1 && name == "it comes bit by bit" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = fmt.Fprintf(w, "data: %s\n\n", answer)
					return
				}
				c.rest(w)
			})
			w.use(eventRules)
			_, in := w.open("A-1").begin()
			if _, err := io.ReadAll(in); err != nil {
				t.Error(err)
			}
			m := w.mutation("A-1")
			if m.State != c.state || int(asked.Load()) != c.asked {
				t.Errorf("it is %s, after %d questions", m.State, asked.Load())
			}
			if d := m.Current(); c.state != ledger.Applied && d.Ended.Wall.Before(time.UnixMicro(last.Load())) {
				t.Errorf("the sending ended at %s, and the rest was asked for after that", d.Ended.Wall)
			}
			w.wantSends("/mcp", 1+c.asked)
		})
	}
}

func TestAClientThatComesBackGetsTheRestOfTheStream(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]string{
		answer:                          "data: " + answer + "\n\n",
		`"id":7,"error":{"code":-32001`: "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			back := make(chan struct{})
			w := newWorld(t, eventStream(back, func(w io.Writer) { _, _ = io.WriteString(w, last) }))
			w.use(strings.Replace(eventRules, "stream: true", "stream: true\n    timeout: 1s", 1))
			r := w.open("A-1")
			resp, _ := r.begin()
			_ = resp.Body.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.upstream.URL+"/mcp", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Last-Event-ID", "e1")
			again, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = again.Body.Close() }()
			w.wantSends("/mcp", 1) // The client's GET is none of the upstream's.
			close(back)
			rest, err := io.ReadAll(again.Body)
			if err != nil || !strings.Contains(string(rest), name) || strings.Contains(string(rest), "progress") {
				t.Errorf("the rest is %q, %v", rest, err)
			}
		})
	}
}

// A server may ask for inputs first. The call that brings them is the same mutation's next sending.
func TestACallThatBringsInputsIsItsNextSending(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(asked), "inputs") {
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":8,"result":{"content":[]}}`)
			return
		}
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}`)
	})
	w.use(eventRules)
	r := w.open("A-1")
	wantAnswer(t, r.post("/mcp", calledAs), http.StatusOK, `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}`, false)
	wantAnswer(t, r.post("/mcp", strings.NewReplacer(`"id":7`, `"id":8`, `"name":"pay"`, `"name":"pay","inputs":{"a":1}`).Replace(calledAs)),
		http.StatusOK, `{"jsonrpc":"2.0","id":8,"result":{"content":[]}}`, false)
	if m := w.mutation("A-1"); m.State != ledger.Applied || len(m.Dispatches) != 2 {
		t.Errorf("it is %s after %d sendings", m.State, len(m.Dispatches))
	}
	w.end(r)
	wantAnswer(t, w.open("A-1").post("/mcp", strings.Replace(calledAs, `"id":7`, `"id":"x"`, 1)), http.StatusOK, `{"jsonrpc":"2.0","id":"x","result":{"content":[]}}`, true)
	w.wantSends("/mcp", 2)
}
