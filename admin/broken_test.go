package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// broken is a ledger that can be read no more, but for what a test puts back.
type broken struct {
	admin.Ledger
	err  error
	body error
}

func (b broken) Mutations(context.Context, ledger.Filter) (ledger.Page[*ledger.Mutation], error) {
	return ledger.Page[*ledger.Mutation]{}, b.err
}

func (b broken) Runs(context.Context, ledger.Filter) (ledger.Page[*ledger.Run], error) {
	return ledger.Page[*ledger.Run]{}, b.err
}

func (b broken) Items(context.Context, ledger.Filter) (ledger.Page[*ledger.Item], error) {
	return ledger.Page[*ledger.Item]{}, b.err
}

func (b broken) Events(context.Context, string, uint64, int) ([]ledger.Event, error) {
	return nil, b.err
}

func (b broken) View(context.Context, func(ledger.View) error) error { return b.err }

func (b broken) Body(context.Context, ledger.Body) (io.ReadCloser, error) { return nil, b.body }

func (b broken) WriteBody(context.Context, io.Reader) (ledger.Body, error) {
	return ledger.Body{}, b.err
}

func TestABrokenLedgerIsReportedEverywhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		status int
		kind   string
	}{
		{"damage", errors.Join(ledger.ErrDamaged, errors.New("000001.sst")), 500, "ledger-damaged"},
		{"what nobody foresaw", errors.New("000001.sst"), 500, "internal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := &broken{err: c.err, body: c.err}
			w := newWorld(t, func(config *admin.Config) {
				b.Ledger = config.Ledger
				config.Ledger = b
			})
			_, m := w.unknown("order-1")
			long := `{"action":"happened","actor":"a","reason":"r","version":2,"result":{"status":200,"body":"` + strings.Repeat("x", ledger.InlineBody+1) + `"}}`
			for _, q := range []ask{
				{path: "/v1/mutations"}, {path: "/v1/mutations/" + m.ID}, {path: "/v1/mutations/" + m.ID + "/request/body"},
				{path: "/v1/runs"}, {path: "/v1/runs/r-1"}, {path: "/v1/items"}, {path: "/v1/items/i-1"}, {path: "/v1/escalations"}, {path: "/v1/status"},
				{path: "/v1/events"},
				{method: http.MethodPost, path: "/v1/runs", body: `{"workflow":"w","once":true}`, header: map[string]string{"Idempotency-Key": "k"}},
				{method: http.MethodPost, path: "/v1/runs/r-1/finish", body: `{"outcome":"done"}`},
				{method: http.MethodPost, path: "/v1/mutations/" + m.ID + "/resolve", body: long},
			} {
				got := w.do(q)
				p := got.problem(t)
				checkProblem(t, &p, c.status, c.kind)
				if strings.Contains(got.body, "sst") {
					t.Errorf("%s shows a file: %s", q.path, got.body)
				}
			}
			if !strings.Contains(w.log.String(), "000001.sst") {
				t.Error("the cause isn't in the log")
			}
		})
	}
}

func TestDroppedBodies(t *testing.T) {
	t.Parallel()
	b := &broken{body: ledger.ErrBodyDropped}
	w := newWorld(t, func(config *admin.Config) {
		b.Ledger = config.Ledger
		config.Ledger = b
	})
	_, m := w.unknown("order-1")
	got, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil || got.Request.Body.Missing != wire.MissingDropped || got.Request.Body.SHA256 != digest(`{"amount":7}`) {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err = w.client.Body(t.Context(), m.ID, "request")
	problemIn(t, err, 410, "body-dropped", "its digest is kept")
}

// Whoever has to decide on a record needs to see it, whatever became of its content.
func TestARecordIsShownAndDecidedOnWithoutItsContent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want wire.Missing
	}{
		"damaged":           {fmt.Errorf("body ab: %w", ledger.ErrDamaged), wire.MissingDamaged},
		"unreadable now":    {fmt.Errorf("body ab: %w: too many open files", ledger.ErrUnavailable), wire.MissingOmitted},
		"what nobody knows": {errors.New("body ab"), wire.MissingOmitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &contentless{err: c.err}
			w := newWorld(t, func(config *admin.Config) {
				b.Ledger = config.Ledger
				config.Ledger = b
			})
			_, m := w.unknown("order-1")
			got, err := w.client.Mutation(t.Context(), m.ID)
			if err != nil {
				t.Fatal(err)
			}
			if body := got.Request.Body; body.Missing != c.want || body.SHA256 != digest(`{"amount":7}`) || body.Size != 12 {
				t.Errorf("the body is %+v", body)
			}
			if len(got.Events) == 0 || len(got.Actions) == 0 {
				t.Errorf("%d events and %d actions are shown", len(got.Events), len(got.Actions))
			}
			if !strings.Contains(w.log.String(), c.err.Error()) {
				t.Error("the cause isn't in the log")
			}
			done, err := w.client.Resolve(t.Context(), m.ID, wire.Resolve{
				Action: wire.ActionHappened, Actor: "ada", Reason: "it is there", Version: got.Version, NoResult: true,
			})
			if err != nil || done.State != string(ledger.Applied) {
				t.Errorf("decided: %+v, %v", done, err)
			}
			_, err = w.client.Body(t.Context(), m.ID, "request")
			if err == nil {
				t.Error("the content itself was given")
			}
		})
	}
}

// contentless is a ledger whose contents can't be read.
type contentless struct {
	admin.Ledger
	err error
}

func (c contentless) Body(context.Context, ledger.Body) (io.ReadCloser, error) { return nil, c.err }

func TestAnEscalationOutlivesItsRun(t *testing.T) {
	t.Parallel()
	forgetful := &runless{}
	w := newWorld(t, func(config *admin.Config) {
		forgetful.Ledger = config.Ledger
		config.Ledger = forgetful
	})
	_, m := w.unknown("order-1")
	list, err := w.client.Escalations(t.Context(), client.Filter{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Mutation != m.ID || list.Items[0].ResumeHint != "" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// runless is a ledger whose runs retention dropped.
type runless struct{ admin.Ledger }

func (runless) View(context.Context, func(ledger.View) error) error { return ledger.ErrNotFound }
