package ledger_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// version makes a claim under another version of the rule.
func version(hash string, keys ...ledger.RuleKey) func(*ledger.Claim) {
	return func(q *ledger.Claim) {
		q.Record.ConnectorHash, q.EarlierKeys = hash, keys
	}
}

// hosts makes a claim under other hosts.
func hosts(inForce string) func(*ledger.Claim) {
	return func(q *ledger.Claim) { q.Record.ConnectorHosts = inForce }
}

func under(hash, name string) ledger.RuleKey {
	p := ledger.RuleKey{Rule: ledger.ItemRule{Connector: "bank", Operation: "transfer", Hash: hash}}
	if name != "" {
		p.Key = key(name)
	}
	return p
}

func TestARecordIsMetUnderAStoredVersionOfItsRule(t *testing.T) {
	t.Parallel()
	first := func(w *world) { w.applied("a", version("v1")) }
	both := func(w *world) {
		first(w)
		w.applied("b", version("v2", under("v1", "")))
	}
	renamed := func(q *ledger.Claim) {
		q.Record.Operation, q.Was = "pay", []string{"transfer"}
		q.Record.ConnectorHash = "v2"
	}
	for _, c := range []struct {
		name     string
		before   func(*world)
		claim    string
		change   []func(*ledger.Claim)
		decision ledger.Decision
		problem  string
		of       string
	}{
		{"the same version needs no key", first, "a", []func(*ledger.Claim){version("v1")}, ledger.DecideReplay, "", "a"},
		{"the same version under other hosts needs one", first, "b", []func(*ledger.Claim){version("v1"), hosts("x")}, ledger.DecideStale, "", ""},
		{"its record is taken", first, "b", []func(*ledger.Claim){version("v1", under("v1", "a")), hosts("x")}, ledger.DecideReplay, "", "a"},
		{"another version needs the key under the first", first, "b", []func(*ledger.Claim){version("v2")}, ledger.DecideStale, "", ""},
		{"the record of the first is taken", first, "b", []func(*ledger.Claim){version("v2", under("v1", "a"))}, ledger.DecideReplay, "", "a"},
		{"the first reads no such mutation", first, "b", []func(*ledger.Claim){version("v2", under("v1", ""))}, ledger.DecideDispatch, "", "b"},
		{"the first is for other hosts", first, "b", []func(*ledger.Claim){version("v2"), func(q *ledger.Claim) { q.Elsewhere = func(r ledger.ItemRule) bool { return r.Hash == "v1" } }}, ledger.DecideDispatch, "", "b"},
		{"the first has no such record", first, "b", []func(*ledger.Claim){version("v2", under("v1", "c"))}, ledger.DecideDispatch, "", "b"},
		{"the same key under both", first, "a", []func(*ledger.Claim){version("v2", under("v1", "a"))}, ledger.DecideReplay, "", "a"},
		{"two records fit", both, "b", []func(*ledger.Claim){version("v2", under("v1", "a"))}, ledger.DecideRefused, "ambiguous-record", "b"},
		{"two records fit under a third", both, "c", []func(*ledger.Claim){version("v3", under("v1", "a"), under("v2", "b"))}, ledger.DecideRefused, "ambiguous-record", "a"},
		{"an operation that was renamed", first, "b", []func(*ledger.Claim){renamed}, ledger.DecideStale, "", ""},
		{"an operation that doesn't say it was renamed", first, "b", []func(*ledger.Claim){renamed, func(q *ledger.Claim) { q.Was = nil }}, ledger.DecideStale, "", ""},
		{"another operation of the same version", first, "b", []func(*ledger.Claim){renamed, func(q *ledger.Claim) { q.Was, q.Record.ConnectorHash = nil, "v1" }}, ledger.DecideDispatch, "", "b"},
		{"the renamed operation's record is taken", first, "b", []func(*ledger.Claim){renamed, func(q *ledger.Claim) { q.EarlierKeys = []ledger.RuleKey{under("v1", "a")} }}, ledger.DecideReplay, "", "a"},
		{"another payload for the record of the first", first, "b", []func(*ledger.Claim){version("v2", under("v1", "a")), payload("other")}, ledger.DecideMismatch, "payload-mismatch", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			r := w.open()
			q := w.claimOf(r, c.claim, append(c.change, allowDrift)...)
			a, err := w.Ahead(t.Context(), &q)
			w.ok(err)
			if m := a.Compare(&q); m != nil {
				q.Compared = ledger.ComparedWith(m)
			}
			out := w.claimBare(q)
			if out.Decision != c.decision || out.Problem != c.problem {
				t.Fatalf("%q %q (%s), want %q %q", out.Decision, out.Problem, out.Detail, c.decision, c.problem)
			}
			switch {
			case c.decision == ledger.DecideStale:
				if len(a.Rules) != 1 || a.Rules[0].Hash != "v1" || a.Rules[0].Operation != "transfer" || w.run(r.ID).State != ledger.RunRunning {
					t.Errorf("keys are missing under %+v", a.Rules)
				}
			case out.Mutation == nil || out.Mutation.Key != key(c.of):
				t.Errorf("decided about %+v", out.Mutation)
			}
			if c.problem == "ambiguous-record" {
				if !out.RunRefused || !strings.Contains(out.Detail, key("a").ID()) || !strings.Contains(out.Detail, key("b").ID()) {
					t.Errorf("refused with %q", out.Detail)
				}
				w.escalated(c.of, ledger.EscalationAmbiguous)
			}
		})
	}
}

// A version may not be sure whether its record is the claim's. Then what may be done already isn't sent.
func TestAVersionThatIsntSureStopsTheClaim(t *testing.T) {
	t.Parallel()
	done := func(w *world) { w.applied("a", version("v1")) }
	for name, c := range map[string]struct {
		before func(*world)
		key    string
		stops  bool
	}{
		"its record is there":                   {done, "a", true},
		"another record of it is there":         {done, "c", false},
		"it can't tell which, and has a record": {done, "", true},
		"its record failed": {func(w *world) {
			r := w.open()
			w.finish("a", w.send(r, "a", version("v1")), ledger.VerdictFailed)
			_, err := w.EndRun(w.t.Context(), r.ID, "", "over", "person:ada")
			w.ok(err)
		}, "", false},
		"its record is of the attempt before": {func(w *world) {
			done(w)
			_, err := w.decideItem(ledger.ItemNewAttempt)
			w.ok(err)
		}, "", false},
		"its record was made under another rule": {func(w *world) { done(w); w.applied("c", version("v2", under("v1", "")), allowDrift) }, "c", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			k := under("v1", c.key)
			k.Unsure = "Say was."
			v2 := under("v2", "")
			out := w.claim(w.open(), "b", version("v3", k, v2), allowDrift)
			if !c.stops {
				if out.Decision != ledger.DecideDispatch {
					t.Errorf("%q %q (%s)", out.Decision, out.Problem, out.Detail)
				}
				return
			}
			if out.Problem != "ambiguous-record" || !out.RunRefused || !strings.Contains(out.Detail, k.Unsure) {
				t.Errorf("%q %q (%s)", out.Decision, out.Problem, out.Detail)
			}
			w.escalated(cmp.Or(c.key, "a"), ledger.EscalationAmbiguous)
		})
	}
}

// That a person is asked about something else is no reason not to ask which record is meant: a
// run is over by it, and the other question may be open for long, as it stops nothing.
func TestWhichOfTwoRecordsIsMeantIsAskedBesideAnotherQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", version("v1"))
	w.unknown("b", version("v2", under("v1", "")), allowDrift)
	w.see("b", ledger.SeenDuplicate, strong, objects("o1", "o2"))
	for range 2 {
		if out := w.claim(w.open(), "b", version("v2", under("v1", "a")), allowDrift); out.Problem != "ambiguous-record" {
			t.Fatalf("%q %q", out.Decision, out.Problem)
		}
		w.questions("b", ledger.EscalationDuplicate, ledger.EscalationAmbiguous)
	}
	w.decide("b", ledger.OnAcknowledge)
	w.questions("b", ledger.EscalationDuplicate)
}

func allowDrift(q *ledger.Claim) { q.Drift = ledger.DriftAllow }

// A ledger that was written before versions were noted finds them in the records.
func TestVersionsThatWereNotNotedAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", version("v1"))
	if got := w.item("i").Rules; len(got) != 1 || got[0] != (ledger.ItemRule{Connector: "bank", Operation: "transfer", Hash: "v1"}) {
		t.Errorf("noted %+v", got)
	}
	w.ok(w.store.Update(t.Context(), func(tx ledger.Tx) error {
		i, err := tx.Item("w", "i")
		if err != nil {
			return err
		}
		i.Rules = nil
		i.Version++
		return tx.PutItem(i)
	}))
	if out := w.claimBare(w.claimOf(w.open(), "b", version("v2"))); out.Decision != ledger.DecideStale {
		t.Errorf("%q", out.Decision)
	}
}

func drifting(d ledger.Drift, name string) func(*ledger.Claim) {
	return func(q *ledger.Claim) {
		q.Drift = d
		q.Record.Identity = map[string]string{"of": `"` + name + `"`, "from": `"alice"`}
	}
}

// What happened counts as asked for only if it was asked for, whether or not its answer is known.
func TestDriftLooksAtWhatHasNoResultToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", drifting(ledger.DriftRefuse, "a"))
	w.decide("a", ledger.OnHappened, none)
	if out := w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b")); out.Problem != "drift" {
		t.Errorf("%q %q", out.Decision, out.Problem)
	}
}

func TestDrift(t *testing.T) {
	t.Parallel()
	warn, refuse := ledger.DriftWarn, ledger.DriftRefuse
	for _, c := range []struct {
		name   string
		drift  ledger.Drift
		before func(*world, *ledger.Run)
		again  string
		want   string
	}{
		{"a re-run that asks for something new first", warn, nil, "b", "warned"},
		{"and is refused", refuse, nil, "b", "refused"},
		{"and may", ledger.DriftAllow, nil, "b", ""},
		{"the default warns", "", nil, "b", "warned"},
		{"a re-run that asked for the old one, and was answered", refuse, func(w *world, r *ledger.Run) {
			w.claim(r, "a", drifting(refuse, "a"))
			w.Deliver(r.ID, w.mutation("a"), "")
		}, "b", ""},
		{"a re-run that is being answered with the old one", refuse, func(w *world, r *ledger.Run) {
			w.claim(r, "a", drifting(refuse, "a"))
			w.Answering(r.ID, key("a"))
		}, "b", ""},
		{"a re-run that asked for the old one and didn't wait for its answer", refuse, func(w *world, r *ledger.Run) {
			w.claim(r, "a", drifting(refuse, "a"))
			w.Answering(r.ID, key("a"))
			w.Undelivered(r.ID, key("a"))
		}, "b", ""},
		{"another operation", refuse, nil, "another operation", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.applied("a", drifting(c.drift, "a"))
			r := w.open()
			if c.before != nil {
				c.before(w, r)
			}
			out := w.claim(r, c.again, drifting(c.drift, c.again), func(q *ledger.Claim) {
				if c.again != "b" {
					q.Record.Operation = c.again
				}
			})
			const words = `identity.of was "a", is "b"`
			switch c.want {
			case "refused":
				if out.Problem != "drift" || !out.RunRefused || !strings.Contains(out.Detail, words) || strings.Contains(out.Detail, "identity.from") {
					t.Fatalf("%q %q: %s", out.Decision, out.Problem, out.Detail)
				}
				w.stands(r, ledger.RunPausedAttention, verdict.Logic)
				w.escalated("a", ledger.EscalationDrift)
				if i := w.item("i"); i.State != ledger.ItemNeedsAttention || i.Cause != key("a").ID() {
					t.Errorf("item %+v", i)
				}
				if _, err := w.MutationByID(t.Context(), key("b").ID()); !errors.Is(err, ledger.ErrNotFound) {
					t.Errorf("a record was made: %v", err)
				}
			default:
				if out.Decision != ledger.DecideDispatch || (out.Drift != "") != (c.want == "warned") || c.want == "warned" && !strings.Contains(out.Drift, words) {
					t.Fatalf("%q %q: %q", out.Decision, out.Problem, out.Drift)
				}
				events, err := w.Events(t.Context(), key(c.again).ID(), 0, 10)
				w.ok(err)
				if noted := slices.ContainsFunc(events, func(e ledger.Event) bool { return e.What == "drift" }); noted != (c.want == "warned") {
					t.Errorf("noted %v: %+v", noted, events)
				}
			}
		})
	}
}

func TestDriftIsToldOnceAndLookedForOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", drifting(ledger.DriftWarn, "a"))
	r := w.open()
	for i, name := range []string{"b", "c", "d"} {
		d := w.claim(r, name, drifting(ledger.DriftWarn, name))
		if (d.Drift != "") != (i == 0) {
			t.Errorf("%s: %q", name, d.Drift)
		}
		w.finish(name, d.Dispatch, ledger.VerdictApplied)
	}
	if got := w.run(r.ID).Steady; !slices.Equal(got, []string{"bank/transfer"}) {
		t.Errorf("steady: %q", got)
	}
}

func TestAPersonAcceptsADrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", drifting(ledger.DriftRefuse, "a"))
	w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b"))
	actions := w.Actions(w.mutation("a"), w.now)
	if len(actions) != 1 || actions[0].Action != ledger.OnAcknowledge || !strings.Contains(actions[0].Consequence, "other mutations") {
		t.Errorf("open: %+v", actions)
	}
	w.decide("a", ledger.OnAcknowledge)
	w.escalated("a", "")
	if i := w.item("i"); i.State != ledger.ItemOpen || i.Cause != "" {
		t.Errorf("item %+v", i)
	}
	if out := w.claim(w.open(), "b", drifting(ledger.DriftRefuse, "b")); out.Decision != ledger.DecideDispatch || out.Drift != "" {
		t.Errorf("%q %q", out.Decision, out.Detail)
	}
	w.finish("b", w.mutation("b").Current(), ledger.VerdictApplied)
	if _, err := w.FinishRun(t.Context(), w.item("i").ActiveRun, ledger.OutcomeFailed, false); err != nil {
		t.Fatal(err)
	}
	// The person's word was about this attempt.
	_, err := w.decideItem(ledger.ItemNewAttempt)
	w.ok(err)
	w.applied("c", drifting(ledger.DriftRefuse, "c"))
	if out := w.claim(w.open(), "d", drifting(ledger.DriftRefuse, "d")); out.Problem != "drift" {
		t.Errorf("in the next attempt: %q %q", out.Decision, out.Detail)
	}
}

// The question about an attempt that is over may stay open, where the item was opened before, and is
// closed one day.
func TestADriftIsAcceptedForItsOwnAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse := ledger.DriftRefuse
	w.applied("a", drifting(refuse, "a"))
	w.claim(w.open(), "b", drifting(refuse, "b"))
	w.reopen("i")
	_, err := w.decideItem(ledger.ItemNewAttempt)
	w.ok(err)
	w.applied("c", drifting(refuse, "c"))
	w.escalated("a", ledger.EscalationDrift)
	w.decide("a", ledger.OnAcknowledge)
	w.escalated("a", "")
	if out := w.claim(w.open(), "d", drifting(refuse, "d")); out.Problem != "drift" {
		t.Errorf("the attempt after it: %q %q %q", out.Decision, out.Problem, out.Detail)
	}
}

// The record that a person is asked about has the operation's name of then.
func TestADriftIsAcceptedUnderAnEarlierName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refuse := ledger.DriftRefuse
	renamed := func(q *ledger.Claim) { q.Record.Operation, q.Was = "pay", []string{"transfer"} }
	w.applied("a", drifting(refuse, "a"))
	if out := w.claim(w.open(), "b", drifting(refuse, "b"), renamed); out.Problem != "drift" {
		t.Fatalf("%q %q %q", out.Decision, out.Problem, out.Detail)
	}
	w.decide("a", ledger.OnAcknowledge)
	if out := w.claim(w.open(), "b", drifting(refuse, "b"), renamed); out.Decision != ledger.DecideDispatch {
		t.Errorf("a drift that was accepted: %q %q %q", out.Decision, out.Problem, out.Detail)
	}
}

func TestStandIns(t *testing.T) {
	t.Parallel()
	own := func(q *ledger.Claim) { q.OnSkip, q.OnNoResult = true, true }
	for name, before := range map[string]func(*world){
		"skipped":            states["skipped"],
		"applied, no result": states["applied, no result"],
	} {
		w := newWorld(t)
		before(w)
		r := w.open()
		if out := w.claim(r, "a", own); out.Decision != ledger.DecideStandIn || out.Mutation == nil {
			t.Errorf("%s: %q %q", name, out.Decision, out.Problem)
		}
		w.escalated("a", "")
		w.Deliver(r.ID, w.mutation("a"), "")
		if out := w.claim(r, "a", own); out.Decision != ledger.DecideRepeated {
			t.Errorf("%s, asked again: %q", name, out.Decision)
		}
	}
}

// Only a ledger that has lost nothing knows that a new item has no mutations: elsewhere
// they are looked for.
func TestANewItemIsKnownToBeEmptyUnlessSomethingWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.open()
	if got := w.item("i").Rules; got == nil || len(got) > 0 {
		t.Errorf("in a whole ledger it has %#v", got)
	}
	w.restored()
	w.open(item("j"))
	if got := w.item("j").Rules; got != nil {
		t.Errorf("in one with a gap it has %#v", got)
	}
}

func TestDriftOfAnUnmanagedScopeIsNotLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", drifting(ledger.DriftRefuse, "a"))
	if out := w.claim(nil, "b", drifting(ledger.DriftRefuse, "b")); out.Decision != ledger.DecideDispatch || out.Drift != "" {
		t.Errorf("%q %q", out.Decision, out.Detail)
	}
}

// What the run itself has made is no earlier run's, whether or not its answer arrived.
func TestARunDoesNotDriftFromItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow := func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation }
	// While this one is unknown the run is looked at anew each time.
	w.unknown("a", drifting(ledger.DriftRefuse, "a"), narrow)
	r := w.open()
	for _, name := range []string{"b", "c", "d"} {
		w.finish(name, w.send(r, name, drifting(ledger.DriftRefuse, name)), ledger.VerdictApplied)
	}
}

// What is unknown may turn out to have happened, so that looking once is not enough.
func TestDriftIsLookedForUntilAllIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	narrow := func(q *ledger.Claim) { q.Record.Policy.BlockScope = ledger.BlockMutation }
	w.unknown("a", drifting(ledger.DriftRefuse, "a"), narrow)
	r := w.open()
	w.finish("b", w.send(r, "b", drifting(ledger.DriftRefuse, "b"), narrow), ledger.VerdictApplied)
	w.see("a", ledger.SeenApplied)
	if out := w.claim(r, "c", drifting(ledger.DriftRefuse, "c"), narrow); out.Problem != "drift" {
		t.Errorf("%q %q", out.Decision, out.Problem)
	}
}

// So does what the runner sends by itself, and what an API said it would do.
func TestDriftIsLookedForWhileSomethingMayComeByItself(t *testing.T) {
	t.Parallel()
	refuse := func(name string) func(*ledger.Claim) { return drifting(ledger.DriftRefuse, name) }
	for name, c := range map[string]struct {
		before func(w *world)
		comes  func(w *world)
	}{
		"queued to be sent again": {
			func(w *world) {
				w.unknown("a", refuse("a"), redispatches)
				w.absent("a")
			},
			func(w *world) {
				_, d := w.again(w.mutation("a"))
				w.finish("a", d, ledger.VerdictApplied)
			},
		},
		"accepted": {
			func(w *world) {
				w.finish("a", w.send(w.open(), "a", refuse("a"), watched), ledger.VerdictAccepted, status202)
			},
			func(w *world) { w.see("a", ledger.SeenApplied) },
		},
		"failed by a person's word while it is sent": {
			func(w *world) {
				w.unknown("a", refuse("a"), nativeKey)
				w.resend("a")
				w.decide("a", ledger.OnDidNotHappen, force)
			},
			func(w *world) { w.finish("a", w.mutation("a").Current(), ledger.VerdictApplied) },
		},
	} {
		w := newWorld(t)
		c.before(w)
		r := w.open(func(o *ledger.OpenRun) { o.Takeover = true })
		w.finish("b", w.send(r, "b", refuse("b")), ledger.VerdictApplied)
		c.comes(w)
		w.is("a", ledger.Applied)
		if out := w.claim(r, "c", refuse("c")); out.Problem != "drift" {
			t.Errorf("%s: %q %q", name, out.Decision, out.Problem)
		}
	}
}

// The key is the record's from the finding on: what a run may make counts by it.
func TestARunOfOneMutationAsksAgainUnderAnotherVersionOfItsRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.applied("a", version("v1"))
	r := w.open(func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne })
	for range 2 {
		out := w.claim(r, "b", version("v2", under("v1", "a")), allowDrift, redelivery)
		if out.Decision != ledger.DecideReplay || out.Mutation.Key != key("a") {
			t.Fatalf("%q %q (%s)", out.Decision, out.Problem, out.Detail)
		}
	}
	if out := w.claim(r, "c", version("v2", under("v1", "")), allowDrift); out.Problem != "one-mutation" {
		t.Errorf("another one: %q %q", out.Decision, out.Problem)
	}
}
