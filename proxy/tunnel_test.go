package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// tunnelTo opens a tunnel to a target; the answer's status tells whether there is one.
func (r *run) tunnelTo(target string) (net.Conn, *bufio.Reader, *http.Response) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, base64.StdEncoding.EncodeToString([]byte("run:"+r.token)))
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		r.t.Fatal(err)
	}
	return c, in, resp
}

func TestAnotherServerNameIsMisdirected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	target := strings.TrimPrefix(w.upstream.URL, "https://")
	c, _, _ := r.tunnelTo(target)
	session := tls.Client(c, &tls.Config{RootCAs: w.roots, ServerName: "elsewhere.example", MinVersion: tls.VersionTLS12})
	_, _ = fmt.Fprintf(session, "GET /read HTTP/1.1\r\nHost: %s\r\n\r\n", target)
	resp, err := http.ReadResponse(bufio.NewReader(session), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	wantProblem(t, got{resp.StatusCode, resp.Header, string(body), nil}, "misdirected", 421, "tunnel")
	w.wantSends("/read", 0)
}

// A request of HTTP/1.0 may have no Host field. Its tunnel tells whom it is for.
func TestAnHTTP10RequestIsForItsTunnel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	c, _, _ := w.open("a").tunnelTo(w.authority)
	session := tls.Client(c, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12})
	_, _ = fmt.Fprint(session, "GET /read HTTP/1.0\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(session), nil)
	if err != nil || resp.StatusCode >= 400 {
		t.Errorf("%v, %v", resp, err)
	}
	w.wantSends("/read", 1)
}

// echo is an upstream that is no HTTP server.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return l.Addr().String()
}

func TestBlindTunnels(t *testing.T) {
	t.Parallel()
	target := echo(t)
	w := newWorld(t, lost, func(c *Config) { c.Passthrough = []string{"127.0.0.1"} })
	r, stopper := w.open("a"), w.open("b")
	c, in, resp := r.tunnelTo(target)
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("no tunnel: %d", resp.StatusCode)
	}
	_, _ = io.WriteString(c, "hello\n")
	if line, err := in.ReadString('\n'); line != "hello\n" || err != nil {
		t.Fatalf("through the tunnel: %q, %v", line, err)
	}
	// The rules' own host is looked into, although it is listed.
	wantProblem(t, stopper.post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
	w.wantSends("/pay", 1)
	if m := w.mutation("b"); m.State != ledger.Indeterminate {
		t.Errorf("record is %s", m.State)
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the stop didn't cut the tunnel")
	}
	if got := r.state().State; got != ledger.RunAborted {
		t.Errorf("the run whose tunnel was cut is %s", got)
	}
	if _, _, resp := r.tunnelTo(target); resp.StatusCode != http.StatusFailedDependency {
		t.Errorf("a tunnel of a run that is over: %d", resp.StatusCode)
	}
}

// What was carried blindly has a line at its end, with how much it was.
func TestABlindTunnelHasItsLine(t *testing.T) {
	t.Parallel()
	log := &lines{}
	target := echo(t)
	w := newWorld(t, created, func(c *Config) { c.Passthrough, c.Log = []string{"127.0.0.1"}, zerolog.New(log) })
	c, in, _ := w.open("a").tunnelTo(target)
	_, _ = io.WriteString(c, "hello")
	closeWrite(c)
	if said, err := io.ReadAll(in); string(said) != "hello" || err != nil {
		t.Fatalf("%q, %v", said, err)
	}
	log.await(t, 1)
	want := []string{`"level":"info"`, `"method":"CONNECT"`, `"host":"` + target, `"status":200,"body_bytes":5`, `"delivered":true,"effect":"passthrough","workflow":"wf","item":"a"`, `"received_bytes":5`}
	for _, words := range want {
		if log.with(words) != 1 {
			t.Errorf("no line with %s: %s", words, log.all())
		}
	}
}

// A blind tunnel that leads nowhere is refused as any other request is, and in the same time.
func TestABlindTunnelThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dial  func(context.Context, string, string) (net.Conn, error)
		wants problem
		words string
	}{
		"where nothing may be sent": {func(context.Context, string, string) (net.Conn, error) {
			return nil, &upstream.Error{Class: upstream.ErrorEgress, Text: "it is not a public address"}
		}, problemEgress, "not a public address"},
		"where nobody listens": {func(context.Context, string, string) (net.Conn, error) {
			return nil, &upstream.Error{Class: upstream.ErrorDial, Text: "connection refused"}
		}, problemNotSent, "connection refused"},
		"where nobody says anything": {func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, problemNotSent, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created, func(c *Config) {
				c.Passthrough, c.Dial, c.DialTimeout = []string{"127.0.0.1"}, tc.dial, 50*time.Millisecond
			})
			r := w.open("a")
			_, _, resp := r.tunnelTo("127.0.0.1:1")
			text, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
			if err != nil {
				t.Error(err)
			}
			wantProblem(t, got{resp.StatusCode, resp.Header, string(text), nil}, string(tc.wants), kinds[tc.wants].status, tc.words)
			if got := r.state().State; got != ledger.RunRunning {
				t.Errorf("the run is %s", got)
			}
		})
	}
}

func TestCloseEndsBlindTunnels(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Passthrough = []string{"127.0.0.1"} })
	_, in, resp := w.open("a").tunnelTo(echo(t))
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("no tunnel: %d", resp.StatusCode)
	}
	w.proxy.Close()
	if _, err := in.ReadByte(); err == nil {
		t.Error("the tunnel is open")
	}
}

// A stop that comes after a request has passed the gate holds all the same: its content
// is waited for no more, and the claim asks again.
func TestAStopAfterTheGate(t *testing.T) {
	t.Parallel()
	t.Run("while the body comes in", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, lost)
		r := w.open("a")
		body, feed := io.Pipe()
		answer := make(chan got, 1)
		go func() {
			req, err := http.NewRequest(http.MethodPost, w.upstream.URL+"/files/x", body)
			if err != nil {
				answer <- got{err: err}
				return
			}
			resp, err := r.client.Do(req)
			if err != nil {
				answer <- got{err: err}
				return
			}
			defer func() { _ = resp.Body.Close() }()
			text, err := io.ReadAll(resp.Body)
			answer <- got{resp.StatusCode, resp.Header, string(text), err}
		}()
		_, _ = io.WriteString(feed, "half")
		w.wantAwaited(t)
		wantProblem(t, w.open("b").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "")
		g := <-answer
		_ = feed.Close()
		if g.problem() != "run-aborted" || !strings.Contains(g.body, "Nothing was sent") || w.sends.of("/files/x") != 0 || r.state().State != ledger.RunAborted {
			t.Errorf("got %d %s, %v", g.status, g.body, g.err)
		}
	})
	t.Run("at the claim", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, created)
		r := w.open("a")
		x := &exchange{caller: caller{run: r.id, workflow: "wf", item: "a", attempt: 1}, client: t.Context()}
		s := w.proxy.decided(t.Context(), x, &work{}, ledger.Claimed{
			Decision: ledger.DecideBlocked, Blockers: []ledger.Blocker{{ID: "m-1", Item: "b", State: ledger.Indeterminate}},
		})
		if s.refusal == nil || s.refusal.problem != problemBlocked {
			t.Fatalf("settled as %+v", s)
		}
		if got := r.state(); got.State != ledger.RunAborted || got.Cause != "m-1" {
			t.Errorf("the run is %s because of %q", got.State, got.Cause)
		}
	})
}

func TestWhatPassthroughCovers(t *testing.T) {
	t.Parallel()
	for entry, targets := range map[string]map[string]bool{
		"api.test":      {"api.test:443": true, "api.test:8443": true, "b.api.test:443": false, "xapi.test:443": false, "other.test:443": false},
		"API.test:8443": {"api.test:8443": true, "api.test:443": false},
		"*.api.test":    {"b.api.test:443": true, "c.b.api.test:1": true, "api.test:443": false, "xapi.test:443": false},
		"*.api.test:25": {"b.api.test:25": true, "c.b.api.test:25": true, "b.api.test:443": false, "b.api.test:2525": false, "api.test:25": false, "xapi.test:25": false},
		"*":             {"api.test:443": false},
		"*:443":         {"api.test:443": false},
		"*api.test":     {"xapi.test:443": false, "api.test:443": false},
	} {
		w := &Proxy{config: Config{Passthrough: []string{entry}, Rules: func() *rules.Set { return &rules.Set{} }}}
		for target, want := range targets {
			if got := w.blind(target); got != want {
				t.Errorf("%s covers %s: %t", entry, target, got)
			}
		}
	}
}
