package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// What a run was refused keeps it from being done until it got through.
func TestARunIsDoneOnceWhatItWasRefusedGotThrough(t *testing.T) {
	t.Parallel()
	// Others is an API of no connector.
	others := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	t.Cleanup(others.Close)
	elsewhere := func(r *run, body io.Reader) got {
		req, err := http.NewRequest(http.MethodPost, others.URL+"/x?token=1", body)
		if err != nil {
			return got{err: err}
		}
		resp, err := r.client.Do(req)
		if err != nil {
			return got{err: err}
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		return got{resp.StatusCode, resp.Header, string(text), err}
	}
	chunked := func() io.Reader {
		return io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<16)), strings.NewReader("y"))
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pay" {
			w.Header().Set("Location", "/again?moved=1")
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
		created(w, r)
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		rules   string
		change  func(c *Config, away *atomic.Bool)
		// ask asks while something is away, again once it is back.
		ask, again func(r *run) got
		refused    string
		done       bool
	}{
		"the same mutation": {
			change: paused, ask: func(r *run) got { return r.post("/pay", payX) },
			again: func(r *run) got { return r.post("/pay", payX) }, refused: "draining", done: true,
		},
		"another mutation": {
			change: paused, ask: func(r *run) got { return r.post("/pay", payX) },
			again: func(r *run) got { return r.post("/pay", `{"to":"y"}`) }, refused: "draining",
		},
		"nothing": {
			change: paused, ask: func(r *run) got { return r.post("/pay", payX) }, refused: "draining",
		},
		"nothing, of a mutation by GET": {
			rules: getRules, change: paused, ask: func(r *run) got { return r.get("/trigger/x") }, refused: "draining",
		},
		"nothing, of what only reads": {
			change: noEgress, ask: func(r *run) got { return r.get("/read") }, refused: "egress", done: true,
		},
		"the same request to a host of no connector": {
			change: func(c *Config, away *atomic.Bool) { noEgress(c, away); c.Unmatched = PolicyAllow },
			ask:    func(r *run) got { return elsewhere(r, strings.NewReader("x")) },
			again:  func(r *run) got { return elsewhere(r, strings.NewReader("x")) }, refused: "egress", done: true,
		},
		"one whose content was not read": {
			change: func(c *Config, away *atomic.Bool) { noEgress(c, away); c.Unmatched = PolicyAllow },
			ask:    func(r *run) got { return elsewhere(r, chunked()) },
			again:  func(r *run) got { return elsewhere(r, chunked()) }, refused: "egress",
		},
		"nothing, to a host of no connector": {
			ask: func(r *run) got { return elsewhere(r, chunked()) }, refused: "unmatched",
		},
		"nothing, to a host that is expected": {
			change: func(c *Config, _ *atomic.Bool) { c.Expected = []string{"127.0.0.1"} },
			ask:    func(r *run) got { return elsewhere(r, chunked()) }, refused: "unmatched", done: true,
		},
		"a redirect's Location": {
			handler: redirect, ask: func(r *run) got { return r.post("/pay", payX) },
			again: func(r *run) got { return r.post("/again?moved=1", payX) }, done: true,
		},
		"another address than a redirect's Location": {
			handler: redirect, ask: func(r *run) got { return r.post("/pay", payX) },
			again: func(r *run) got { return r.post("/again", payX) },
		},
		"a tunnel to the same host": {
			change: func(c *Config, away *atomic.Bool) {
				c.Passthrough = []string{"127.0.0.1:1"}
				c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
					if away.Load() {
						return nil, errors.New("it is away")
					}
					return (&net.Dialer{}).DialContext(ctx, network, others.Listener.Addr().String())
				}
			}, ask: tunnelled, again: tunnelled, refused: "not-sent", done: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var away atomic.Bool
			handler := c.handler
			if handler == nil {
				handler = created
			}
			w := newWorld(t, handler, func(config *Config) {
				if c.change != nil {
					c.change(config, &away)
				}
			})
			if c.rules != "" {
				w.use(c.rules)
			}
			away.Store(true)
			r := w.open("a")
			if g := c.ask(r); g.err != nil || g.problem() != c.refused {
				t.Fatalf("got %d %s %v, want %q", g.status, g.body, g.err, c.refused)
			}
			away.Store(false)
			if c.again != nil {
				if g := c.again(r); g.err != nil || g.problem() != "" {
					t.Fatalf("again: got %d %s %v", g.status, g.body, g.err)
				}
			}
			_, err := w.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeDone, false)
			if refused, is := errors.AsType[*ledger.RefusedError](err); is == c.done || err != nil && !is {
				t.Errorf("finished as done: %v (%+v)", err, refused)
			}
			for _, f := range r.state().Refused {
				if strings.Contains(f.Path, "token") {
					t.Errorf("the query is kept: %+v", f)
				}
			}
		})
	}
}

// paused keeps mutations back while something is away.
func paused(c *Config, away *atomic.Bool) {
	c.Halted = func() Halt { return Halt{Sending: away.Load()} }
}

// noEgress lets nothing out while something is away.
func noEgress(c *Config, away *atomic.Bool) {
	out := upstream.Config{Clock: c.Clock, Egress: func(netip.AddrPort) error {
		if away.Load() {
			return errors.New("private")
		}
		return nil
	}}
	c.Sender, c.Reads = upstream.New(out), upstream.NewPassthrough(out)
}

func tunnelled(r *run) got {
	c, _, resp := r.tunnelTo("127.0.0.1:1")
	defer func() { _ = c.Close() }()
	if resp.StatusCode == http.StatusOK {
		return got{status: resp.StatusCode}
	}
	body, err := io.ReadAll(resp.Body)
	return got{resp.StatusCode, resp.Header, string(body), err}
}
