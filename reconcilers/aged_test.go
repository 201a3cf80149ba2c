package reconcilers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// viaCondition tells by a condition what state the thing is in; it has no object of its own.
const viaCondition = `    reconcile:
      - probe:
          get: /things/state
          observe: [{when: "response.status == 200", is: applied}]
          result: {status: 201}
`

// aged lets a cache answer each read of the API, by an answer of this age.
func aged(age string, answer func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		if age != "" {
			rw.Header().Set("Age", age)
		}
		return answer(rw, r)
	}
}

func isThere(rw http.ResponseWriter, _ *http.Request) bool {
	rw.WriteHeader(http.StatusOK)
	return true
}

// What a cache shows of the time before the sending is not the sending's doing: the state may have
// been another one since. Only an object that names the mutation can't have been there before.
func TestWhatACacheHasFromBeforeTheSendingIsNotTakenForIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		age     string
		between func(w *world)
		want    ledger.Seen
	}{
		{"", nil, ledger.SeenApplied},
		{"0", nil, ledger.SeenApplied},
		{"10", nil, ledger.SeenApplied},
		{"3598", nil, ledger.SeenApplied},
		{"3600", nil, ledger.SeenRetry}, // Ages are whole seconds.
		{"3700", nil, ledger.SeenRetry},
		{"soon", nil, ledger.SeenRetry},
		{"-1", nil, ledger.SeenRetry},
		{"99999999999999999999", nil, ledger.SeenRetry},
		{"10", (*world).reboot, ledger.SeenRetry},
	} {
		t.Run(fmt.Sprint("Age ", tc.age, tc.between != nil), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, viaCondition)
			m := w.unknown("a")
			if tc.between != nil {
				tc.between(w)
			}
			w.api.script(aged(tc.age, isThere))
			w.after(time.Hour)
			o := last(w.read(m))
			if o.Seen != tc.want || tc.want == ledger.SeenRetry && !strings.Contains(o.Reason, "a cache answered (Age: "+tc.age+")") {
				t.Errorf("seen %s (%s), want %s", o.Seen, o.Reason, tc.want)
			}
		})
	}
}

// An answer from between a sending that failed and the one that is unknown shows what others did.
func TestTheAgeOfAnAnswerIsMeasuredFromTheSendingThatMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]ledger.Seen{"300": ledger.SeenApplied, "5400": ledger.SeenRetry} {
		w := newWorld(t, viaCondition)
		w.ended(w.claim("a"), ledger.VerdictFailed)
		w.clock.Advance(time.Hour)
		m := w.uncertain(w.claim("a"), false)
		w.api.script(aged(age, isThere))
		w.after(time.Hour)
		if o := last(w.read(m)); o.Seen != want {
			t.Errorf("Age %s: seen %s (%s), want %s", age, o.Seen, o.Reason, want)
		}
	}
}

// What names the mutation can't have been there before it.
func TestWhatNamesTheMutationIsOfItHoweverOldTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, "")
	w.api.script(aged("86400", func(http.ResponseWriter, *http.Request) bool { return false }))
	w.after(time.Hour)
	w.wants(m, ledger.Applied, "")
}

// severalAlike lists two things of the mutation's content.
func severalAlike(rw http.ResponseWriter, _ *http.Request) bool {
	_, _ = rw.Write([]byte(`{"items":[{"id":"t1","reference":"a","at":"2099-01-01T00:00:00Z"},{"id":"t2","reference":"a","at":"2099-01-01T00:00:00Z"}]}`))
	return true
}

// Nor does one tell it that shows several of the same content.
func TestVerifyingTakesNoCachesWordForSeveral(t *testing.T) {
	t.Parallel()
	rule := strings.Replace(contentOf("found.reference == 'a'"), "tie: content", "tie: unique", 1)
	for age, want := range map[string]ledger.Said{"": ledger.SaidAgrees, "1": ledger.SaidNothing} {
		w := newWorld(t, rule)
		m := w.ended(w.claim("a"), ledger.VerdictApplied)
		w.clock.Advance(time.Hour)
		w.api.script(aged(age, severalAlike))
		if v := w.r.Verify(t.Context(), m); v.Said != want {
			t.Errorf("Age %q: %s (%s), want %s", age, v.Said, v.Reason, want)
		}
	}
}

// Whether an effect is still there no answer of a cache tells.
func TestVerifyingTakesNoCachesWord(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]ledger.Said{"": ledger.SaidAgrees, "0": ledger.SaidAgrees, "1": ledger.SaidNothing} {
		w := newWorld(t, viaProbe)
		m := w.unknown("a")
		w.api.commit("a", m.Marker, m.VendorKey)
		w.after(time.Minute)
		m = w.wants(m, ledger.Applied, "")
		w.clock.Advance(time.Hour)
		w.api.script(aged(age, func(http.ResponseWriter, *http.Request) bool { return false }))
		if v := w.r.Verify(t.Context(), m); v.Said != want {
			t.Errorf("Age %q: %s (%s), want %s", age, v.Said, v.Reason, want)
		}
	}
}
