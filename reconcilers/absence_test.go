package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestAbsenceIsBelievedAsEarlyAsAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	ended := w.clock.Now()
	for range 20 {
		if w.read(m).State != ledger.NeedsReconcile {
			break
		}
		w.due(m)
	}
	now := w.wants(m, ledger.Failed, "")
	if took := w.clock.Now().Sub(ended); took != 5*time.Minute+10*time.Second {
		t.Errorf("believed after %v, want settle and one spacing: 5m10s", took)
	}
	counted := 0
	for _, o := range now.Observations {
		if o.Counted {
			counted++
		}
	}
	if counted != 2 {
		t.Errorf("%d confirmations counted, want 2", counted)
	}
	// Backoff before settle is over: 10, 30, 70 and 150 s; then 300 and 310 s.
	if _, gets, _ := w.api.counts(); gets != 6 {
		t.Errorf("%d reads, want 6", gets)
	}
}

func TestAbsenceBeforeSettleIsOverDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	for range 20 {
		w.after(14 * time.Second)
	}
	now := w.wants(m, ledger.NeedsReconcile, "settle was not over")
	if now.Tries != 0 {
		t.Errorf("%d tries used up before settle was over", now.Tries)
	}
}

func TestCommitInsideSettleIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.after(10 * time.Second)
	w.wants(m, ledger.NeedsReconcile, "")
	w.clock.Advance(4 * time.Minute)
	w.api.commit("a", m.Marker, "")
	w.after(50 * time.Second)
	w.wants(m, ledger.Applied, "")
}

func TestConfirmationsAreSpaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.after(5 * time.Minute)
	w.wants(m, ledger.NeedsReconcile, "")
	if wait := w.read(m).NextTryAt.Sub(w.clock.Now()); wait != 10*time.Second {
		t.Errorf("next try in %v, want one spacing", wait)
	}
	w.clock.Advance(9 * time.Second)
	if c := w.r.RunOnce(t.Context()); c.Tried != 0 {
		t.Errorf("tried %d times before the spacing was over", c.Tried)
	}
	w.after(time.Second)
	w.wants(m, ledger.Failed, "")
}

func TestAbsenceThatIsNoProofAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, probeText)
	m := w.unknown("a")
	n := 0
	for ; n < 40 && w.read(m).State == ledger.NeedsReconcile; n++ {
		w.due(m)
	}
	now := w.wants(m, ledger.Indeterminate, "the tries are used up")
	if now.Tries != 8 {
		t.Errorf("gave up after %d tries with settle over, want 8", now.Tries)
	}
}

func TestUnreachableUpstreamIsTriedForADay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.leave()
	began := w.clock.Now()
	for n := 0; n < 400 && w.read(m).State == ledger.NeedsReconcile; n++ {
		w.due(m)
	}
	w.wants(m, ledger.Indeterminate, "the tries are used up")
	if took := w.clock.Now().Sub(began); took < 24*time.Hour || took > 24*time.Hour+15*time.Minute {
		t.Errorf("gave up after %v, want a day", took)
	}
}

func TestTimeInWhichNothingRanIsNotRunningTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.leave()
	w.after(time.Minute)
	w.clock.Advance(30 * time.Hour)
	w.restart()
	w.after(time.Minute)
	if now := w.wants(m, ledger.NeedsReconcile, ""); now.RunningAge != 2*time.Minute {
		t.Errorf("running age %v, want 2m", now.RunningAge)
	}
}

func TestRestartCountsSettleAgainForALostDispatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  bool
		boot bool
		want time.Duration
	}{
		"an end recorded in this boot counts from there":  {true, false, 4 * time.Minute},
		"no recorded end counts from the process's start": {false, false, 5 * time.Minute},
		"another boot counts from the process's start":    {true, true, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			m := w.claim("a")
			if tc.end {
				m = w.uncertain(m, true)
			}
			w.clock.Advance(time.Minute)
			if tc.boot {
				w.clock.Reboot(0)
			}
			w.restart()
			began := w.clock.Now()
			for n := 0; n < 20 && w.read(m).State == ledger.NeedsReconcile; n++ {
				w.due(m)
			}
			w.wants(m, ledger.Failed, "")
			if took := w.clock.Now().Sub(began); took != tc.want+10*time.Second {
				t.Errorf("believed %v after the start, want %v and one spacing", took, tc.want)
			}
		})
	}
}

func TestConfirmationOfAnotherBootDoesNotCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.after(5 * time.Minute)
	w.clock.Reboot(time.Hour)
	w.restart()
	w.after(0)
	w.wants(m, ledger.NeedsReconcile, "settle was not over")
	w.after(5 * time.Minute)
	w.wants(m, ledger.NeedsReconcile, "")
	w.after(10 * time.Second)
	w.wants(m, ledger.Failed, "")
}

func TestSleepOfTheMachineIsNotSettle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.clock.Sleep(time.Hour)
	w.after(0)
	w.wants(m, ledger.NeedsReconcile, "settle was not over")
}

func TestAbsenceByAnotherClockIsRetry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		off  time.Duration
		want ledger.Seen
	}{
		"a little off":      {-4 * time.Minute, ledger.SeenAbsent},
		"behind, or cached": {-6 * time.Minute, ledger.SeenRetry},
		"ahead":             {6 * time.Minute, ledger.SeenRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaProbe)
			m := w.unknown("a")
			w.api.script(func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Date", w.clock.Now().Add(tc.off).Format(http.TimeFormat))
				return false
			})
			w.after(time.Hour)
			if o := last(w.read(m)); o.Seen != tc.want {
				t.Errorf("seen %s (%s), want %s", o.Seen, o.Reason, tc.want)
			}
		})
	}
}

// What a cache answers was made before it was asked for, however little before, so that the same
// answer would count as often as it is asked for. Caches are told not to, and may all the same.
func TestAbsenceByACacheIsRetry(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]ledger.State{"": ledger.Failed, "0": ledger.Failed, "1": ledger.NeedsReconcile, "59": ledger.NeedsReconcile} {
		w := newWorld(t, viaProbe)
		m := w.unknown("a")
		w.api.script(func(rw http.ResponseWriter, r *http.Request) bool {
			if age != "" {
				rw.Header().Set("Age", age)
			}
			if r.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("asked with Cache-Control %q", r.Header.Get("Cache-Control"))
			}
			return false
		})
		w.after(5 * time.Minute)
		w.after(10 * time.Second)
		now := w.wants(m, want, "")
		if why := last(now).Reason; want == ledger.NeedsReconcile && !strings.Contains(why, "a cache answered (Age: "+age+")") {
			t.Errorf("Age %q: because %q", age, why)
		}
		w.api.commit("a", m.Marker, "")
		if w.after(time.Hour); want == ledger.NeedsReconcile {
			w.wants(m, ledger.Applied, "")
		}
	}
}

func TestOnAbsentEscalateAsksAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe+"    on_absent: escalate\n")
	m := w.unknown("a")
	w.after(5 * time.Minute)
	w.after(10 * time.Second)
	if now := w.wants(m, ledger.Indeterminate, ""); !now.Escalated() {
		t.Error("nobody was asked")
	}
}

func TestCommittedIsNeverAbsent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.claim("a")
	d := *m.Current()
	d.Verdict, d.Ended, d.Head, d.Status = ledger.VerdictCommitted, w.now(), true, http.StatusCreated
	if _, err := w.ledger.EndDispatch(t.Context(), ledger.EndDispatch{Key: m.Key, Dispatch: d, NextTryAt: w.r.NextTry(m)}); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < 40 && w.read(m).State == ledger.NeedsReconcile; n++ {
		w.due(m)
	}
	now := w.wants(m, ledger.Applied, "")
	if now.ResultState != ledger.ResultUnknown {
		t.Errorf("result %s, want unknown", now.ResultState)
	}
	for _, o := range now.Observations {
		if o.Counted || o.Seen == ledger.SeenAbsent && !strings.Contains(o.Reason, "known to have happened") {
			t.Errorf("observation %+v counted as absence", o)
		}
	}
}
