package proxy

import (
	"strings"
	"testing"

	"keep-proxy/ledger"
)

// refusals are the events of a kind that a run left.
func (w *world) refusals(what string) []ledger.Event {
	w.t.Helper()
	w.open("another") // Notes are durable with the next command.
	all, err := w.ledger.Events(w.t.Context(), "", 0, 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []ledger.Event
	for _, e := range all {
		if e.What == what {
			out = append(out, e)
		}
	}
	return out
}

func TestRefusalsAreInTheHistory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, what, evidence string
		ask                  func(*world) (*run, got)
	}{
		{"denied by its rule", "denied", "(api.never)", func(w *world) (*run, got) {
			r := w.open("a")
			return r, r.post("/never", `{}`)
		}},
		{"what no operation declares", "unmatched", "POST https://", func(w *world) (*run, got) {
			r := w.open("a")
			return r, r.post("/nobody/knows?token=s3cret", `{}`)
		}},
		{"no identity", "identity", "(api.pay)", func(w *world) (*run, got) {
			r := w.open("a")
			return r, r.post("/pay", `{}`)
		}},
		{"at the gate", "run-aborted", "GET https://", func(w *world) (*run, got) {
			r := w.open("a")
			w.end(r)
			return r, r.get("/read")
		}},
		{"a stored rule that can't be read", "ambiguous-record", "(api.transfer)", func(w *world) (*run, got) {
			w.proxy.config.Pinned = unreadable
			return w.payThen(changed("name: pay\n", "name: transfer\n    was: [pay]\n"), payX, payX, "/pay")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			r, answer := c.ask(w)
			if answer.problem() == "" {
				t.Fatalf("not refused: %d %s", answer.status, answer.body)
			}
			events := w.refusals(answer.problem())
			if len(events) != 1 || events[0].Run != r.id || !strings.Contains(events[0].Evidence, c.evidence) || strings.Contains(events[0].Evidence, "s3cret") {
				t.Errorf("%s left %+v", answer.problem(), events)
			}
		})
	}
}

func TestALoopOfRefusalsIsCounted(t *testing.T) {
	t.Parallel()
	var n noted
	kept := 0
	for range 1000 {
		if _, note := n.next("here"); note {
			kept++
		}
	}
	if kept != notedEach+3 {
		t.Errorf("%d of 1000 are kept", kept)
	}
	if times, note := n.next("there"); times != 1 || !note {
		t.Errorf("another place: %d, %v", times, note)
	}
}
