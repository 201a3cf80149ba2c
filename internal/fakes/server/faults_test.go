package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fakes/server"
)

// outcome is what a named fault must do to one POST.
type outcome struct {
	status  int    // of the answer's head; 0: no head
	body    string // a part of the body, "" for any
	cut     bool   // the body ends with an error
	effects int
	answers int
	leave   oracle.Kind // the client leaves once this was noted
	gate    string      // released once the request is held there
}

// outcomes has every name that script.Named knows.
var outcomes = map[string]outcome{
	"answer":               {status: 201, effects: 1, answers: 1},
	"commit-close":         {effects: 1},
	"commit-reset":         {effects: 1},
	"commit-abort":         {effects: 1},
	"commit-500":           {status: 500, body: "status_500", effects: 1, answers: 1},
	"commit-502":           {status: 502, body: "status_502", effects: 1, answers: 1},
	"commit-503":           {status: 503, body: "status_503", effects: 1, answers: 1},
	"commit-own-500":       {status: 500, body: "status_500", effects: 1, answers: 1},
	"commit-cut":           {status: 201, cut: true, effects: 1},
	"commit-cut-chunked":   {status: 201, cut: true, effects: 1},
	"commit-silence":       {effects: 1, leave: oracle.KindEffect},
	"commit-twice":         {status: 201, effects: 2, answers: 1},
	"commit-twice-close":   {effects: 2},
	"commit-error-in-200":  {status: 200, body: "internal_error", effects: 1, answers: 1},
	"commit-chunked":       {status: 201, effects: 1, answers: 1},
	"commit-slow":          {status: 201, effects: 1, answers: 1},
	"commit-huge":          {status: 201, effects: 1, answers: 1},
	"commit-late":          {effects: 1, gate: script.GateLate},
	"silence-then-late":    {effects: 1, leave: oracle.KindReceived, gate: script.GateLate},
	"hang":                 {status: 201, effects: 1, answers: 1, gate: script.GateHang},
	"hang-inside":          {status: 201, effects: 1, answers: 1, gate: script.GateHang},
	"close":                {},
	"reset":                {},
	"abort":                {},
	"silence":              {leave: oracle.KindReceived},
	"400":                  {status: 400, body: "status_400", answers: 1},
	"409":                  {status: 409, body: "status_409", answers: 1},
	"429":                  {status: 429, body: "status_429", answers: 1},
	"500":                  {status: 500, body: "status_500", answers: 1},
	"502":                  {status: 502, body: "status_502", answers: 1},
	"503":                  {status: 503, body: "status_503", answers: 1},
	"own-500":              {status: 500, body: "status_500", answers: 1},
	"error-in-200":         {status: 200, body: "internal_error", answers: 1},
	"early-413":            {status: 413, body: "status_413", answers: 1},
	"early-200-and-commit": {status: 200, body: "ok", effects: 1, answers: 1},
}

func TestNamedFaults(t *testing.T) {
	t.Parallel()
	for _, name := range script.Names() {
		want, ok := outcomes[name]
		if !ok {
			t.Errorf("no outcome is written down for %q", name)
			continue
		}
		for _, proto := range []string{"h1", "h2"} {
			t.Run(name+" over "+proto, func(t *testing.T) {
				t.Parallel()
				b := start(t)
				b.arm(name)
				b.follow(name, want, proto == "h2")
			})
		}
	}
}

// follow sends one POST under the fault and holds what happens against want.
func (b *bench) follow(name string, want outcome, h2 bool) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	type reply struct {
		status int
		body   string
		err    error
	}
	replies := make(chan reply, 1)
	go func() {
		var r reply
		resp, body, err := b.post(ctx, b.client(h2), "a")
		r.body, r.err = string(body), err
		if resp != nil {
			r.status = resp.StatusCode
		}
		replies <- r
	}()
	if want.leave != "" {
		b.await(want.leave, 1)
		cancel()
	}
	if want.gate != "" {
		held := b.await(oracle.KindHeld, 1)
		if held.Effects("thing:a") != 0 {
			b.t.Error("it committed before the gate was released")
		}
		b.Release(want.gate)
	}
	got := <-replies
	if got.status != want.status || !strings.Contains(got.body, want.body) {
		b.t.Errorf("answer %d %.80q (%v), want %d with %q", got.status, got.body, got.err, want.status, want.body)
	}
	if failed := want.cut || want.status == 0; (got.err != nil) != failed {
		b.t.Errorf("client's error %v, want one: %t", got.err, failed)
	}
	tally := b.await(oracle.KindEnded, 1)
	if n := tally.Effects("thing:a"); n != want.effects {
		b.t.Errorf("%d effects, want %d", n, want.effects)
	}
	if n := len(tally.Of(oracle.KindAnswered)); n != want.answers {
		b.t.Errorf("%d answers noted, want %d", n, want.answers)
	}
	if n := tally.Sends("thing:a"); n != 1 {
		b.t.Errorf("%d sends, want 1", n)
	}
	if ended := tally.Of(oracle.KindEnded); ended[0].Fault != name {
		b.t.Errorf("the log names the fault %q", ended[0].Fault)
	}
	if left := b.Armed(); len(left) != 0 {
		b.t.Errorf("still armed: %v", left)
	}
}

func TestHowConnectionsEnd(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault string
		want  error
	}{
		{"close says goodbye", "commit-close", io.EOF},
		{"reset is a reset", "commit-reset", syscall.ECONNRESET},
		{"abort is an unexpected end", "commit-abort", io.EOF},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.arm(tt.fault)
			if _, _, err := b.post(t.Context(), b.client(false), "a"); !errors.Is(err, tt.want) {
				t.Errorf("client saw %v, want %v", err, tt.want)
			}
		})
	}
}

func TestRetryAfterComesWith429(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.arm("429")
	resp, _, err := b.post(t.Context(), b.client(true), "a")
	if err != nil || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("answer %v, %v, want Retry-After: 1", resp, err)
	}
}

func TestBodiesUnderFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault   string
		length  int64 // Content-Length, -1 for none
		got     int
		chunked bool
	}{
		{fault: "commit-cut", length: 100, got: 50},
		{fault: "commit-cut-chunked", length: -1, got: 50, chunked: true},
		{fault: "commit-chunked", length: -1, got: 100, chunked: true},
		{fault: "commit-slow", length: 100, got: 100},
		{fault: "commit-huge", length: 12 << 20, got: 12 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.arm(tt.fault)
			resp, body, _ := b.post(t.Context(), b.client(false), "a")
			if resp == nil || resp.ContentLength != tt.length || len(body) != tt.got {
				t.Fatalf("answer %v of %d bytes, want length %d and %d bytes", resp, len(body), tt.length, tt.got)
			}
			if chunked := slices.Contains(resp.TransferEncoding, "chunked"); chunked != tt.chunked {
				t.Errorf("transfer encoding %v", resp.TransferEncoding)
			}
		})
	}
}

func TestEarlyAnswerComesBeforeTheBody(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.arm("early-200-and-commit")
	body, feed := io.Pipe()
	resp, err := b.client(true).Post(b.URL()+"/things", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if tally, err := b.Tally(); err != nil || len(tally.Of(oracle.KindReceived)) != 0 {
		t.Errorf("the body was received before it was sent (%v)", err)
	}
	if _, err := io.WriteString(feed, "a"); err != nil {
		t.Fatal(err)
	}
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if tally := b.await(oracle.KindEnded, 1); tally.Effects("thing:a") != 1 {
		t.Errorf("effects of what came after the answer: %d, want 1", tally.Effects("thing:a"))
	}
}

func TestNothingIsDoneWithACutBodyAfterAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.arm("early-200-and-commit")
	body, feed := io.Pipe()
	resp, err := b.client(true).Post(b.URL()+"/things", "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.WriteString(feed, "half"); err != nil {
		t.Fatal(err)
	}
	_ = feed.CloseWithError(errors.New("the client dies"))
	tally := b.await(oracle.KindEnded, 1)
	if received := tally.Of(oracle.KindReceived); received[0].Complete || len(tally.Of(oracle.KindEffect)) != 0 {
		t.Errorf("received %+v, %d effects, want an incomplete body and none", received, len(tally.Of(oracle.KindEffect)))
	}
}

func TestTimedWaitUsesTheServersClock(t *testing.T) {
	t.Parallel()
	timer := make(chan time.Time)
	asked := make(chan time.Duration, 1)
	b := start(t, func(c *server.Config) {
		c.After = func(d time.Duration) <-chan time.Time {
			asked <- d
			return timer
		}
	})
	late := script.Fault{Name: "late", Steps: []script.Step{
		{Do: script.Close}, {Do: script.Wait, For: script.Duration(4 * time.Minute)}, {Do: script.Commit},
	}}
	if err := b.Arm(late); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.post(t.Context(), b.client(false), "a"); err == nil {
		t.Fatal("answered")
	}
	if d := <-asked; d != 4*time.Minute {
		t.Errorf("waits for %v", d)
	}
	if tally, err := b.Tally(); err != nil || tally.Effects("thing:a") != 0 {
		t.Fatalf("committed before its time (%v)", err)
	}
	timer <- time.Time{}
	if tally := b.await(oracle.KindEnded, 1); tally.Effects("thing:a") != 1 {
		t.Error("did not commit after its time")
	}
}

func TestAFaultServesItsTimesAndNoMore(t *testing.T) {
	t.Parallel()
	b := start(t)
	f, err := script.Named("503")
	if err != nil {
		t.Fatal(err)
	}
	f.Times, f.Match = 3, script.Match{Identity: "thing:a"}
	if err := b.Arm(f); err != nil {
		t.Fatal(err)
	}
	c := b.client(true)
	var got []int
	for _, body := range []string{"b", "a", "a", "b", "a", "a"} {
		resp, _, err := b.post(t.Context(), c, body)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, resp.StatusCode)
	}
	if want := []int{201, 503, 503, 201, 503, 201}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}
