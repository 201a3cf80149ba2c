package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// trailing answers with as many bytes as the query says, and trailer fields behind them. It
// keeps what it saw of requests' fields.
func trailing(seen chan<- http.Header) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		rw.Header().Set("Content-Type", "text/plain")
		rw.Header().Set("Trailer", "Sum, Keep-State")
		size, _ := strconv.Atoi(r.Header.Get("X-Size"))
		_, _ = io.WriteString(rw, strings.Repeat("x", size))
		rw.Header().Set("Sum", "7")
		rw.Header().Set("Keep-State", "failed")
	}
}

// trailed sends a mutation, and says whether its client takes trailers.
func (r *run) trailed(t *testing.T, path string, size int, takes bool) (got, *http.Response) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.upstream.URL+path, strings.NewReader(`{"to":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Size", strconv.Itoa(size))
	if takes {
		req.Header.Set("TE", "trailers")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(text), err}, resp
}

// Trailers of a recorded answer are kept, and each caller that takes them gets them, with the
// first answer and with a replay. The upstream is told so where its protocol lets it be said.
func TestTrailersOfARecordedAnswerAreReplayed(t *testing.T) {
	t.Parallel()
	for _, upstream := range []bool{true, false} {
		for _, client := range []bool{true, false} {
			t.Run(fmt.Sprintf("HTTP/2: upstream %t, client %t", upstream, client), func(t *testing.T) {
				t.Parallel()
				seen := make(chan http.Header, 4)
				w := newOver(t, upstream, testRules, trailing(seen))
				r := w.open("a")
				r.client = w.newClient(r.user(), client)
				for i, takes := range []bool{true, true, false} {
					g, resp := r.trailed(t, "/again", 2, takes)
					wantAnswer(t, g, http.StatusOK, "xx", i > 0)
					if got := resp.Trailer.Get("Sum"); (got == "7") != takes || !takes && len(resp.Trailer) > 0 {
						t.Errorf("answer %d has trailers %v", i, resp.Trailer)
					}
					if resp.Trailer.Get("Keep-State") != "" || g.header.Get("Keep-State") != "applied" {
						t.Errorf("the upstream's own Keep-State came with %v, behind %v", resp.Trailer, g.header)
					}
					if length := resp.ContentLength; takes != (length < 0) {
						t.Errorf("answer %d: the content has length %d", i, length)
					}
				}
				w.wantSends("/again", 1)
				if got := (<-seen).Get("TE"); (got == "trailers") != upstream || !upstream && got != "" {
					t.Errorf("the upstream saw TE %q", got)
				}
			})
		}
	}
}

// Of a read's trailers those arrive that may stand there, announced or not.
func TestTrailersOfAReadAreHeldToTheirNames(t *testing.T) {
	t.Parallel()
	names := []string{"Sum", "Alt-Svc", "Http2-Settings", "Keep-State", "Keep-Mutation", "Set-Cookie", "Location", "Upgrade", "Age", "Retry-After"}
	for _, announced := range []bool{true, false} {
		for _, upstream := range []bool{true, false} {
			for _, client := range []bool{true, false} {
				for _, plain := range []bool{true, false} {
					t.Run(fmt.Sprintf("announced %t, HTTP/2: upstream %t, client %t, plain %t", announced, upstream, client, plain), func(t *testing.T) {
						t.Parallel()
						if plain && client {
							t.Skip("there is no HTTP/2 without TLS")
						}
						w := newOver(t, upstream, testRules, func(rw http.ResponseWriter, _ *http.Request) {
							prefix := http.TrailerPrefix
							if announced {
								rw.Header().Set("Trailer", strings.Join(names, ", "))
								prefix = ""
							}
							_, _ = io.WriteString(rw, "content")
							_ = http.NewResponseController(rw).Flush()
							for _, name := range names {
								rw.Header().Set(prefix+name, "7")
							}
						})
						r := w.open("a")
						if plain {
							text := w.talk("GET " + w.upstream.URL + "/read HTTP/1.1\r\nHost: " + w.authority + "\r\nTE: trailers\r\nConnection: close, TE\r\n" + w.basic(r.token) + "\r\n")
							lower := strings.ToLower(string(text))
							if !strings.Contains(lower, "\r\nsum: 7\r\n") || strings.Count(lower, ": 7\r\n") != 1 {
								t.Errorf("got %q", text)
							}
							return
						}
						r.client = w.newClient(r.user(), client)
						resp, err := r.client.Get(w.upstream.URL + "/read")
						if err != nil {
							t.Fatal(err)
						}
						defer func() { _ = resp.Body.Close() }()
						if text, err := io.ReadAll(resp.Body); string(text) != "content" || err != nil {
							t.Fatalf("%q, %v", text, err)
						}
						if len(resp.Trailer) != 1 || resp.Trailer.Get("Sum") != "7" {
							t.Errorf("the trailers are %v", resp.Trailer)
						}
					})
				}
			}
		}
	}
}

// A client that doesn't take trailers asks for none.
func TestNoTrailersAreAskedForInAnothersName(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 4)
	w := newOver(t, true, testRules, trailing(seen))
	r := w.open("a")
	g, _ := r.trailed(t, "/pay", 2, false)
	wantAnswer(t, g, http.StatusOK, "xx", false)
	if got := (<-seen).Get("TE"); got != "" {
		t.Errorf("the upstream saw TE %q", got)
	}
	if m := w.mutation("a"); m.State != ledger.Applied || m.Result.Trailer["Sum"] == nil || len(m.Result.Trailer) != 1 {
		t.Errorf("kept is %+v", m.Result)
	}
}

// An answer over the limit is passed on as it comes, with what comes behind it.
func TestTrailersOfAnAnswerOverTheLimitArrive(t *testing.T) {
	t.Parallel()
	const size = 64 << 10 // The rule's limit is 4 KiB.
	for _, takes := range []bool{true, false} {
		w := newOver(t, true, testRules, trailing(make(chan http.Header, 1)))
		g, resp := w.open("a").trailed(t, "/pay", size, takes)
		if g.err != nil || len(g.body) != size {
			t.Fatalf("%d bytes, %v", len(g.body), g.err)
		}
		if got := resp.Trailer.Get("Sum"); (got == "7") != takes || resp.Trailer.Get("Keep-State") != "" {
			t.Errorf("TE %t: trailers %v", takes, resp.Trailer)
		}
	}
}

// A call of gRPC that a rule calls a mutation is judged by the rule, and its status comes
// behind the answer, in a replay too.
func TestACallOfGRPCIsReplayedWithItsStatus(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 4)
	w := newOver(t, true, callRules, echoing(seen))
	for _, replayed := range []string{"", "true"} {
		framer := w.open("a", func(o *ledger.OpenRun) { o.Takeover = replayed != "" }).h2session()
		w.call(t, framer, 1, "/keep.Things/Make")
		if err := framer.WriteData(1, true, message("one")); err != nil {
			t.Fatal(err)
		}
		head, _, end := next(t, framer)
		if head == nil || end || head.PseudoValue("status") != "200" || field(head, "keep-replayed") != replayed {
			t.Fatalf("the head: %+v", head.Fields)
		}
		if _, content, _ := next(t, framer); string(content) != string(message("re: one")) {
			t.Errorf("the content: %q", content)
		}
		if trailers, _, end := next(t, framer); trailers == nil || !end || field(trailers, "grpc-status") != "0" || field(trailers, "grpc-message") != "done" {
			t.Errorf("behind the content: %+v", trailers)
		}
	}
	w.wantSends("/keep.Things/Make", 1)
	if got := (<-seen).Get("TE"); got != "trailers" {
		t.Errorf("the server saw TE %q", got)
	}
}

// callRules declare a method of a gRPC service that changes something.
const callRules = `apiVersion: keep/v1
connector: api
version: 1
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: make
    match: {method: POST, path: "/keep.Things/{method}"}
    effect: mutation
    describe: "Make a thing"
    identity: {method: path.method}
    outcome:
      - {when: response.status == 200, then: applied}
    reconcile:
      - none: "the test API can't be asked"
    manual_check: "look"
`
