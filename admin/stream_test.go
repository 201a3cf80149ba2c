package admin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestVerifyLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) {
		c.Verify = func(_ context.Context, progress func(wire.Progress)) (wire.VerifyReport, error) {
			progress(wire.Progress{What: "events", Done: 1, Total: 2})
			progress(wire.Progress{What: "events", Done: 2, Total: 2})
			return wire.VerifyReport{Sound: true, Findings: []string{}, Events: 2}, nil
		}
	})
	var seen []int64
	report, err := w.client.VerifyLedger(t.Context(), func(p wire.Progress) { seen = append(seen, p.Done) })
	if err != nil || !report.Sound || report.Events != 2 || !slices.Equal(seen, []int64{1, 2}) {
		t.Errorf("report %+v, progress %v, %v", report, seen, err)
	}
	if got := w.do(ask{path: "/v1/ledger/verify"}); strings.Count(got.body, "\n") != 3 || got.header.Get("Content-Type") != "application/jsonl" {
		t.Errorf("not one object a line: %s", got.body)
	}
}

func TestVerifyLedgerThatCantBeDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) {
		c.Verify = func(_ context.Context, progress func(wire.Progress)) (wire.VerifyReport, error) {
			progress(wire.Progress{Done: 1})
			return wire.VerifyReport{}, errors.Join(ledger.ErrDamaged, errors.New("/data/000001.sst"))
		}
	})
	_, err := w.client.VerifyLedger(t.Context(), nil)
	p := problemIn(t, err, 500, "ledger-damaged", "keep-proxy ledger verify")
	if strings.Contains(p.Detail, "sst") || !strings.Contains(w.log.String(), "000001.sst") {
		t.Errorf("the cause belongs into the log alone: %s", p.Detail)
	}
}

func TestBackupLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) {
		c.Backup = func(_ context.Context, to io.Writer) error {
			for _, part := range []string{"one ", "two"} {
				if _, err := io.WriteString(to, part); err != nil {
					return err
				}
			}
			return nil
		}
	})
	var got bytes.Buffer
	if n, err := w.client.BackupLedger(t.Context(), &got); err != nil || n != 7 || got.String() != "one two" {
		t.Errorf("%d bytes %q, %v", n, got.String(), err)
	}
	name := w.do(ask{path: "/v1/ledger/backup"}).header.Get("Content-Disposition")
	if name != `attachment; filename="keep-proxy-20260301T120000Z.tar"` {
		t.Errorf("named %s", name)
	}
}

func TestBackupThatBreaksIsNoShorterBackup(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk /dev/sda1 failed")
	t.Run("after it began", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(c *admin.Config) {
			c.Backup = func(_ context.Context, to io.Writer) error {
				_, err := io.WriteString(to, "half")
				return errors.Join(err, broken)
			}
		})
		var got bytes.Buffer
		if _, err := w.client.BackupLedger(t.Context(), &got); err == nil || !strings.Contains(err.Error(), "backup cut after 4 bytes") {
			t.Errorf("got %q, %v", got.String(), err)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, func(c *admin.Config) {
			c.Backup = func(context.Context, io.Writer) error { return broken }
		})
		if got := w.do(ask{path: "/v1/ledger/backup"}).header.Get("Content-Disposition"); got != "" {
			t.Errorf("a problem is offered as the file %s", got)
		}
		p := w.refused(ask{path: "/v1/ledger/backup"}, 500, "internal", "the program's log has the cause")
		if strings.Contains(p.Detail, "sda1") || !strings.Contains(w.log.String(), "sda1") {
			t.Errorf("the cause belongs into the log alone: %s", p.Detail)
		}
	})
}

// errEnough ends a stream from the reader's side.
var errEnough = errors.New("enough")

func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run, m := w.unknown("order-1")
	var first []wire.Event
	err := w.client.Events(t.Context(), 0, func(e wire.Event) error {
		if first = append(first, e); e.Mutation == m.ID && e.To == "indeterminate" {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		t.Fatalf("events ended with %v", err)
	}
	if first[0].What != "run_opened" || first[0].Run != run.ID || first[0].Seq != 1 {
		t.Errorf("first event %+v", first[0])
	}

	t.Run("resumes behind the last one", func(t *testing.T) {
		err := w.client.Events(t.Context(), first[0].Seq, func(e wire.Event) error {
			if e.Seq != 2 {
				t.Errorf("resumed at %d, want 2", e.Seq)
			}
			return errEnough
		})
		if !errors.Is(err, errEnough) {
			t.Errorf("events ended with %v", err)
		}
	})
	t.Run("goes on with what happens", func(t *testing.T) {
		w, waiting, tick := newWaitingWorld(t)
		w.unknown("order-1")
		last := w.lastEvent().Seq
		decided := make(chan wire.Event, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- w.client.Events(t.Context(), last, func(e wire.Event) error {
				decided <- e
				return errEnough
			})
		}()
		<-waiting
		if _, err := w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "other", Once: true}, ""); err != nil {
			t.Fatal(err)
		}
		tick <- time.Time{}
		if err := <-ended; !errors.Is(err, errEnough) {
			t.Errorf("events ended with %v", err)
		}
		if e := <-decided; e.Seq != last+1 {
			t.Errorf("got event %d, want %d", e.Seq, last+1)
		}
	})
	t.Run("ends with the server", func(t *testing.T) {
		w, waiting, _ := newWaitingWorld(t)
		ended := make(chan error, 1)
		go func() { ended <- w.client.Events(t.Context(), 0, func(wire.Event) error { return nil }) }()
		<-waiting
		if err := w.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("events ended with %v", err)
		}
	})
}

// newWaitingWorld is a world of whose streams waiting tells that one waits for what happens
// next, until tick. A stream that its reader has left may wait for a while still, and would
// be taken for the next one: so each stream that is looked at has a world of its own.
func newWaitingWorld(t *testing.T) (w *world, waiting <-chan struct{}, tick chan<- time.Time) {
	t.Helper()
	begun, ticks := make(chan struct{}, 100), make(chan time.Time)
	return newWorld(t, func(c *admin.Config) {
		c.After = func(time.Duration) <-chan time.Time {
			begun <- struct{}{}
			return ticks
		}
	}), begun, ticks
}

// lastEvent is the ledger's newest event.
func (w *world) lastEvent() ledger.Event {
	w.t.Helper()
	events, err := w.store.Events(w.t.Context(), "", 0, 0)
	if err != nil || len(events) == 0 {
		w.t.Fatalf("events: %d, %v", len(events), err)
	}
	return events[len(events)-1]
}

func TestEventsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refused(ask{path: "/v1/events?after=last"}, 400, "bad-request", "query:after: no event's number")
	w.refused(ask{path: "/v1/events", header: map[string]string{"Last-Event-ID": "-1"}}, 400, "bad-request", "header:Last-Event-ID")
	// Of a restored ledger new events have those numbers once more, and would be left out.
	w.open("order-1")
	const gone = "the ledger's history ends before that event"
	w.refused(ask{path: "/v1/events?after=1000"}, 400, "bad-request", "query:after: "+gone)
	w.refused(ask{path: "/v1/events", header: map[string]string{"Last-Event-ID": "1000"}}, 400, "bad-request", "header:Last-Event-ID: "+gone)
}

func TestFinishWaitsForWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	tick, waiting := make(chan time.Time), make(chan struct{})
	w := newWorld(t, func(c *admin.Config) {
		c.After = func(time.Duration) <-chan time.Time {
			waiting <- struct{}{}
			return tick
		}
	})
	run := w.open("order-1")
	m := w.claim(transfer(&run.Run))
	type result struct {
		run *wire.Run
		err error
	}
	finished := make(chan result, 1)
	go func() {
		r, err := w.client.FinishRun(t.Context(), run.ID, wire.FinishRun{Outcome: "done"})
		finished <- result{r, err}
	}()
	<-waiting
	w.apply(m, 200, "ok")
	tick <- time.Time{}
	if got := <-finished; got.err != nil || got.run.State != "finished" {
		t.Errorf("finish: %+v, %v", got.run, got.err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var ready error
	w := newWorld(t, func(c *admin.Config) {
		c.Ready = func() error { return ready }
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "keep_up 1\n") })
	})
	if err := errors.Join(w.as("").Healthz(t.Context()), w.as("").Readyz(t.Context())); err != nil {
		t.Error(err)
	}
	if got := w.do(ask{path: "/metrics", token: "-"}); got.body != "keep_up 1\n" {
		t.Errorf("metrics: %s", got.body)
	}
	ready = errors.New("recovering 3 records of /data")
	p := w.refused(ask{path: "/readyz", token: "-"}, 503, "not-ready")
	if strings.Contains(p.Detail, "/data") {
		t.Errorf("a probe without a token is told %q", p.Detail)
	}
	if st, err := w.client.Status(t.Context()); err != nil || !st.Healthy || st.NotReady != ready.Error() {
		t.Errorf("status: %+v, %v", st, err)
	}
	w.store.FailBefore()
	w.do(ask{method: http.MethodPost, path: "/v1/runs", body: `{"workflow":"w","once":true}`})
	w.refused(ask{path: "/readyz", token: "-"}, 503, "ledger-unavailable", "GET /v1/status")
	if err := w.client.Healthz(t.Context()); err != nil {
		t.Errorf("the process lives: %v", err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	got, err := w.client.Explain(t.Context(), wire.Explain{Method: "POST", URL: "https://bank.example/transfers", Body: wire.Text("{}")})
	if err != nil || string(got) != `{"operation":"transfer","method":"POST"}` {
		t.Errorf("explain: %s, %v", got, err)
	}
	for _, c := range []struct {
		name, body string
		words      []string
	}{
		{"nothing", `{}`, []string{"/method", "and 1 more"}},
		{"a relative URL", `{"method":"GET","url":"/transfers"}`, []string{"/url: no absolute http or https URL"}},
		{"another scheme", `{"method":"GET","url":"ftp://bank.example/"}`, []string{"/url"}},
		{"a method with a space", `{"method":"GET /","url":"https://b.example/"}`, []string{"/method"}},
		{"a field without a name", `{"method":"GET","url":"https://b.example/","headers":{"":"x"}}`, []string{"/headers"}},
		{"a negative attempt", `{"method":"GET","url":"https://b.example/","attempt":-1}`, []string{"/attempt"}},
		{"a body that isn't there", `{"method":"GET","url":"https://b.example/","body":{"missing":"omitted","sha256":"","size":0}}`, []string{"/body"}},
		{"what no rule can read", `{"method":"GET","url":"https://unreadable.example/"}`, []string{"/url: no rule can read it; mend it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: http.MethodPost, path: "/v1/explain", body: c.body}, 400, "bad-request", c.words...)
		})
	}
}
