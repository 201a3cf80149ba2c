package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keep-proxy/ledger"
)

// upstream is an API that keeps the conditions of the promise: it commits a
// request no later than lateCommit after it was sent, dedupes on the vendor key
// where that is asked for, and answers and shows the truth.
type upstream struct {
	native  bool
	effects int
	// remembered is when a generation's vendor key was first committed.
	remembered map[int]time.Duration
	pending    []commit
}

// commit is a request that will take effect.
type commit struct {
	dispatch   string
	generation int
	at         time.Duration
}

const lateCommit = 4 * time.Minute

// until lets the upstream work until now.
func (u *upstream) until(now time.Duration) {
	slices.SortFunc(u.pending, func(a, b commit) int { return int(a.at - b.at) })
	for len(u.pending) > 0 && u.pending[0].at <= now {
		c := u.pending[0]
		u.pending = u.pending[1:]
		first, known := u.remembered[c.generation]
		if u.native && known && c.at-first < 24*time.Hour {
			continue
		}
		u.remembered[c.generation] = c.at
		u.effects++
	}
}

func (u *upstream) commits(dispatch string) bool {
	return slices.ContainsFunc(u.pending, func(c commit) bool { return c.dispatch == dispatch })
}

// simulation drives a ledger with random commands, and an upstream for each of
// its mutations that counts for itself.
type simulation struct {
	*world
	*rapid.T
	elapsed time.Duration
	apis    map[string]*upstream
	// fate says whether a dispatch takes effect at all.
	fate map[string]bool
	// live are the dispatches that this process is sending, by mutation.
	live map[string][]*ledger.Dispatch
}

var simulated = []string{"plain", "native", "blind"}

func (s *simulation) name() string { return rapid.SampledFrom(simulated).Draw(s.T, "mutation") }

// accept fails on what no command may answer.
func (s *simulation) accept(err error) {
	switch {
	case err == nil, errors.Is(err, ledger.ErrNotAllowed), errors.Is(err, ledger.ErrNotFound):
	default:
		s.Fatalf("a command answers %v", err)
	}
}

// found returns the record, nil if there is none yet.
func (s *simulation) found(name string) *ledger.Mutation {
	var m *ledger.Mutation
	s.accept(s.View(s.t.Context(), func(v ledger.View) (err error) {
		m, err = v.Mutation(key(name))
		return err
	}))
	return m
}

func (s *simulation) policy(name string) func(*ledger.Claim) {
	return func(q *ledger.Claim) {
		q.Item = name
		q.Record.Policy.BlockScope = ledger.BlockMutation
		switch name {
		case "native":
			nativeKey(q)
		case "blind":
			noReconciler(q)
		}
	}
}

// sent draws what becomes of a sending.
func (s *simulation) sent(name string, d *ledger.Dispatch) {
	s.live[name] = append(s.live[name], d)
	if s.fate[d.ID] = rapid.Bool().Draw(s.T, "takes effect"); s.fate[d.ID] {
		delay := time.Duration(rapid.Int64Range(0, int64(lateCommit)).Draw(s.T, "after"))
		s.apis[name].pending = append(s.apis[name].pending, commit{d.ID, d.Generation, s.elapsed + delay})
	}
	s.apis[name].until(s.elapsed)
}

func (s *simulation) Claim(*rapid.T) {
	name := s.name()
	digest := rapid.SampledFrom([]string{"payload", "payload", "payload", "other"}).Draw(s.T, "payload")
	out, err := s.world.Claim(s.t.Context(), s.claimOf(nil, name, s.policy(name), payload(digest)))
	s.accept(err)
	if out.Decision == ledger.DecideDispatch {
		s.sent(name, out.Dispatch)
	}
}

// truth draws a verdict that the upstream's rules allow for the dispatch.
func (s *simulation) truth(name string, d *ledger.Dispatch) ledger.Verdict {
	verdicts := []ledger.Verdict{ledger.VerdictUncertain}
	switch {
	case !s.fate[d.ID]:
		verdicts = append(verdicts, ledger.VerdictFailed, ledger.VerdictNotSent)
	case !s.apis[name].commits(d.ID):
		verdicts = append(verdicts, ledger.VerdictApplied, ledger.VerdictCommitted)
	}
	return rapid.SampledFrom(verdicts).Draw(s.T, "verdict")
}

func (s *simulation) EndDispatch(*rapid.T) {
	name := s.name()
	if len(s.live[name]) == 0 {
		return
	}
	i := rapid.IntRange(0, len(s.live[name])-1).Draw(s.T, "which")
	d := s.live[name][i]
	f := end(name, d, s.truth(name, d))
	f.Inline = rapid.Bool().Draw(s.T, "inline try follows")
	out, err := s.world.EndDispatch(s.t.Context(), f)
	s.accept(err)
	s.live[name] = slices.Delete(s.live[name], i, i+1)
	if err == nil && f.Inline && out.Mutation.State == ledger.InFlight && rapid.Bool().Draw(s.T, "parked") {
		_, err := s.Park(s.t.Context(), key(name), out.Mutation.Current().ID, s.now.Wall, "nothing was seen")
		s.accept(err)
	}
}

func (s *simulation) Head(*rapid.T) {
	name := s.name()
	for _, d := range s.live[name] {
		if s.fate[d.ID] && !s.apis[name].commits(d.ID) {
			_, err := s.MarkCommitted(s.t.Context(), key(name), d.ID, 200)
			s.accept(err)
			return
		}
	}
}

func (s *simulation) Resend(*rapid.T) {
	m := s.found("native")
	if m == nil {
		return
	}
	_, d, err := s.world.Resend(s.t.Context(), ledger.Resend{
		Key: m.Key, Version: m.Version, DispatchID: s.id(), Deadline: time.Minute,
	})
	s.accept(err)
	if err == nil {
		s.sent("native", d)
	}
}

func (s *simulation) Observe(*rapid.T) {
	name := s.name()
	if s.found(name) == nil {
		return
	}
	seen := ledger.SeenAbsent
	if s.apis[name].effects > 0 {
		seen = ledger.SeenApplied
	}
	if rapid.IntRange(0, 3).Draw(s.T, "not answered") == 0 {
		seen = ledger.SeenRetry
	}
	_, err := s.world.Observe(s.t.Context(), s.observation(name, seen))
	s.accept(err)
}

func (s *simulation) GiveUp(*rapid.T) {
	name := s.name()
	if m := s.found(name); m != nil {
		_, err := s.Park(s.t.Context(), key(name), m.Current().ID, s.now.Wall, "nothing was seen")
		s.accept(err)
	}
}

func (s *simulation) Exhausted(*rapid.T) {
	if m := s.found(s.name()); m != nil {
		_, err := s.Exhaust(s.t.Context(), m.Key, m.Version, "no strategy is left")
		s.accept(err)
	}
}

// Person decides by what they see in the outside world; with force only if they
// know that nothing is under way either.
func (s *simulation) Person(*rapid.T) {
	name := s.name()
	if s.found(name) == nil {
		return
	}
	u := s.apis[name]
	actions := []ledger.Trigger{ledger.OnCheckAgain, ledger.OnNewKey, ledger.OnAccept, ledger.OnAcknowledge}
	change := []func(*ledger.Resolve){}
	if u.effects > 0 {
		actions = append(actions, ledger.OnHappened)
		change = append(change, rapid.SampledFrom([]func(*ledger.Resolve){given, none}).Draw(s.T, "result"))
	} else {
		actions = append(actions, ledger.OnDidNotHappen, ledger.OnDidNotHappen)
	}
	action := rapid.SampledFrom(actions).Draw(s.T, "action")
	if action != ledger.OnHappened {
		change = nil
	}
	if action == ledger.OnDidNotHappen && len(u.pending) == 0 && rapid.Bool().Draw(s.T, "force") {
		change = append(change, force)
	}
	_, err := s.Resolve(s.t.Context(), s.decision(name, action, change...))
	s.accept(err)
}

func (s *simulation) Wait(*rapid.T) {
	d := rapid.SampledFrom([]time.Duration{
		time.Second, 10 * time.Second, time.Minute, 5 * time.Minute, time.Hour, 20 * time.Hour,
	}).Draw(s.T, "for")
	s.pass(d)
	s.elapsed += d
	for _, u := range s.apis {
		u.until(s.elapsed)
	}
}

func (s *simulation) Crash(*rapid.T) {
	if rapid.Bool().Draw(s.T, "reboot") {
		s.now.BootID, s.now.Mono, s.now.Boot = "boot-"+s.id(), time.Minute, time.Minute
	}
	s.live = map[string][]*ledger.Dispatch{}
	s.restart()
}

// check holds the ledger against what the upstreams counted.
func (s *simulation) check(*rapid.T) {
	for _, name := range simulated {
		u := s.apis[name]
		if u.effects > 1 {
			s.Fatalf("%s took effect %d times", name, u.effects)
		}
		m := s.found(name)
		switch {
		case m == nil:
		case m.Committed && u.effects == 0:
			s.Fatalf("%s is %s and committed, and nothing took effect", name, m.State)
		case m.State == ledger.Failed && (u.effects > 0 || len(u.pending) > 0):
			s.Fatalf("%s is failed (%s); %d effects, under way %v", name, m.Reason, u.effects, u.pending)
		}
	}
}

// Nothing takes effect twice, and no outcome is guessed, whatever the order of
// claims, ends, crashes, observations, resends and honest decisions.
func TestSimulation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := &simulation{
			world: newWorld(t), T: rt, apis: map[string]*upstream{}, fate: map[string]bool{},
			live: map[string][]*ledger.Dispatch{},
		}
		for _, name := range simulated {
			s.apis[name] = &upstream{native: name == "native", remembered: map[int]time.Duration{}}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": s.check, "claim": s.Claim, "end": s.EndDispatch, "head": s.Head, "resend": s.Resend, "observe": s.Observe,
			"park": s.GiveUp, "exhaust": s.Exhausted, "person": s.Person, "wait": s.Wait, "crash": s.Crash,
		})
	})
}
