package reconcilers

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// The world disagrees with a stored result only on proof, and an absence is none before
// settle is over.
func TestVerifyingDisagreesOnlyAfterSettle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.uncertain(w.claim("a"), false)
	out, err := w.ledger.Resolve(t.Context(), ledger.Resolve{
		Key: m.Key, Version: m.Version, Action: ledger.OnHappened, NoResult: true, Actor: "ada", Reason: "it is there",
	})
	if err != nil {
		t.Fatal(err)
	}
	m = out.Mutation
	for _, c := range []struct {
		after time.Duration
		want  ledger.Said
	}{{0, ledger.SaidNothing}, {4 * time.Minute, ledger.SaidNothing}, {2 * time.Minute, ledger.SaidDisagrees}} {
		w.clock.Advance(c.after)
		if v := w.r.Verify(t.Context(), m); v.Said != c.want {
			t.Errorf("%v later: %s (%s), want %s", c.after, v.Said, v.Reason, c.want)
		}
	}
	w.api.commit("a", m.Marker, m.VendorKey)
	if v := w.r.Verify(t.Context(), m); v.Said != ledger.SaidAgrees {
		t.Errorf("with the thing there: %s (%s)", v.Said, v.Reason)
	}
}

// A program is asked where the rule has no probe, and an absence that it sees is no proof before settle either.
func TestVerifyingAsksAProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		after  time.Duration
		want   ledger.Said
	}{
		{`{"seen":"applied","objects":["t1"]}`, 0, ledger.SaidAgrees},
		{`{"seen":"absent"}`, 0, ledger.SaidNothing},
		{`{"seen":"absent"}`, ledger.DefaultSettle + time.Minute, ledger.SaidDisagrees},
		{`{"seen":"duplicate","objects":["t1","t2"]}`, 0, ledger.SaidDisagrees},
		{`{"seen":"retry"}`, 0, ledger.SaidNothing},
	} {
		w := newWorld(t, viaProgram(t, "echo '"+c.answer+"'", ""))
		m := w.uncertain(w.claim("a"), false)
		out, err := w.ledger.Resolve(t.Context(), ledger.Resolve{
			Key: m.Key, Version: m.Version, Action: ledger.OnHappened, NoResult: true, Actor: "ada", Reason: "it is there",
		})
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(c.after)
		if v := w.r.Verify(t.Context(), out.Mutation); v.Said != c.want {
			t.Errorf("%s, %v later: %s (%s), want %s", c.answer, c.after, v.Said, v.Reason, c.want)
		}
	}
}

// What was found to be ours is not another mutation's when it is found again.
func TestVerifyingFindsOurOwnEvidence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.unknown("a")
	w.api.commit("a", m.Marker, m.VendorKey)
	w.after(time.Minute)
	m = w.wants(m, ledger.Applied, "")
	if v := w.r.Verify(t.Context(), m); v.Said != ledger.SaidAgrees {
		t.Errorf("%s (%s)", v.Said, v.Reason)
	}
}

// Of one object nothing is owed, of two the newer one.
func TestVerifyingPlansTheUndoingOfTheNewerObjects(t *testing.T) {
	t.Parallel()
	timed := strings.Replace(viaProbe, "tie: marker", "tie: marker\n          created: timestamp(found.at)", 1)
	undone := timed + "    compensate: {auto: true, delete: \"/things/{object}\"}\n"
	untold := timed + "    compensate: {auto: true, delete: \"/things/{json.lost}/{object}\"}\n"
	for name, tc := range map[string]struct {
		rule         string
		things, owed int
		want         ledger.Said
		reason       string
	}{
		"none":                            {undone, 0, 0, ledger.SaidNothing, ""},
		"one":                             {undone, 1, 0, ledger.SaidAgrees, ""},
		"two":                             {undone, 2, 1, ledger.SaidDisagrees, ""},
		"two that no rule undoes":         {timed, 2, 0, ledger.SaidDisagrees, ""},
		"two whose undoing can't be told": {untold, 2, 0, ledger.SaidDisagrees, "how to undo the newer ones can't be told"},
	} {
		w := newWorld(t, tc.rule)
		m := w.ended(w.claim("a"), ledger.VerdictApplied)
		for range tc.things {
			w.api.commit("a", m.Marker, "")
			w.clock.Advance(time.Second)
		}
		v := w.r.Verify(t.Context(), m)
		if v.Said != tc.want || len(v.Owed) != tc.owed || (len(v.Objects) == 2) != (tc.things == 2) || !strings.Contains(v.Reason, tc.reason) {
			t.Errorf("%s: %+v", name, v)
		}
		if tc.owed > 0 && v.Owed[0].Object != "t2" {
			t.Errorf("%s: %s is owed", name, v.Owed[0].Object)
		}
	}
}

// What was made may be changed later. That it is there still the object's other fields don't deny. Of what is unknown
// they do: somebody else may have made it.
func TestAChangedObjectIsThereButIsNotTakenForOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Replace(timedProbe("content"), "tie: content", "tie: unique", 1))
	m := w.unknown("a")
	at := w.clock.Now().Add(2 * time.Second).Format(time.RFC3339)
	w.api.answering(http.StatusOK, nil, `{"items":[{"id":"t1","reference":"a","amount":777,"at":"`+at+`"}]}`)
	w.after(time.Hour)
	if o := last(w.read(m)); o.Seen != ledger.SeenRetry || !strings.Contains(o.Reason, "json.amount") {
		t.Errorf("seen %s (%s)", o.Seen, o.Reason)
	}
	if v := w.r.Verify(t.Context(), w.read(m)); v.Said != ledger.SaidAgrees {
		t.Errorf("%s (%s)", v.Said, v.Reason)
	}
}

// Who learns that an API is slower than it was taken for isn't told of what is only late.
func TestVerifyingHeedsTheSettingsOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, viaProbe)
	m := w.ended(w.claim("a"), ledger.VerdictApplied)
	longer := time.Hour
	w.user = []rules.Settings{{Connector: "things", Overrides: map[string]rules.Override{m.Operation: {Settle: &longer}}}}
	w.start()
	w.clock.Advance(30 * time.Minute)
	if v := w.r.Verify(t.Context(), m); v.Said != ledger.SaidNothing {
		t.Errorf("before settle is over: %s (%s)", v.Said, v.Reason)
	}
	w.clock.Advance(longer)
	if v := w.r.Verify(t.Context(), m); v.Said != ledger.SaidDisagrees {
		t.Errorf("after it: %s (%s)", v.Said, v.Reason)
	}
}
