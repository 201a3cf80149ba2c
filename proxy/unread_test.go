package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// lostOnce is a store whose bodies can't be read the second time that one is asked for
// after it was armed: the first look finds them whole, the second is what a client gets.
type lostOnce struct {
	ledger.Store
	left atomic.Int64
}

var errUnread = errors.New("the disk doesn't read")

func (s *lostOnce) Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error) {
	if s.left.Add(-1) == 0 {
		return nil, errUnread
	}
	return s.Store.Body(ctx, b)
}

// A refusal in the place of an answer that can't be read is no delivery of it: asking
// again is no repeat, and the run still gets it.
func TestAnAnswerThatCantBeReadIsNotDelivered(t *testing.T) {
	t.Parallel()
	s := &lostOnce{}
	w := newWorld(t, digests, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
	body := `{"to":"x"}`
	first := w.open("a")
	wantAnswer(t, first.post("/shape", body), http.StatusCreated, echoed(body), false)

	r := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
	s.left.Store(2)
	wantProblem(t, r.post("/shape", body), "ledger-unavailable", http.StatusServiceUnavailable, errUnread.Error())
	m := w.mutation("a")
	w.open("beside") // Notes are in the ledger with the next command.
	var d *ledger.Delivery
	if err := w.ledger.View(t.Context(), func(v ledger.View) (err error) {
		d, err = v.Delivery(r.id, m.Key)
		return err
	}); err != nil || !d.Begun || d.Dispatch != "" {
		t.Errorf("what is known of the delivery: %+v, %v", d, err)
	}
	wantAnswer(t, r.post("/shape", body), http.StatusCreated, echoed(body), true)
	wantProblem(t, r.post("/shape", body), "repeated", http.StatusUnprocessableEntity, "second intent")
	w.wantSends("/shape", 1)
	if replays := w.refusals("replayed"); len(replays) != 1 {
		t.Errorf("the history has %d replays, want the one that was answered", len(replays))
	}
}

// A panic may quote what it stumbled over: its value reaches neither log nor client.
func TestAPanicsValueIsSaidNowhere(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{
		"a text":   "card xyzzy",
		"an error": errors.New("card xyzzy"),
		"a struct": struct{ Card string }{"xyzzy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lockedBuffer
			w := newWorld(t, created, func(c *Config) {
				c.Log = zerolog.New(&log)
				c.Sender = panickingWith{value}
			})
			g := w.open("a").post("/pay", `{"to":"x"}`)
			wantProblem(t, g, "internal", http.StatusInternalServerError, "unknown")
			said := log.String()
			if !strings.Contains(said, "panickingWith") {
				t.Errorf("the log doesn't say where it happened: %s", said)
			}
			if strings.Contains(said+g.body, "xyzzy") {
				t.Errorf("the value is said:\n%s\n%s", said, g.body)
			}
			w.wantSends("/pay", 0)
		})
	}
}

// panickingWith is a sender that panics with a value.
type panickingWith struct{ value any }

func (p panickingWith) Send(context.Context, *upstream.Request) *upstream.Answer { panic(p.value) }
