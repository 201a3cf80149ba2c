package reconcilers

import (
	"io"
	"net/http"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// pages makes the API answer with two empty pages; before is called before each.
func (w *world) pages(before func(n int, rw http.ResponseWriter)) {
	n := 0
	w.api.script(func(rw http.ResponseWriter, _ *http.Request) bool {
		n++
		rw.Header().Set("Content-Type", "application/json")
		before(n, rw)
		next := ""
		if n%2 == 1 {
			next = "1"
		}
		_, _ = io.WriteString(rw, `{"items":[],"next":"`+next+`"}`)
		return true
	})
}

// What commits while a listing is read may be missing on the pages that were read before.
func TestAbsenceCountsFromTheFirstPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.pages(func(_ int, _ http.ResponseWriter) { w.clock.Advance(2 * time.Second) })
	w.after(5*time.Minute - time.Second)
	now := w.wants(m, ledger.NeedsReconcile, "settle was not over")
	if o := last(now); o.Counted || o.Seen != ledger.SeenAbsent {
		t.Errorf("it saw %s, counted %t", o.Seen, o.Counted)
	}
}

func TestEachPageIsHeldAgainstTheClock(t *testing.T) {
	t.Parallel()
	for wrong := 1; wrong <= 2; wrong++ {
		w := newWorld(t, viaProbe)
		m := w.unknown("a")
		w.pages(func(n int, rw http.ResponseWriter) {
			if n == wrong {
				rw.Header().Set("Date", w.clock.Now().Add(time.Hour).Format(http.TimeFormat))
			}
		})
		w.after(6 * time.Minute)
		now := w.wants(m, ledger.NeedsReconcile, "one of the clocks is wrong")
		if o := last(now); o.Seen != ledger.SeenRetry {
			t.Errorf("with page %d of another time it saw %s", wrong, o.Seen)
		}
	}
}
