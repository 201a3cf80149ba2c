package ledger_test

import (
	"strings"
	"testing"

	"keep-proxy/ledger"
)

func comparing(c *ledger.Compared) func(*ledger.Claim) {
	return func(q *ledger.Claim) { q.Compared = c }
}

func TestThePayloadIsComparedBeforeItIsRefused(t *testing.T) {
	t.Parallel()
	diff := ledger.Diff{Why: "they differ", Changes: []ledger.Change{
		{Place: "json.a", Kind: "changed", Stored: "1", Asked: "2", Weight: "significant"},
		{Place: "json.n", Kind: "added", Asked: "3", Weight: "minor"},
	}}
	openGeneration := func(w *world) {
		w.unknown("a", nativeKey)
		w.decide("a", ledger.OnDidNotHappen, force)
	}
	applied := func(w *world) { w.applied("a") }
	rule := ledger.ItemRule{Connector: "bank", Operation: "transfer"}
	for _, c := range []struct {
		name     string
		before   func(*world)
		compared *ledger.Compared
		want     ledger.Decision
		kept     bool
	}{
		{"not compared yet", applied, nil, ledger.DecideStale, false},
		{"compared with what it isn't any more", applied, &ledger.Compared{Payload: "another", Rule: rule, Covers: true}, ledger.DecideStale, false},
		{"compared by a rule that isn't its own any more", applied, &ledger.Compared{Payload: "payload", Covers: true}, ledger.DecideStale, false},
		{"covered", applied, &ledger.Compared{Payload: "payload", Rule: rule, Covers: true}, ledger.DecideReplay, false},
		{"not covered", applied, &ledger.Compared{Payload: "payload", Rule: rule, Diff: diff}, ledger.DecideMismatch, true},
		{"an open generation, not compared yet", openGeneration, nil, ledger.DecideStale, false},
		{"an open generation carries no second payload, whatever covers it", openGeneration,
			&ledger.Compared{Payload: "payload", Rule: rule, Covers: true, Diff: diff}, ledger.DecideMismatch, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			r := w.open()
			version := w.mutation("a").Version
			out := w.claimBare(w.claimOf(r, "a", payload("other"), comparing(c.compared)))
			if out.Decision != c.want {
				t.Fatalf("%q (%s), want %q", out.Decision, out.Detail, c.want)
			}
			m := w.mutation("a")
			if out.Decision == ledger.DecideStale && (m.Version != version || out.RunRefused || w.run(r.ID).State != ledger.RunRunning) {
				t.Errorf("a stale claim changed something: version %d after %d", m.Version, version)
			}
			if !c.kept {
				return
			}
			if m.Diff == nil || m.Diff.Payload != "other" || m.Diff.Run != r.ID || len(m.Diff.Changes) != 2 {
				t.Errorf("kept %+v", m.Diff)
			}
			if !strings.Contains(out.Detail, "json.a was 1, is 2.") || strings.Contains(out.Detail, "json.n") {
				t.Errorf("the refusal says %q", out.Detail)
			}
		})
	}
}

func TestADifferenceInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		diff *ledger.Diff
		want string
	}{
		{nil, ""},
		{&ledger.Diff{Why: "compare says so"}, "compare says so"},
		{&ledger.Diff{Changes: []ledger.Change{{Place: "json.n", Kind: "removed", Stored: "3", Weight: "minor"}}, More: true}, "json.n 3 is gone; and more"},
		{&ledger.Diff{Changes: []ledger.Change{
			{Place: "json.n", Kind: "removed", Stored: "3", Weight: "minor"}, {Place: "query.q", Kind: "added", Asked: `"x"`, Weight: "significant"},
		}}, `query.q "x" is new`},
	} {
		if got := c.diff.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What counts of a payload is compared with the one that took effect, not with one that failed before it.
func TestAStoredAnswerCoversThePayloadThatWasSentLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.open(returns)
	w.finish("a", w.send(r, "a", payload("one")), ledger.VerdictFailed)
	w.finish("a", w.send(r, "a", payload("two")), ledger.VerdictApplied)
	next := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
	alike := func(q *ledger.Claim) { q.Record.SignificantDigest = "significant two" }
	if out := w.claim(next, "a", payload("2"), alike); out.Decision != ledger.DecideReplay {
		t.Errorf("one that differs from the last in minor places only: %q %q", out.Decision, out.Problem)
	}
	if out := w.claim(next, "a", payload("one")); out.Decision != ledger.DecideMismatch {
		t.Errorf("one that was sent before, and failed: %q %q", out.Decision, out.Problem)
	}
}

// A rule that calls no place minor leaves no digest of what counts; two of these are not alike.
func TestWithoutADigestOfWhatCountsAllCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bare := func(q *ledger.Claim) { q.Record.SignificantDigest = "" }
	w.applied("a", bare)
	if out := w.claim(w.open(), "a", payload("other"), bare); out.Decision != ledger.DecideMismatch {
		t.Errorf("%q %q", out.Decision, out.Problem)
	}
}
