// Package apitest serves one fake API to its own tests, over plain HTTP on loopback. Its clock only moves when it is
// told to.
package apitest

import (
	"bytes"
	"encoding/json"
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
)

// Bench is a running API. The test's end closes it and fails if the server had
// an error.
type Bench struct {
	*server.Server
	tb     testing.TB
	log    *oracle.Log
	client *http.Client

	mu  sync.Mutex
	now time.Time
}

// Epoch is the time at which every bench begins.
var Epoch = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// Start serves the API with a new log.
func Start(tb testing.TB, api server.API) *Bench {
	tb.Helper()
	return Continue(tb, api, filepath.Join(tb.TempDir(), "effects.log"))
}

// Continue serves the API with the log at path, which may be that of a bench
// that was closed.
func Continue(tb testing.TB, api server.API, path string) *Bench {
	tb.Helper()
	b := &Bench{tb: tb, now: Epoch, client: &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}}
	log, err := oracle.Open(path, b.Now)
	if err != nil {
		tb.Fatal(err)
	}
	b.log = log
	if b.Server, err = server.Start(server.Config{API: api, Log: log, Now: b.Now}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(b.End)
	return b
}

// End closes the bench before the test's end. It may be called again.
func (b *Bench) End() {
	b.tb.Helper()
	b.client.CloseIdleConnections()
	if err := b.Close(); err != nil {
		b.tb.Errorf("close the fake: %v", err)
	}
	if err := b.log.Close(); err != nil {
		b.tb.Errorf("close its log: %v", err)
	}
}

// LogPath returns the path of the log.
func (b *Bench) LogPath() string { return b.log.Path() }

// Now returns the bench's time.
func (b *Bench) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// Advance moves the time on.
func (b *Bench) Advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// Reply is an answer, read whole.
type Reply struct {
	Status int
	Header http.Header
	Body   string
	tb     testing.TB
}

// Do sends a request; fields alternates names and values. The test fails if
// there is no answer.
func (b *Bench) Do(method, target, body string, fields ...string) Reply {
	b.tb.Helper()
	r, err := b.Try(method, target, body, fields...)
	if err != nil {
		b.tb.Fatalf("%s %s: %v", method, target, err)
	}
	return r
}

// Try is Do for a request that may get no answer.
func (b *Bench) Try(method, target, body string, fields ...string) (Reply, error) {
	if !strings.HasPrefix(target, "http") {
		target = b.URL() + target
	}
	// Without GetBody, net/http never sends a request again.
	req, err := http.NewRequestWithContext(b.tb.Context(), method, target, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return Reply{}, err
	}
	req.ContentLength = int64(len(body))
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return Reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	return Reply{Status: resp.StatusCode, Header: resp.Header, Body: string(data), tb: b.tb}, err
}

// Into decodes the reply's JSON strictly, so that the test's type is the whole
// of what the API says.
func (r Reply) Into(v any) {
	r.tb.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(r.Body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		r.tb.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
}

// JSON decodes what the test's type has of the reply.
func (r Reply) JSON(v any) {
	r.tb.Helper()
	if err := json.Unmarshal([]byte(r.Body), v); err != nil {
		r.tb.Fatalf("%d %s: %v", r.Status, r.Body, err)
	}
}

// Is fails the test unless the reply has this status and, in its body, this
// text.
func (r Reply) Is(status int, text string) Reply {
	r.tb.Helper()
	if r.Status != status || !strings.Contains(r.Body, text) {
		r.tb.Errorf("got %d %s, want %d with %q", r.Status, r.Body, status, text)
	}
	return r
}

// Arm arms a fault.
func (b *Bench) Arm(f script.Fault) {
	b.tb.Helper()
	if err := b.Server.Arm(f); err != nil {
		b.tb.Fatal(err)
	}
}

// ArmNamed arms a fault by its name.
func (b *Bench) ArmNamed(name string) {
	b.tb.Helper()
	if err := b.Server.ArmNamed(name); err != nil {
		b.tb.Fatal(err)
	}
}

// Counted returns the log's counts.
func (b *Bench) Counted() oracle.Tally {
	b.tb.Helper()
	tally, err := b.Tally()
	if err != nil {
		b.tb.Fatal(err)
	}
	return tally
}

// Await waits until n events of the kind are in the log.
func (b *Bench) Await(kind oracle.Kind, n int) oracle.Tally {
	b.tb.Helper()
	tally, err := oracle.Wait(b.tb.Context(), b.log.Path(), func(t oracle.Tally) bool { return len(t.Of(kind)) >= n })
	if err != nil {
		b.tb.Fatal(err)
	}
	return tally
}
