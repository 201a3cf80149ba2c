package rules

import (
	"net/http"
	"strings"
	"testing"
)

// calling asks by calls of JSON-RPC, and tells the server that it is ready between them.
const calling = `
  - name: make
    match: {method: POST, path: /rpc, jsonrpc: {method: make}}
    effect: mutation
    identity: {of: jsonrpc.params.of}
    reconcile:
      - probe:
          steps:
            - name: hello
              post: /rpc
              json: {jsonrpc: "2.0", id: 1, method: hello}
            - name: ready
              post: /rpc
              header: {session: {cel: "steps.hello.header['session']"}, version: {cel: steps.hello.jsonrpc.result.version}}
              json: {jsonrpc: "2.0", method: ready}
              expect: response.status == 202
            - name: list
              post: /rpc
              json: {jsonrpc: "2.0", id: 2, method: list}
              candidates: response.jsonrpc.result
              ours: found.of == jsonrpc.params.of
              tie: unique
              id: found.id
              created: timestamp(found.created)
    manual_check: look
`

func TestAProbeTakesTheAnswerToItsCallOutOfAStream(t *testing.T) {
	t.Parallel()
	_, op := operation(t, calling)
	req := request(t, "POST https://api.test/rpc", `{"jsonrpc":"2.0","id":9,"method":"make","params":{"of":"a"}}`, "Content-Type: application/json")
	stream := func(body string) *Response {
		return &Response{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Session": {"s1"}}, Body: []byte(body), Complete: true}
	}
	const (
		hello = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"version\":\"v\"}}\n\n"
		list  = `{"jsonrpc":"2.0","id":2,"result":[{"id":"o1","of":"a","created":"2026-01-02T04:00:00Z"}]}`
	)
	for name, c := range map[string]struct {
		body string
		seen Seen
	}{
		"behind other messages": {
			"id: e1\ndata:\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}\n\nevent: message\ndata: " + list + "\n\n: more\n\n", SeenApplied,
		},
		"with CR and LF":       {"event: message\r\ndata:" + list + "\r\n\r\n", SeenApplied},
		"in two lines":         {"data: {\"jsonrpc\":\"2.0\",\rdata: " + list[len(`{"jsonrpc":"2.0",`):] + "\r\r", SeenApplied},
		"an empty listing":     {"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}\n\n", SeenAbsent},
		"an error":             {"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":1}}\n\n", SeenRetry},
		"of another call":      {"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":[]}\n\n", SeenRetry},
		"a call of the server": {"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"result\":[]}\n\n", SeenRetry},
		"cut":                  {"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]}\n", SeenRetry},
		"nothing":              {"", SeenRetry},
	} {
		asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: caseMutation()})
		if err != nil {
			t.Fatal(err)
		}
		asking.Answer(stream(hello))
		ready, _ := asking.Next()
		if ready == nil || ready.Header.Get("Session") != "s1" || ready.Header.Get("Version") != "v" {
			t.Fatalf("%s: told %+v", name, ready)
		}
		asking.Answer(&Response{Status: 202, Complete: true})
		asking.Answer(stream(c.body))
		if o := asking.Observation(func(string) bool { return false }, Clocks{Measured: true, SameBoot: true}); o.Seen != c.seen {
			t.Errorf("%s: %s, %s", name, o.Seen, o.Reason)
		}
	}
}

// A server chooses how many lines an event has.
func TestAnEventOfManyLinesIsReadOnce(t *testing.T) { //nolint:paralleltest // it counts allocations
	r := &Response{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: []byte(strings.Repeat("data:\n", 10_000) + "\n")}
	ask := &Ask{Body: []byte(`{"jsonrpc":"2.0","id":1}`)}
	if n := testing.AllocsPerRun(1, func() { r.ofCall(ask) }); n > 500 {
		t.Errorf("%g allocations", n)
	}
}
