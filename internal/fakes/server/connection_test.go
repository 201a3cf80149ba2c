package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	b := start(t, func(c *server.Config) { c.Certificate = nil })
	if !strings.HasPrefix(b.URL(), "http://127.0.0.1:") {
		t.Errorf("URL %s", b.URL())
	}
	resp, _, err := b.post(t.Context(), b.client(true), "a")
	if err != nil || resp.StatusCode != http.StatusCreated || resp.ProtoMajor != 1 {
		t.Fatalf("answer %v, %v", resp, err)
	}
	b.arm("commit-reset")
	if _, _, err := b.post(t.Context(), b.client(true), "b"); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a reset of a plain connection: %v", err)
	}
	if tally := b.await(oracle.KindEnded, 2); tally.Effects("thing:b") != 1 {
		t.Errorf("%d effects", tally.Effects("thing:b"))
	}
}

func TestALPN(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		noHTTP2 bool
		offer   []string
		want    string
	}{
		{"h2 is preferred", false, []string{"http/1.1", "h2"}, "h2"},
		{"a client that only speaks http/1.1", false, []string{"http/1.1"}, "http/1.1"},
		{"a client that says nothing", false, nil, ""},
		{"h2 switched off", true, []string{"h2", "http/1.1"}, "http/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := start(t, func(c *server.Config) { c.NoHTTP2 = tt.noHTTP2 })
			conn, err := tls.Dial("tcp", b.Addr(), &tls.Config{
				RootCAs: b.ca.Pool(), ServerName: "sink.keep-proxy.test", NextProtos: tt.offer, MinVersion: tls.VersionTLS12,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if got := conn.ConnectionState().NegotiatedProtocol; got != tt.want {
				t.Errorf("negotiated %q, want %q", got, tt.want)
			}
		})
	}
}

// The two ways to end an h2 request differ in what they do to others.
func TestAbortEndsOneStreamAndCloseTheConnection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault string
		conns int
	}{{"abort", 1}, {"close", 2}, {"reset", 2}} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			c := b.client(true)
			if _, _, err := b.post(t.Context(), c, "a"); err != nil {
				t.Fatal(err)
			}
			b.arm(tt.fault)
			if _, _, err := b.post(t.Context(), c, "b"); err == nil {
				t.Fatal("answered")
			}
			if _, _, err := b.post(t.Context(), c, "c"); err != nil {
				t.Fatal(err)
			}
			if got := b.Connections(); got != tt.conns {
				t.Errorf("%d connections, want %d", got, tt.conns)
			}
		})
	}
}

func TestConnectionIsKeptAfterAnOrdinaryAnswer(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := b.client(false)
	for _, fault := range []string{"", "429", "commit-500", "commit-chunked"} {
		if fault != "" {
			b.arm(fault)
		}
		if _, _, err := b.post(t.Context(), c, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Connections(); got != 1 {
		t.Errorf("%d connections for four answers", got)
	}
}

func TestConnectionsAreCountedWithoutARequest(t *testing.T) {
	t.Parallel()
	b := start(t)
	conn, err := tls.Dial("tcp", b.Addr(), &tls.Config{RootCAs: b.ca.Pool(), MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	if n := b.Connected(); n != 1 {
		t.Errorf("%d connections are open, want 1", n)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	tick, late := time.NewTicker(time.Millisecond), time.After(patience)
	defer tick.Stop()
	for b.Connected() > 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("a connection that was closed counts as open")
		}
	}
	if tally, err := b.Tally(); b.Connections() != 1 || err != nil || tally.Heads() != 0 {
		t.Errorf("%d connections and %d heads (%v), want 1 and 0", b.Connections(), tally.Heads(), err)
	}
}

func TestConcurrentRequestsAreEachCountedOnce(t *testing.T) {
	t.Parallel()
	b := start(t)
	f, err := script.Named("commit-close")
	if err != nil {
		t.Fatal(err)
	}
	f.Times = 10
	if err := b.Arm(f); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	lost := 0
	for i := range 40 {
		wg.Go(func() {
			_, _, err := b.post(t.Context(), b.client(false), fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				lost++
			}
		})
	}
	wg.Wait()
	tally := b.await(oracle.KindEnded, 40)
	if lost != 10 || len(tally.Twice()) != 0 || len(tally.Of(oracle.KindEffect)) != 40 || len(tally.Of(oracle.KindAnswered)) != 30 {
		t.Errorf("%d lost, %d effects, %d answers, twice %v; want 10, 40, 30 and none",
			lost, len(tally.Of(oracle.KindEffect)), len(tally.Of(oracle.KindAnswered)), tally.Twice())
	}
}

func TestStepsWithTheirFields(t *testing.T) {
	t.Parallel()
	commit := script.Step{Do: script.Commit}
	tests := []struct {
		name   string
		steps  []script.Step
		status int
		field  string // name=value
		body   string
	}{
		{
			"a gateway's answer with fields", []script.Step{commit, {Do: script.Status, Status: 307, Header: map[string]string{"Location": "/x"}, Body: "moved"}},
			307, "Location=/x", "moved",
		},
		{"an answer without content", []script.Step{commit, {Do: script.Status, Status: 204}}, 204, "Content-Length=", ""},
		{"the API's own words", []script.Step{{Do: script.Fail, Status: 402, Body: `{"code":"declined"}`}, {Do: script.Answer}}, 402, "Content-Length=19", `{"code":"declined"}`},
		{"a body as large as asked for", []script.Step{{Do: script.Huge, Bytes: 70000}}, 200, "Content-Length=70000", strings.Repeat(" ", 70000)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			if err := b.Arm(script.Fault{Steps: tt.steps}); err != nil {
				t.Fatal(err)
			}
			c := b.client(true)
			c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			resp, body, err := b.post(t.Context(), c, "a")
			if err != nil || resp.StatusCode != tt.status || string(body) != tt.body {
				t.Fatalf("answer %v %.60q, %v", resp, body, err)
			}
			name, value, _ := strings.Cut(tt.field, "=")
			if got := resp.Header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		})
	}
}

func TestCutAfterSomeBytes(t *testing.T) {
	t.Parallel()
	b := start(t)
	if err := b.Arm(script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Cut, Bytes: 7}}}); err != nil {
		t.Fatal(err)
	}
	resp, body, err := b.post(t.Context(), b.client(false), "a")
	if resp == nil || resp.ContentLength != 100 || len(body) != 7 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("answer %v, %d bytes, %v, want 7 of 100 and an unexpected end", resp, len(body), err)
	}
}

func TestACommitInsideCanTakeTime(t *testing.T) {
	t.Parallel()
	b := start(t)
	gate := script.Fault{Steps: []script.Step{{Do: script.Fail, Status: 500, Hold: "inside"}, {Do: script.Answer}}}
	if err := b.Arm(gate); err != nil {
		t.Fatal(err)
	}
	status := make(chan int, 1)
	go func() {
		resp, _, err := b.post(context.WithoutCancel(t.Context()), b.client(false), "a")
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		status <- resp.StatusCode
	}()
	if held := b.await(oracle.KindHeld, 1).Of(oracle.KindHeld)[0]; held.Gate != "inside" || held.Identity != "thing:a" {
		t.Errorf("held event %+v", held)
	}
	b.Release("inside")
	if got := <-status; got != http.StatusInternalServerError {
		t.Errorf("status %d", got)
	}
	if tally := b.await(oracle.KindEnded, 1); tally.Effects("thing:a") != 0 {
		t.Error("a failure inside had an effect")
	}
}

// failing is an API that breaks in one of the ways that an API can.
type failing struct {
	sink
	restore, serve error
}

func (f *failing) Restore([]oracle.Event) error { return f.restore }

func (f *failing) Serve(context.Context, *server.Call) (*server.Answer, error) { return nil, f.serve }

func TestAnAPIThatFailsEndsTheService(t *testing.T) {
	t.Parallel()
	log, err := oracle.Open(filepath.Join(t.TempDir(), "effects.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	spoilt := errors.New("spoilt")
	if _, err := server.Start(server.Config{API: &failing{restore: spoilt}, Log: log}); !errors.Is(err, spoilt) {
		t.Errorf("start over a past that can't be restored: %v", err)
	}
	s, err := server.Start(server.Config{API: &failing{serve: spoilt}, Log: log, Control: server.Loopback})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Server: s, t: t, ca: mustCA(t)}
	if resp, _, err := b.post(t.Context(), b.client(false), "a"); err == nil {
		t.Errorf("answered %d", resp.StatusCode)
	}
	if _, body := b.call("GET", "/_control/health", ""); !strings.Contains(body, "spoilt") {
		t.Errorf("health: %s", body)
	}
	if err := s.Close(); !errors.Is(err, spoilt) {
		t.Errorf("Close: %v", err)
	}
}
