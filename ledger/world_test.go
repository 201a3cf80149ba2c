package ledger_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// world is a ledger with a clock that only the test moves.
type world struct {
	t     testing.TB
	now   ledger.Stamp
	ids   int
	store *ledgertest.Memory
	*ledger.Ledger
	// stopAfter is before which update from now on a crash comes, 0 for none.
	stopAfter int
	// checked remembers what the invariants compare records with.
	checked history
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	w := &world{t: tb, checked: history{}}
	w.now = ledger.Stamp{Wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Mono: time.Hour, Boot: time.Hour, BootID: "boot-1"}
	w.use(ledgertest.NewMemory(ledger.Process{ID: "p1", Started: w.now}))
	return w
}

// use binds the ledger to a store and checks the invariants of each command.
func (w *world) use(s *ledgertest.Memory) {
	w.store = s
	w.Ledger = ledger.New(&checkedStore{Store: s, w: w}, ledger.Config{
		Now:   func() ledger.Stamp { return w.now },
		NewID: w.id,
	})
}

func (w *world) id() string {
	w.ids++
	return fmt.Sprintf("id%d", w.ids)
}

// pass moves every clock.
func (w *world) pass(d time.Duration) {
	w.now.Wall, w.now.Mono, w.now.Boot = w.now.Wall.Add(d), w.now.Mono+d, w.now.Boot+d
}

// restart loses the process and opens the ledger as another one, and recovers.
func (w *world) restart() ledger.RecoverCounts {
	w.t.Helper()
	w.use(w.store.Reopen(ledger.Process{ID: "p" + w.id(), Started: w.now}))
	counts, err := w.Recover(w.t.Context(), func(*ledger.Mutation) time.Time { return w.now.Wall })
	w.ok(err)
	return counts
}

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// open opens a run of workflow "w" and item "i", changed by change.
func (w *world) open(change ...func(*ledger.OpenRun)) *ledger.Run {
	w.t.Helper()
	o := ledger.OpenRun{Workflow: "w", Item: "i", TTL: 100 * time.Hour}
	for _, c := range change {
		c(&o)
	}
	r, err := w.OpenRun(w.t.Context(), o)
	w.ok(err)
	return r
}

func returns(o *ledger.OpenRun) { o.OnFailure = ledger.FailureReturn }

func item(name string) func(*ledger.OpenRun) {
	return func(o *ledger.OpenRun) { o.Item = name }
}

// key is the mutation key for a name.
func key(name string) ledger.Key { return sha256.Sum256([]byte(name)) }

// claimOf is a claim by the run for a mutation of this name, with a reconciler.
func (w *world) claimOf(r *ledger.Run, name string, change ...func(*ledger.Claim)) ledger.Claim {
	q := ledger.Claim{
		Scope: ledger.Scope{Workflow: "w", Item: "i", Attempt: 1}, Key: key(name), DispatchID: w.id(),
		Record: ledger.Mutation{
			Intent: ledger.Intent{Connector: "bank", Operation: "transfer", Target: "Transfer " + name, Account: "acme"},
			Payload: ledger.Payload{
				PayloadDigest: "payload", SignificantDigest: "significant",
				Policy: ledger.Policy{
					Reconciler: true, BlockScope: ledger.BlockWorkflow, OnAbsent: ledger.AbsentFail,
					Settle: 5 * time.Minute, Confirmations: 2, Spacing: 10 * time.Second,
				},
			},
		},
	}
	if r != nil {
		q.Scope = ledger.Scope{Workflow: r.Workflow, Item: r.Item, Attempt: r.Attempt, Run: r.ID}
	}
	for _, c := range change {
		c(&q)
	}
	return q
}

func noReconciler(q *ledger.Claim) { q.Record.Policy.Reconciler = false }

func nativeKey(q *ledger.Claim) {
	p := &q.Record.Policy
	p.NativeKey, p.Resend, p.KeyFormat, p.KeyWindow = true, true, ledger.KeyUUID, 24*time.Hour
}

func payload(digest string) func(*ledger.Claim) {
	return func(q *ledger.Claim) {
		q.Record.PayloadDigest, q.Record.SignificantDigest = digest, "significant "+digest
	}
}

func clientKey(k string) func(*ledger.Claim) { return func(q *ledger.Claim) { q.ClientKey = k } }

func held(q *ledger.Claim) { q.Hold = true }

func redelivery(q *ledger.Claim) { q.Redelivery = true }

// claim claims and returns the answer. What the claim doesn't say itself is read ahead: no earlier
// version of the rule reads such a mutation in it, and no other payload covers it.
func (w *world) claim(r *ledger.Run, name string, change ...func(*ledger.Claim)) ledger.Claimed {
	w.t.Helper()
	q := w.claimOf(r, name, change...)
	a, err := w.Ahead(w.t.Context(), &q)
	w.ok(err)
	for _, rule := range a.Rules {
		q.EarlierKeys = append(q.EarlierKeys, ledger.RuleKey{Rule: rule})
	}
	if m := a.Compare(&q); m != nil {
		q.Compared = ledger.ComparedWith(m)
	}
	return w.claimBare(q)
}

// claimBare claims with nothing but what q says.
func (w *world) claimBare(q ledger.Claim) ledger.Claimed {
	w.t.Helper()
	out, err := w.Claim(w.t.Context(), q)
	w.ok(err)
	return out
}

// send claims and wants a dispatch.
func (w *world) send(r *ledger.Run, name string, change ...func(*ledger.Claim)) *ledger.Dispatch {
	w.t.Helper()
	out := w.claim(r, name, change...)
	if out.Decision != ledger.DecideDispatch {
		w.t.Fatalf("claim of %s: %q (%s: %s), want a dispatch", name, out.Decision, out.Problem, out.Detail)
	}
	return out.Dispatch
}

// end is the end of a dispatch.
func end(name string, d *ledger.Dispatch, v ledger.Verdict, change ...func(*ledger.EndDispatch)) ledger.EndDispatch {
	f := ledger.EndDispatch{Key: key(name), Dispatch: *d}
	f.Dispatch.Verdict, f.Dispatch.Reason = v, "because of a test"
	if v == ledger.VerdictApplied {
		f.Result = &ledger.Result{Status: 201, Header: ledger.Header{"Content-Type": {"text/plain"}}}
	}
	if v.Failure() {
		f.Dispatch.Class = verdict.Transient
	}
	for _, c := range change {
		c(&f)
	}
	return f
}

func class(c verdict.Class) func(*ledger.EndDispatch) {
	return func(f *ledger.EndDispatch) { f.Dispatch.Class = c }
}

func pending(f *ledger.EndDispatch) { f.Inline = true }

func tooLarge(f *ledger.EndDispatch) { f.TooLarge, f.Result = true, nil }

func passedOn(f *ledger.EndDispatch) { f.PassedOn = true }

func unauthorized(f *ledger.EndDispatch) { f.Unauthorized, f.Dispatch.Class = true, verdict.Permission }

// finish ends a dispatch of the mutation.
func (w *world) finish(name string, d *ledger.Dispatch, v ledger.Verdict, change ...func(*ledger.EndDispatch)) ledger.Moved {
	w.t.Helper()
	out, err := w.EndDispatch(w.t.Context(), end(name, d, v, change...))
	w.ok(err)
	return out
}

// see records an observation of the mutation, asked now.
func (w *world) see(name string, seen ledger.Seen, change ...func(*ledger.Observe)) ledger.Moved {
	w.t.Helper()
	out, err := w.Observe(w.t.Context(), w.observation(name, seen, change...))
	w.ok(err)
	return out
}

func (w *world) observation(name string, seen ledger.Seen, change ...func(*ledger.Observe)) ledger.Observe {
	m := w.mutation(name)
	o := ledger.Observe{
		Key: m.Key, Version: m.Version, AbsenceIsProof: true, Reached: true, NextTryAt: w.now.Wall.Add(10 * time.Second),
		Observation: ledger.Observation{At: w.now, Strategy: "probe", Seen: seen},
		Inline:      m.State == ledger.InFlight,
	}
	if seen == ledger.SeenApplied || seen == ledger.SeenDuplicate {
		o.Result = &ledger.Result{Status: 200}
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func strong(o *ledger.Observe) { o.Observation.Strong = true }

func objects(names ...string) func(*ledger.Observe) {
	return func(o *ledger.Observe) { o.Observation.Objects = names }
}

func withoutResult(o *ledger.Observe) { o.Result = nil }

// decide is a person's decision on the mutation.
func (w *world) decide(name string, action ledger.Trigger, change ...func(*ledger.Resolve)) ledger.Moved {
	w.t.Helper()
	out, err := w.Resolve(w.t.Context(), w.decision(name, action, change...))
	w.ok(err)
	return out
}

func (w *world) decision(name string, action ledger.Trigger, change ...func(*ledger.Resolve)) ledger.Resolve {
	m := w.mutation(name)
	r := ledger.Resolve{Key: m.Key, Action: action, Actor: "ada", Reason: "looked", Version: m.Version}
	for _, c := range change {
		c(&r)
	}
	return r
}

func force(r *ledger.Resolve) { r.Force = true }

func newKey(r *ledger.Resolve) { r.NewKey = true }

func none(r *ledger.Resolve) { r.NoResult = true }

func given(r *ledger.Resolve) { r.Result = &ledger.Result{Status: 200} }

func (w *world) mutation(name string) *ledger.Mutation {
	w.t.Helper()
	var m *ledger.Mutation
	w.ok(w.View(w.t.Context(), func(v ledger.View) (err error) {
		m, err = v.Mutation(key(name))
		return err
	}))
	return m
}

func (w *world) run(id string) *ledger.Run {
	w.t.Helper()
	var r *ledger.Run
	w.ok(w.View(w.t.Context(), func(v ledger.View) (err error) {
		r, err = v.Run(id)
		return err
	}))
	return r
}

func (w *world) item(name string) *ledger.Item {
	w.t.Helper()
	var i *ledger.Item
	w.ok(w.View(w.t.Context(), func(v ledger.View) (err error) {
		i, err = v.Item("w", name)
		return err
	}))
	return i
}

// is checks the mutation's state.
func (w *world) is(name string, want ledger.State) *ledger.Mutation {
	w.t.Helper()
	m := w.mutation(name)
	if m.State != want {
		w.t.Fatalf("mutation %s is %s (%s), want %s", name, m.State, m.Reason, want)
	}
	return m
}

// stands checks the run's state.
func (w *world) stands(r *ledger.Run, want ledger.RunState, c verdict.Class) *ledger.Run {
	w.t.Helper()
	got := w.run(r.ID)
	if got.State != want || got.Class != c {
		w.t.Fatalf("run is %s, class %q (%s), want %s, class %q", got.State, got.Class, got.Reason, want, c)
	}
	return got
}

// escalated checks that a person is asked, and what about; "" for not asked.
func (w *world) escalated(name, kind string) {
	w.t.Helper()
	m := w.mutation(name)
	got := ""
	if m.Escalated() {
		got = m.Escalation.Kind
	}
	if got != kind {
		w.t.Fatalf("mutation %s is escalated as %q, want %q", name, got, kind)
	}
}

func bodyOf(content []byte) ledger.Body { return ledgertest.BodyOf(content) }
