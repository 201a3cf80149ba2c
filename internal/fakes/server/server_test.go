package server_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/testca"
)

// patience bounds every wait of these tests. It is reached only by what is broken.
const patience = 2 * time.Minute

// sink is an API whose every POST has an effect named by its body.
type sink struct {
	mu       sync.Mutex
	restored int
	settings string
}

func (*sink) Name() string { return "sink" }

func (*sink) Identity(r *server.Request) string {
	if r.Method == http.MethodGet {
		return ""
	}
	return "thing:" + string(r.Body)
}

func (s *sink) Restore(events []oracle.Event) error {
	s.restored = len(events)
	return nil
}

func (s *sink) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	if c.Method == http.MethodGet {
		return server.JSON(http.StatusOK, "read"), nil
	}
	if err := c.Commit(s.Identity(c.Request), map[string]string{"body": string(c.Body)}, nil); err != nil {
		return nil, err
	}
	if c.Own != nil {
		return c.Own, nil
	}
	return server.JSON(http.StatusCreated, strings.Repeat("x", 98)), nil
}

func (s *sink) Books() string { return "nothing\n" }

func (s *sink) Adjust(settings []byte) error {
	if !json.Valid(settings) {
		return errors.New("sink: settings are no JSON")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings = string(settings)
	return nil
}

// bench is a running sink and how to reach it.
type bench struct {
	*server.Server
	t    *testing.T
	path string
	api  *sink
	ca   *testca.CA
}

// authority is minted once: keys cost time.
var authority = sync.OnceValues(testca.New)

func mustCA(t *testing.T) *testca.CA {
	t.Helper()
	ca, err := authority()
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func start(t *testing.T, adapt ...func(*server.Config)) *bench {
	t.Helper()
	ca := mustCA(t)
	leaf, err := ca.Leaf("sink.keep-proxy.test")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "effects.log"), api: &sink{}, ca: ca}
	log, err := oracle.Open(b.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	cfg := server.Config{API: b.api, Log: log, Certificate: leaf, Control: server.Loopback}
	for _, a := range adapt {
		a(&cfg)
	}
	if b.Server, err = server.Start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

// client returns a client with connections of its own, which never repeats a
// request: its bodies can't be rewound.
func (b *bench) client(h2 bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.ca.Pool(), MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: h2}
	if !h2 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	b.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// post sends the body and returns the answer whole.
func (b *bench) post(ctx context.Context, c *http.Client, body string) (*http.Response, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL()+"/things", io.NopCloser(strings.NewReader(body)))
	if err != nil {
		b.t.Fatal(err)
	}
	req.ContentLength = int64(len(body))
	resp, err := c.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

func (b *bench) arm(name string) {
	b.t.Helper()
	if err := b.ArmNamed(name); err != nil {
		b.t.Fatal(err)
	}
}

// await waits for n events of a kind.
func (b *bench) await(kind oracle.Kind, n int) oracle.Tally {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	tally, err := oracle.Wait(ctx, b.path, func(t oracle.Tally) bool { return len(t.Of(kind)) >= n })
	if err != nil {
		b.t.Fatalf("waiting for %d %s events: %v", n, kind, err)
	}
	return tally
}

func TestPlainService(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			resp, body, err := b.post(t.Context(), b.client(proto == "HTTP/2.0"), "a")
			if err != nil || resp.StatusCode != http.StatusCreated || len(body) != 100 || resp.Proto != proto {
				t.Fatalf("answer %v %q %v, want a 201 of 100 bytes over %s", resp, body, err, proto)
			}
			tally := b.await(oracle.KindEnded, 1)
			var kinds []string
			for _, e := range tally.Events {
				kinds = append(kinds, string(e.Kind))
				if e.Request != tally.Events[0].Request {
					t.Errorf("event %s belongs to request %q", e.Kind, e.Request)
				}
			}
			if got, want := strings.Join(kinds, " "), "head received effect answered ended"; got != want {
				t.Errorf("events %s, want %s", got, want)
			}
			if tally.Events[0].Proto != proto {
				t.Errorf("head says %s", tally.Events[0].Proto)
			}
			if got := tally.Events[1]; !got.Complete || string(got.Body) != "a" || got.Identity != "thing:a" {
				t.Errorf("received event %+v", got)
			}
		})
	}
}

func TestEffectIsDurableBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	b := start(t)
	if _, _, err := b.post(t.Context(), b.client(false), "a"); err != nil {
		t.Fatal(err)
	}
	tally, err := oracle.Read(b.path) // the answer is here, so the effect must be in the file
	if err != nil || tally.Effects("thing:a") != 1 {
		t.Fatalf("effects %d (%v) at the time of the answer, want 1", tally.Effects("thing:a"), err)
	}
}

func TestHalfABodyIsReceivedAndNotServed(t *testing.T) {
	t.Parallel()
	b := start(t)
	conn, err := tls.Dial("tcp", b.Addr(), &tls.Config{RootCAs: b.ca.Pool(), MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "POST /things HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	b.await(oracle.KindHead, 1)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	tally := b.await(oracle.KindEnded, 1)
	received := tally.Of(oracle.KindReceived)
	if len(received) != 1 || received[0].Complete || received[0].Length != 4 {
		t.Errorf("received %+v, want one incomplete body of 4 bytes", received)
	}
	if n := len(tally.Of(oracle.KindEffect)) + len(tally.Of(oracle.KindAnswered)); n != 0 {
		t.Errorf("%d effects and answers to half a request", n)
	}
}

func TestCredentialsAreWitnessedAsDigests(t *testing.T) {
	t.Parallel()
	b := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL()+"/x?y=z", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer hunter2")
	req.Header.Set("X-Plain", "seen")
	resp, err := b.client(true).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	head := b.await(oracle.KindHead, 1).Events[0]
	if head.Header["X-Plain"] != "seen" || head.Target != "/x?y=z" {
		t.Errorf("head event %+v", head)
	}
	// printf 'Bearer hunter2' | sha256sum
	const want = "sha256:c13e77fb8a8c93fb73db8c9b9eb69ef51b0327739600ace6d49708d1af73a532"
	if got := head.Header["Authorization"]; got != want {
		t.Errorf("Authorization is witnessed as %q, want %q", got, want)
	}
}

func TestAnotherLifeGoesOnWithTheLog(t *testing.T) {
	t.Parallel()
	b := start(t)
	if _, _, err := b.post(t.Context(), b.client(false), "a"); err != nil {
		t.Fatal(err)
	}
	first := b.await(oracle.KindEnded, 1)
	log, err := oracle.Open(filepath.Join(t.TempDir(), "other.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for _, e := range first.Events {
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	b2 := start(t, func(c *server.Config) { c.Log = log })
	if b2.api.restored != len(first.Events) {
		t.Errorf("restored %d events, want %d", b2.api.restored, len(first.Events))
	}
	b2.path = log.Path()
	if _, _, err := b2.post(t.Context(), b2.client(false), "a"); err != nil {
		t.Fatal(err)
	}
	heads := b2.await(oracle.KindEnded, 2).Of(oracle.KindHead)
	if heads[0].Request == heads[1].Request {
		t.Errorf("two lives gave the request id %q", heads[0].Request)
	}
}

func TestAnUnusableLogEndsTheService(t *testing.T) {
	t.Parallel()
	log, err := oracle.Open(filepath.Join(t.TempDir(), "effects.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(server.Config{API: &sink{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	b := &bench{Server: s, t: t, ca: mustCA(t)}
	if resp, _, err := b.post(t.Context(), b.client(false), "a"); err == nil {
		t.Errorf("answered %d although nothing could be witnessed", resp.StatusCode)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "file already closed") {
		t.Errorf("Err = %v, want the log's error", err)
	}
	if err := s.Close(); err == nil {
		t.Error("Close hid the log's error")
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	log, err := oracle.Open(filepath.Join(t.TempDir(), "effects.log"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	tests := []struct {
		name string
		cfg  server.Config
		want string
	}{
		{"no API", server.Config{Log: log}, "API and Log are required"},
		{"no log", server.Config{API: &sink{}}, "API and Log are required"},
		{"an address others can reach", server.Config{API: &sink{}, Log: log, Listen: "0.0.0.0:0"}, "only loopback"},
		{"a control address others can reach", server.Config{API: &sink{}, Log: log, Control: "192.0.2.1:0"}, "only loopback"},
		{"no port", server.Config{API: &sink{}, Log: log, Listen: "127.0.0.1"}, "missing port"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := server.Start(tt.cfg)
			if err == nil {
				_ = s.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q does not say %q", err, tt.want)
			}
		})
	}
}

func TestCloseGivesUpWhatWaits(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.arm("hang")
	failed := make(chan error, 1)
	go func() {
		_, _, err := b.post(t.Context(), b.client(false), "a")
		failed <- err
	}()
	b.await(oracle.KindHeld, 1)
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	if tally := b.await(oracle.KindEnded, 1); tally.Effects("thing:a") != 0 {
		t.Error("a wait that was given up committed")
	}
}

func TestGateReleasedEarlyIsNotLost(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.arm("hang")
	b.Release(script.GateHang)
	if resp, _, err := b.post(t.Context(), b.client(false), "a"); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("answer %v, %v", resp, err)
	}
	b.arm("hang") // shuts the gate again
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := b.post(ctx, b.client(false), "b")
		done <- err
	}()
	b.await(oracle.KindHeld, 2)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the second request was not held: %v", err)
	}
	b.Release(script.GateHang)
	b.await(oracle.KindEnded, 2)
}
