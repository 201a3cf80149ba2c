package integration

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

// situation brings one mutation, of an item of this name in a workflow of its own,
// into a state.
type situation struct {
	name  string
	bring func(w *world, item string) *wire.Mutation
	// send asks for the mutation once more, in a new run.
	send func(s *scriptRun, item string) reply
	// open are the actions that a person may take.
	open []string
}

// inWorkflow puts a run into a workflow of its item's name, so that items don't stop
// each other.
func inWorkflow(item string) func(*wire.OpenRun) {
	return func(o *wire.OpenRun) { o.Workflow, o.Takeover = item, true }
}

func hook(s *scriptRun, item string) reply   { return s.deliver("plain/" + item) }
func probed(s *scriptRun, item string) reply { return s.transfer(s.w.probed, item) }
func keyed(s *scriptRun, item string) reply  { return s.transfer(s.w.keyed, item) }

func situations() []situation {
	lose := func(fault string) func(*world, string) *wire.Mutation {
		return func(w *world, item string) *wire.Mutation {
			w.hooks.arm(fault)
			hook(w.open(item, inWorkflow(item)), item)
			return w.mutation(item)
		}
	}
	ask := func(fault string) func(*world, string) *wire.Mutation {
		return func(w *world, item string) *wire.Mutation {
			w.probed.arm(fault)
			probed(w.open(item, inWorkflow(item)), item)
			return w.mutation(item)
		}
	}
	return []situation{
		{"needs_reconcile", ask("close"), probed, []string{"check_again", "happened", "did_not_happen", "skip"}},
		{"indeterminate", lose("commit-close"), hook, []string{"happened", "did_not_happen", "skip"}},
		// Without a native key there is none that could be renewed.
		{"failed", ask("400"), probed, []string{"skip"}},
		{"failed, with a native key", func(w *world, item string) *wire.Mutation {
			w.keyed.arm("400")
			keyed(w.open(item, inWorkflow(item)), item)
			return w.mutation(item)
		}, keyed, []string{"new_key", "skip"}},
		{"applied", ask("answer"), probed, nil},
		{"applied, no result", lose("commit-cut"), hook, []string{"happened", "acknowledge"}},
		{"applied, disputed", func(w *world, item string) *wire.Mutation {
			probed(w.open(item, inWorkflow(item)), item)
			w.open(item, inWorkflow(item)).do(http.MethodPost, w.probed.URL()+"/transfers", orderOf(map[string]any{"reference": item, "amount": 1}))
			return w.mutation(item)
		}, probed, []string{"accept_payload", "acknowledge"}},
		{"skipped", func(w *world, item string) *wire.Mutation {
			return w.resolve(lose("commit-close")(w, item), wire.Resolve{Action: wire.ActionSkip})
		}, hook, nil},
	}
}

// decision fills in what an action needs besides a reason.
func decision(action string) wire.Resolve {
	r := wire.Resolve{Action: action}
	switch action {
	case wire.ActionDidNotHappen:
		r.Force = true
	case wire.ActionHappened:
		r.Result = &wire.Result{Status: http.StatusCreated, Headers: wire.Header{"Content-Type": {"text/plain"}}, Body: wire.Text("told by ann")}
	}
	return r
}

func TestAPersonsAnswerInEachState(t *testing.T) {
	t.Parallel()
	// The runner must not move a record while a person looks at it.
	w := newWorld(t, func(s *settings) { s.Settle, s.Base, s.Cap = "1h", "1h", "1h" })
	for _, s := range situations() {
		bring := func(name string) (string, *wire.Mutation) {
			item := strings.Map(letters, s.name+" "+name)
			m := s.bring(w, item)
			if want, _, _ := strings.Cut(s.name, ","); m.State != want {
				t.Fatalf("%s: the mutation is %s", s.name, m.State)
			}
			if got := names(m.Actions); !slices.Equal(got, s.open) {
				t.Errorf("%s: the API offers %v, want %v", s.name, got, s.open)
			}
			return item, m
		}
		// What is refused changes nothing, so that one mutation does for all of it.
		item, m := bring("refused")
		for _, action := range wire.ActionNames() {
			if !slices.Contains(s.open, action) {
				w.checkRefused(s, item, m, decision(action))
			}
		}
		for _, action := range s.open {
			item, m := bring(action)
			w.checkTaken(s, item, m, decision(action))
		}
	}
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return '-'
}

func names(actions []wire.Action) []string {
	var out []string
	for _, a := range actions {
		out = append(out, a.Action)
	}
	return out
}

// checkRefused holds that a decision which the state doesn't allow changes nothing.
func (w *world) checkRefused(s situation, item string, m *wire.Mutation, r wire.Resolve) {
	w.t.Helper()
	_, err := w.tryResolve(m, r)
	p := wantProblem(w.t, err, "not-allowed", http.StatusConflict)
	if !slices.Equal(names(p.Actions), s.open) {
		w.t.Errorf("%s of %s: the refusal names %v, want %v", r.Action, s.name, names(p.Actions), s.open)
	}
	if after := w.mutation(item); after.Version != m.Version || after.State != m.State {
		w.t.Errorf("%s of %s changed it from version %d to %d, %s", r.Action, s.name, m.Version, after.Version, after.State)
	}
}

// checkTaken holds what a decision leads to, and that it needs the version that is
// decided on.
func (w *world) checkTaken(s situation, item string, m *wire.Mutation, r wire.Resolve) {
	w.t.Helper()
	stale := *m
	stale.Version--
	_, err := w.tryResolve(&stale, r)
	wantProblem(w.t, err, "version", http.StatusConflict)
	after := w.resolve(m, r)
	want := map[string]string{
		"check_again": "needs_reconcile", "did_not_happen": "failed", "new_key": "failed", "happened": "applied",
		"skip": "skipped", "accept_payload": "applied", "acknowledge": "applied",
	}[r.Action]
	if after.State != want || after.Version <= m.Version {
		w.t.Errorf("%s of %s: %s at version %d after %d, want %s", r.Action, s.name, after.State, after.Version, m.Version, want)
	}
	if r.Action == wire.ActionNewKey && after.Generation != m.Generation+1 {
		w.t.Errorf("new_key of %s left generation %d", s.name, after.Generation)
	}
	last := after.Events[len(after.Events)-1]
	if last.Actor != "person:ann" && !strings.Contains(last.Actor, "ann") || last.Why != "looked it up" {
		w.t.Errorf("%s of %s left the event %+v", r.Action, s.name, last)
	}
	w.checkNext(s, item, after, r)
}

// checkNext holds what the next run gets after a decision, and what it sends.
func (w *world) checkNext(s situation, item string, m *wire.Mutation, r wire.Resolve) {
	w.t.Helper()
	before := w.sends(item)
	run, err := w.tryOpen(item, inWorkflow(item))
	switch {
	case m.State == "needs_reconcile":
		wantProblem(w.t, err, "blocked", http.StatusLocked)
	case r.Action == wire.ActionAcknowledge && s.name == "applied, disputed":
		wantProblem(w.t, err, "item-attention", http.StatusConflict)
	case err != nil:
		w.t.Errorf("%s of %s: the next run: %v", r.Action, s.name, err)
	case m.State == "failed":
		s.send(run, item).wantApplied(map[bool]int{true: 200, false: 201}[s.name == "indeterminate"])
		before++
	case m.State == "skipped":
		s.send(run, item).wantRefusal("skipped", http.StatusForbidden, "without mutation")
	case r.Result != nil:
		if a := s.send(run, item); a.status != http.StatusCreated || a.body != "told by ann" || a.header.Get("Keep-Replayed") != "true" {
			w.t.Errorf("%s of %s: the next run got %v", r.Action, s.name, a)
		}
	case s.name == "applied, no result":
		s.send(run, item).wantRefusal("no-result", 424, "answer is not known")
	default:
		if a := s.send(run, item); a.header.Get("Keep-Replayed") != "true" {
			w.t.Errorf("%s of %s: the next run got %v", r.Action, s.name, a)
		}
	}
	if got := w.sends(item); got != before {
		w.t.Errorf("%s of %s: sent %d times, want %d", r.Action, s.name, got, before)
	}
}

// sends counts what reached the upstreams of an item's mutation.
func (w *world) sends(item string) int {
	w.t.Helper()
	return w.hooks.tally().Sends("hook:plain/"+item) + w.probed.tally().Sends("transfer:"+item) + w.keyed.tally().Sends("transfer:"+item)
}

func TestDidNotHappenNeedsForceBeforeSettleIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("close")
	hook(w.open("a"), "a").wantRefusal("unknown-outcome", 424, "a person must decide")
	m := w.mutation("a")
	_, err := w.tryResolve(m, wire.Resolve{Action: wire.ActionDidNotHappen})
	p := wantProblem(t, err, "not-allowed", http.StatusConflict)
	if !strings.Contains(p.Detail, "force") {
		t.Errorf("the refusal says %q", p.Detail)
	}
	w.resolve(m, wire.Resolve{Action: wire.ActionDidNotHappen, Force: true})
	hook(w.open("a"), "a").wantApplied(http.StatusOK)
	w.hooks.want("hook:plain/a", 1, 2)
}

// Two people decide the same at once, differently: one decision counts, and what follows
// from the other is not sent.
func TestOfTwoDecisionsOneCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("commit-close")
	hook(w.open("a"), "a").wantRefusal("unknown-outcome", 424, "a person must decide")
	m := w.mutation("a")
	decisions := []wire.Resolve{{Action: wire.ActionHappened, NoResult: true}, {Action: wire.ActionSkip}}
	errs := make([]error, len(decisions))
	var both sync.WaitGroup
	for i, d := range decisions {
		both.Go(func() { _, errs[i] = w.tryResolve(m, d) })
	}
	both.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("the decisions ended with %v and %v; want one to count", errs[0], errs[1])
	}
	want := "applied"
	late := errs[1]
	if errs[0] != nil {
		want, late = "skipped", errs[0]
	}
	if p := wantProblem(t, late, "version", http.StatusConflict); !strings.Contains(p.Detail, "read it again") {
		t.Errorf("the refusal says %q", p.Detail)
	}
	after := w.mutation("a")
	decided := 0
	for _, e := range after.Events {
		if e.Why == "looked it up" {
			decided++
		}
	}
	if after.State != want || decided != 1 {
		t.Errorf("it is %s with %d decisions in its history, want %s with one", after.State, decided, want)
	}
	_, err := w.tryResolve(after, decisions[1])
	wantProblem(t, err, "not-allowed", http.StatusConflict)
	w.hooks.want("hook:plain/a", 1, 1)
}

func TestAnEscalationSaysEverythingThatAPersonNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("commit-close")
	run := w.open("a")
	hook(run, "invoice-7").wantRefusal("unknown-outcome", 424, "keep-proxy resolve")
	run.wantState("paused:reconciliation")
	list, err := w.api.Escalations(t.Context(), client.Filter{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	e := list.Items[0]
	for name, c := range map[string]struct {
		got  string
		want string
	}{
		"id":             {e.ID, ""},
		"mutation":       {e.Mutation, w.mutation("a").ID},
		"kind":           {e.Kind, "indeterminate"},
		"connector":      {e.Connector, "hooks"},
		"operation":      {e.Operation, "plain.send"},
		"target":         {e.Target, "Deliver invoice-7"},
		"attempted":      {e.Attempted, "invoice-7"},
		"why_unknown":    {e.WhyUnknown, "bytes"},
		"probed":         {e.Probed, ""},
		"cannot_verify":  {e.CannotVerify, "a hook has no read"},
		"manual_check":   {e.ManualCheck, "The receiver's log: did invoice-7 arrive?"},
		"item":           {e.Item, "a"},
		"workflow":       {e.Workflow, "books"},
		"run":            {e.Run, run.id},
		"resume_hint":    {e.ResumeHint, "make books"},
		"evidence":       {e.Evidence[0].ErrorClass, ""},
		"blocks.scope":   {e.Blocks.Scope, "workflow"},
		"blocks.name":    {e.Blocks.Name, "books"},
		"first action":   {e.Actions[0].Action, "happened"},
		"the second one": {e.Actions[1].Consequence, "sends it again"},
	} {
		if c.got == "" || !strings.Contains(c.got, c.want) {
			t.Errorf("%s is %q, want something with %q", name, c.got, c.want)
		}
	}
	if e.OpenedAt.IsZero() || e.Version == 0 || e.CanVerify || e.Evidence[0].BytesWritten == 0 || e.Evidence[0].StartedAt.IsZero() || e.Evidence[0].EndedAt.IsZero() {
		t.Errorf("escalation: %+v", e)
	}
	w.hooks.want("hook:plain/invoice-7", 1, 1)
}

func TestEscalateInsteadOfBelievingAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.OnAbsent = "escalate" })
	w.probed.arm("close")
	probed(w.open("a"), "a").wantRefusal("unknown-outcome", 424, "goes on asking")
	m := w.awaitState("a", "indeterminate")
	if m.Escalation == nil || !slices.Contains(names(m.Actions), wire.ActionCheckAgain) {
		t.Fatalf("escalation %+v, actions %v", m.Escalation, names(m.Actions))
	}
	if again := w.resolve(m, wire.Resolve{Action: wire.ActionCheckAgain}); again.State != "needs_reconcile" {
		t.Errorf("checked again: %s", again.State)
	}
	m = w.awaitState("a", "indeterminate")
	// Settle is over, so it needs no force any more.
	w.resolve(m, wire.Resolve{Action: wire.ActionDidNotHappen})
	probed(w.open("a"), "a").wantApplied(http.StatusCreated)
	w.probed.want("transfer:a", 1, 2)
}
