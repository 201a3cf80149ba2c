package ledger

import (
	"strings"
	"testing"
	"time"
)

func TestSettled(t *testing.T) {
	t.Parallel()
	stamp := func(boot string, mono time.Duration) Stamp {
		return Stamp{Mono: mono, BootID: boot, Wall: time.Unix(1e9, 0)}
	}
	process := Process{ID: "p2", Started: stamp("b2", 10*time.Minute)}
	now := stamp("b2", 20*time.Minute)
	settle := 5 * time.Minute
	for _, c := range []struct {
		name       string
		dispatches []Dispatch
		process    Process
		now        Stamp
		want       bool
	}{
		{"no dispatch at all", nil, process, now, false},
		{"ended long enough ago", []Dispatch{{Owner: "p2", Ended: stamp("b2", 15*time.Minute)}}, process, now, true},
		{"ended a moment too late", []Dispatch{{Owner: "p2", Ended: stamp("b2", 15*time.Minute+1)}}, process, now, false},
		{"ended by an earlier process of this boot, before this one started",
			[]Dispatch{{Owner: "p1", Ended: stamp("b2", time.Minute)}}, process, stamp("b2", 11*time.Minute), true},
		{"ended in another boot: counts from this process's start",
			[]Dispatch{{Owner: "p1", Ended: stamp("b1", time.Minute)}}, process, stamp("b2", 15*time.Minute), true},
		{"ended in another boot, this process is young",
			[]Dispatch{{Owner: "p1", Ended: stamp("b1", time.Minute)}}, process, stamp("b2", 15*time.Minute-1), false},
		{"its owner is lost: counts from this process's start",
			[]Dispatch{{Owner: "p1"}}, process, stamp("b2", 15*time.Minute), true},
		{"its owner is lost, this process is young", []Dispatch{{Owner: "p1"}}, process, stamp("b2", 15*time.Minute-1), false},
		{"this process is sending it", []Dispatch{{Owner: "p2"}}, process, stamp("b2", 99*time.Hour), false},
		{"this process lost track of it", []Dispatch{{Owner: "p2", Lost: true}}, process, stamp("b2", 99*time.Hour), false},
		{"one of two has not settled", []Dispatch{
			{Owner: "p2", Ended: stamp("b2", 11*time.Minute)}, {Owner: "p2", Ended: stamp("b2", 16*time.Minute)},
		}, process, now, false},
		{"a failure verdict settles like any other", []Dispatch{
			{Owner: "p2", Verdict: VerdictNotSent, Resolved: true, Ended: stamp("b2", 16*time.Minute)},
		}, process, now, false},
		{"now is of another boot than the process", []Dispatch{{Owner: "p1", Ended: stamp("b1", 0)}}, process, stamp("b3", 99*time.Hour), false},
		{"no boot id anywhere", []Dispatch{{Owner: "p2", Ended: stamp("", time.Minute)}},
			Process{ID: "p2", Started: stamp("", 0)}, stamp("", time.Hour), false},
		{"the monotonic clock went back", []Dispatch{{Owner: "p2", Ended: stamp("b2", 30*time.Minute)}}, process, now, false},
		{"the zero process owns everything", []Dispatch{{Owner: "p1"}}, Process{}, now, false},
	} {
		m := &Mutation{Outcome: Outcome{Dispatches: c.dispatches}, Payload: Payload{Policy: Policy{Settle: settle}}}
		if got := Settled(m, c.now, c.process); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDeniable(t *testing.T) {
	t.Parallel()
	started := Stamp{Mono: time.Minute, BootID: "b"}
	process := Process{ID: "p2", Started: started}
	late := Stamp{Mono: time.Hour, BootID: "b"}
	ended := Dispatch{Owner: "p2", Ended: Stamp{Mono: 2 * time.Minute, BootID: "b"}}
	for _, c := range []struct {
		name       string
		dispatches []Dispatch
		native     bool
		now        Stamp
		force      bool
		want       bool
	}{
		{"settle is over", []Dispatch{ended}, false, late, false, true},
		{"settle is not over", []Dispatch{ended}, true, started, false, false},
		{"settle is not over, by force", []Dispatch{ended}, false, started, true, true},
		{"still being sent", []Dispatch{ended, {Owner: "p2"}}, true, late, false, false},
		{"still being sent, by force", []Dispatch{{Owner: "p2"}}, false, late, true, true},
		{"its owner is gone", []Dispatch{{Owner: "p1"}}, false, late, false, true},
	} {
		m := &Mutation{Outcome: Outcome{Dispatches: c.dispatches}, Payload: Payload{Policy: Policy{NativeKey: c.native}}}
		if got := Deniable(m, c.now, process, c.force); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestUntilWhenASendingMayTakeEffectIsSaidWhereThatIsKnown(t *testing.T) {
	t.Parallel()
	stamp := func(boot string, since time.Duration) Stamp {
		return Stamp{Mono: since, BootID: boot, Wall: time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC).Add(since)}
	}
	process := Process{ID: "p2", Started: stamp("b", 90*time.Second)}
	now := stamp("b", 100*time.Second+time.Millisecond)
	for name, c := range map[string]struct {
		d    Dispatch
		want string
	}{
		"it ended":                      {Dispatch{Owner: "p2", Ended: stamp("b", 99*time.Second)}, "until 2026-01-02T03:06:39Z; before that it needs force."},
		"never too early":               {Dispatch{Owner: "p2", Ended: stamp("b", 99*time.Second+1)}, "until 2026-01-02T03:06:40Z; "},
		"its sender is gone":            {Dispatch{Owner: "p1", Lost: true}, "until 2026-01-02T03:06:30Z; "},
		"it ended before another start": {Dispatch{Owner: "p1", Ended: stamp("a", time.Hour)}, "until 2026-01-02T03:06:30Z; "},
		"it goes on":                    {Dispatch{Owner: "p2"}, "may still take effect; it needs force."},
	} {
		m := &Mutation{Outcome: Outcome{State: Indeterminate, Dispatches: []Dispatch{{Owner: "p1", Ended: stamp("b", time.Second)}, c.d}}}
		said := ""
		for _, a := range OpenActions(m, now, process) {
			if a.Action == OnDidNotHappen && a.NeedsForce {
				said = a.Consequence
			}
		}
		if !strings.HasSuffix(said, c.want) && !strings.Contains(said, c.want+"before") {
			t.Errorf("%s: %q, want %q", name, said, c.want)
		}
	}
}
