package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// rpcRules takes payments by JSON-RPC.
const rpcRules = testRules + `  - name: rpc
    match: {method: POST, path: /rpc, jsonrpc: {method: pay}}
    effect: mutation
    identity: {to: jsonrpc.params.to}
    outcome: [{when: "response.?jsonrpc.?error.?code.orValue(0) == 7", then: failed, class: logic}]
    reconcile: [{none: "the test API can't be asked"}]
    manual_check: look
`

// calling answers each call with its own id.
func calling(answer string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, id, _ := strings.Cut(string(body), `"id":`)
		id, _, _ = strings.Cut(id, ",")
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Digest", "sha-256=:x:")
		_, _ = io.WriteString(rw, `{"jsonrpc":"2.0",`+answer+`,"id":`+id+`}`)
	}
}

func callOf(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"pay","params":{"to":"x"}}`
}

func TestAReplayHasTheIDOfItsOwnCall(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{"short": "", "long": strings.Repeat("x", 80<<10)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, calling(`"result":{"id":5,"text":"`+long+`"}`))
			w.use(rpcRules)
			of := func(id string) string {
				return `{"jsonrpc":"2.0","result":{"id":5,"text":"` + long + `"},"id":` + id + `}`
			}
			first := w.open("a").post("/rpc", callOf("1"))
			wantAnswer(t, first, 200, of("1"), false)
			if first.header.Get("Content-Digest") == "" {
				t.Error("an answer that wasn't changed lost its digest")
			}
			w.endRun(&run{world: w, id: w.mutation("a").Run})
			again := w.open("a").post("/rpc", callOf(`"b-2"`))
			wantAnswer(t, again, 200, of(`"b-2"`), true)
			if again.header.Get("Content-Digest") != "" {
				t.Error("an answer that was changed has the digest of the other")
			}
			w.wantSends("/rpc", 1)
		})
	}
}

// Callers that join one sending each get the answer to their own call.
func TestJoinersHaveTheIDsOfTheirOwnCalls(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"a result": `"result":{}`, "a failure": `"error":{"code":7}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-release
				calling(answer)(rw, r)
			})
			w.use(rpcRules)
			first := w.open("a")
			leads := make(chan got, 1)
			go func() { leads <- first.post("/rpc", callOf("1")) }()
			<-arrived
			joiner := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
			joins := make(chan got, 1)
			go func() { joins <- joiner.post("/rpc", callOf("22")) }()
			w.waitForCallers(2)
			close(release)
			wantAnswer(t, <-leads, 200, `{"jsonrpc":"2.0",`+answer+`,"id":1}`, false)
			wantAnswer(t, <-joins, 200, `{"jsonrpc":"2.0",`+answer+`,"id":22}`, false)
			w.wantSends("/rpc", 1)
		})
	}
}

// A success that holds an error may come after the effect.
func TestAnErrorInASuccessIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, calling(`"error":{"code":1}`))
	w.use(rpcRules)
	if g := w.open("a").post("/rpc", callOf("1")); !strings.Contains(g.body, "problem:unknown-outcome") {
		t.Errorf("got %d %q", g.status, g.body)
	}
	w.wantSends("/rpc", 1)
}
