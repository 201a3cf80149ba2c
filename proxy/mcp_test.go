package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// mcpRules are the bundled ones for MCP servers.
func mcpRules(t *testing.T) string {
	t.Helper()
	file, err := os.ReadFile("../connectors/mcp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(file), "hosts: [mcp.keep-proxy.test]", `hosts: ["HOST"]`, 1)
	if text == string(file) {
		t.Fatal("the connector has other hosts")
	}
	return text
}

// toolServer answers a call of a tool by a stream, which begins with a question to the client. It goes on once the
// client has answered and knows that.
type toolServer struct {
	goOn chan struct{}
	then string
}

func newToolServer(then string) *toolServer { return &toolServer{make(chan struct{}), then} }

func (s *toolServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case string(body) == theAnswer:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Mcp-Session-Id", "s1")
		_, _ = io.WriteString(w, question)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-s.goOn:
			_, _ = io.WriteString(w, s.then)
		case <-r.Context().Done():
		}
	}
}

const (
	question  = "id: e1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"elicitation/create\",\"params\":{}}\n\n"
	theAnswer = `{"jsonrpc":"2.0","id":5,"result":{"action":"accept","content":{"sure":true}}}`
	payCall   = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","arguments":{"order":"A-17"},"_meta":{"progressToken":7}}}`
	paid      = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
)

// call posts the call, and reads the question.
func (r *run) call() (*http.Response, *bufio.Reader) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.upstream.URL+"/mcp", strings.NewReader(payCall))
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
	got := make([]byte, len(question))
	if _, err := io.ReadFull(in, got); err != nil || string(got) != question {
		r.t.Fatalf("the stream began with %q, %v", got, err)
	}
	return resp, in
}

func TestACallOfAToolGoesOnByTheAnswerToItsQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then  string
		state ledger.State
		last  string
	}{
		"a result":           {"data: " + paid + "\n\n", ledger.Applied, paid},
		"an error of a tool": {`data: {"jsonrpc":"2.0","id":7,"result":{"content":[],"isError":true}}` + "\n\n", ledger.Indeterminate, "unknown-outcome"},
		"a task":             {`data: {"jsonrpc":"2.0","id":7,"result":{"resultType":"task","taskId":"t"}}` + "\n\n", ledger.Indeterminate, "unknown-outcome"},
		"nothing":            {"retry: 1\n\n", ledger.Indeterminate, "unknown-outcome"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newToolServer(c.then)
			w := newWorld(t, s.ServeHTTP)
			w.use(mcpRules(t))
			r := w.open("A-1")
			resp, in := r.call()
			if m := w.mutation("A-1"); m.State != ledger.InFlight {
				t.Errorf("the question made it %s", m.State)
			}
			if g := r.post("/mcp", theAnswer); g.err != nil || g.status != http.StatusAccepted {
				t.Errorf("the client's answer got %d %s, %v", g.status, g.body, g.err)
			}
			close(s.goOn)
			rest, err := io.ReadAll(in)
			if err != nil || !strings.Contains(string(rest), c.last) {
				t.Errorf("the stream ended with %q, %v", rest, err)
			}
			_ = resp.Body.Close()
			if m := w.mutation("A-1"); m.State != c.state {
				t.Errorf("it is %s", m.State)
			}
			if w.end(r); c.state == ledger.Applied {
				again := strings.NewReplacer(`"id":7`, `"id":"b"`, `"progressToken":7`, `"progressToken":9`).Replace(payCall)
				replay := w.open("A-1").post("/mcp", again)
				wantAnswer(t, replay, http.StatusOK, strings.Replace(paid, `"id":7`, `"id":"b"`, 1), true)
				if s := replay.header.Get("Mcp-Session-Id"); s != "" {
					t.Errorf("the second run is told the first one's session %s", s)
				}
				w.wantSends("/mcp", 2) // The call and the answer.
			}
		})
	}
}

// A client that lost its connection goes on with its stream; the question isn't asked again.
func TestAClientComesBackToTheStreamOfACall(t *testing.T) {
	t.Parallel()
	s := newToolServer("data: " + paid + "\n\n")
	w := newWorld(t, s.ServeHTTP)
	w.use(mcpRules(t))
	r := w.open("A-1")
	resp, _ := r.call()
	_ = resp.Body.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.upstream.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Last-Event-ID", "e1")
	back, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = back.Body.Close() }()
	if g := r.post("/mcp", theAnswer); g.status != http.StatusAccepted {
		t.Errorf("the client's answer got %d %s, %v", g.status, g.body, g.err)
	}
	close(s.goOn)
	rest, err := io.ReadAll(back.Body)
	if want := "event: message\ndata: " + paid + "\n\n"; err != nil || string(rest) != want {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	if m := w.mutation("A-1"); m.State != ledger.Applied || len(m.Dispatches) != 1 {
		t.Errorf("it is %s after %d sendings", m.State, len(m.Dispatches))
	}
	w.wantSends("/mcp", 2) // The call and the answer.
}

// By revision 2026-07-28 a server asks in its result. The call that brings what it asked for is the next sending.
func TestACallOfAToolBringsWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	const asks = `{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"sure":{}},"requestState":"x"}}`
	w := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.Contains(string(body), "inputResponses") {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", strings.Replace(paid, `"id":7`, `"id":8`, 1))
			return
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", asks)
	})
	w.use(mcpRules(t))
	r := w.open("A-1")
	if g := r.post("/mcp", payCall); !strings.Contains(g.body, asks) {
		t.Fatalf("got %d %s, %v", g.status, g.body, g.err)
	}
	brings := strings.NewReplacer(`"id":7`, `"id":8`, `"_meta"`, `"inputResponses":{"sure":{"action":"accept"}},"requestState":"x","_meta"`).Replace(payCall)
	if g := r.post("/mcp", brings); !strings.Contains(g.body, `"id":8,"result"`) {
		t.Fatalf("got %d %s, %v", g.status, g.body, g.err)
	}
	if m := w.mutation("A-1"); m.State != ledger.Applied || len(m.Dispatches) != 2 {
		t.Errorf("it is %s after %d sendings", m.State, len(m.Dispatches))
	}
	w.wantSends("/mcp", 2)
}
