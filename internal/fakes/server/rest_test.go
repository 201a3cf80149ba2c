package server_test

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

// laggard is a sink on a machine that takes its time: a change is made once it is let.
type laggard struct {
	*sink
	begun, let chan struct{}
	changed    atomic.Bool
}

func (l *laggard) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	if c.Method == http.MethodGet {
		return server.JSON(http.StatusOK, l.changed.Load()), nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	close(l.begun)
	<-l.let
	defer l.changed.Store(true)
	return l.sink.Serve(ctx, c)
}

func lagging(t *testing.T) (*bench, *laggard) {
	t.Helper()
	l := &laggard{sink: &sink{}, begun: make(chan struct{}), let: make(chan struct{})}
	return start(t, func(c *server.Config) { c.API = l }), l
}

// resting reports whether nothing is at work on a change.
func (b *bench) resting() bool {
	now, cancel := context.WithCancel(b.t.Context())
	cancel()
	return b.Rest(now) == nil
}

func (b *bench) read() (string, error) {
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.URL()+"/things", nil)
	if err != nil {
		return "", err
	}
	resp, err := b.client(false).Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

func TestAReadShowsWhatCameBeforeIt(t *testing.T) {
	t.Parallel()
	b, api := lagging(t)
	posted, got := make(chan error, 1), make(chan string, 1)
	go func() {
		_, _, err := b.post(t.Context(), b.client(false), "a")
		posted <- err
	}()
	<-api.begun
	if b.resting() {
		t.Error("it is at rest while a change is being made")
	}
	go func() {
		text, err := b.read()
		if err != nil {
			text = err.Error()
		}
		got <- text
	}()
	b.await(oracle.KindReceived, 2)
	close(api.let)
	if text := <-got; text != "true" {
		t.Errorf("the read got %s, and overtook the change", text)
	}
	if err := <-posted; err != nil || !b.resting() {
		t.Errorf("the change ended with %v; at rest: %v", err, b.resting())
	}
}

// What a fault has wait is late on purpose: a read doesn't wait for it, until it goes on.
func TestAReadDoesNotShowWhatIsHeldBack(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"hang", "hang-inside", "commit-late"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			b, api := lagging(t)
			b.arm(fault)
			posted := make(chan struct{})
			go func() {
				defer close(posted)
				_, _, _ = b.post(t.Context(), b.client(false), "a") // One is closed.
			}()
			b.await(oracle.KindHeld, 1)
			if text, err := b.read(); text != "false" || err != nil || !b.resting() {
				t.Errorf("a read got %s, %v; at rest: %v", text, err, b.resting())
			}
			b.Release(script.GateHang)
			b.Release(script.GateLate)
			<-api.begun
			if b.resting() {
				t.Error("it is at rest, although it was let go on")
			}
			close(api.let)
			<-posted
			b.await(oracle.KindEnded, 2)
			if text, err := b.read(); text != "true" || err != nil {
				t.Errorf("a read got %s, %v in the end", text, err)
			}
		})
	}
}
