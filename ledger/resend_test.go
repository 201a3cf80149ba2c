package ledger_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestResendOpen(t *testing.T) {
	t.Parallel()
	start := ledger.Stamp{Wall: time.Unix(1e9, 0), Boot: time.Hour, Mono: time.Hour, BootID: "b"}
	at := func(wall, boot time.Duration) ledger.Stamp {
		return ledger.Stamp{Wall: start.Wall.Add(wall), Boot: start.Boot + boot, Mono: start.Mono, BootID: "b"}
	}
	// 0.9 × 100 min is 90 min, less 5 min settle and 1 min deadline: 84 min.
	const last = 84*time.Minute - 1
	for _, c := range []struct {
		name   string
		now    ledger.Stamp
		change func(*ledger.Mutation)
		want   bool
	}{
		{"at once", start, nil, true},
		{"in the last moment", at(last, last), nil, true},
		{"a moment later by the wall", at(last+1, 0), nil, false},
		{"a moment later by the boot clock, the wall set back", at(-time.Hour, last+1), nil, false},
		{"another boot: the wall may be that of before the machine was off", ledger.Stamp{Wall: start.Wall.Add(1), BootID: "c"}, nil, false},
		{"no boot is known", ledger.Stamp{Wall: start.Wall, Boot: start.Boot, Mono: start.Mono}, nil, false},
		{"three were made", start, func(m *ledger.Mutation) { m.ResendTries = 3 }, false},
		{"two were made", start, func(m *ledger.Mutation) { m.ResendTries = 2 }, true},
		{"one met a failure verdict", start, func(m *ledger.Mutation) { m.ResendClosed = true }, false},
		{"the rule has no resend", start, func(m *ledger.Mutation) { m.Policy.Resend = false }, false},
		{"the window isn't known", start, func(m *ledger.Mutation) { m.Policy.KeyWindow = 0 }, false},
		{"it has none, and the same once more changes nothing", start, func(m *ledger.Mutation) {
			m.Policy.KeyWindow, m.Policy.Idempotent = 0, true
		}, true},
		{"the window is shorter than settle", start, func(m *ledger.Mutation) { m.Policy.KeyWindow = 6 * time.Minute }, false},
		{"settle is longer than can be added up", start, func(m *ledger.Mutation) { m.Policy.Settle = math.MaxInt64 }, false},
		{"the wall is three hundred years on", at(math.MaxInt64, 0), nil, false},
		{"age counts from the generation's first dispatch", at(last+1, 0), func(m *ledger.Mutation) {
			m.Dispatches = append(m.Dispatches, ledger.Dispatch{Generation: 2, Started: at(last, 0)})
		}, false},
		{"an earlier generation doesn't count", at(last+1, 0), func(m *ledger.Mutation) {
			m.Dispatches = append([]ledger.Dispatch{{Generation: 1, Started: start}}, ledger.Dispatch{Generation: 2, Started: at(last, 0)})
		}, true},
		{"nothing was sent in this generation", start, func(m *ledger.Mutation) { m.Dispatches[0].Generation = 1 }, false},
	} {
		m := &ledger.Mutation{
			Intent:  ledger.Intent{Generation: 2},
			Outcome: ledger.Outcome{Dispatches: []ledger.Dispatch{{Generation: 2, Started: start}}},
		}
		m.Policy = ledger.Policy{Resend: true, KeyWindow: 100 * time.Minute, Settle: 5 * time.Minute}
		if c.change != nil {
			c.change(m)
		}
		if got := ledger.ResendOpen(m, c.now, time.Minute); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	m := &ledger.Mutation{
		Intent:  ledger.Intent{Generation: 1},
		Asking:  ledger.Asking{ResendTries: 3},
		Outcome: ledger.Outcome{Dispatches: []ledger.Dispatch{{Generation: 1, Started: start}}},
	}
	m.Policy = ledger.Policy{Resend: true, KeyWindow: time.Hour}
	if !ledger.WindowOpen(m, start, time.Minute) {
		t.Error("the third resend, once recorded, finds its own window shut")
	}
	m.ResendTries = 0
	m.Policy = ledger.Policy{Resend: true, KeyWindow: time.Hour}
	if ledger.ResendOpen(m, start, 0) {
		t.Error("a sending without a deadline is open")
	}
}

func TestResendIsRecordedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.pass(time.Minute)
	d := w.resend("a")
	m := w.is("a", ledger.NeedsReconcile)
	if !d.Resend || d.Owner != w.Process().ID || d.Started != w.now || m.ResendTries != 1 || !m.NextTryAt.Equal(w.now.Wall.Add(time.Minute)) {
		t.Errorf("the resend is %+v, due again at %s", d, m.NextTryAt)
	}
	w.finish("a", d, ledger.VerdictApplied)
	w.is("a", ledger.Applied)
}

func TestResendsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	for range 3 {
		w.finish("a", w.resend("a"), ledger.VerdictUncertain)
	}
	if m := w.is("a", ledger.NeedsReconcile); !m.ResendClosed || m.ResendTries != 3 {
		t.Errorf("after three: closed %v, tries %d", m.ResendClosed, m.ResendTries)
	}
	w.resendRefused("a", ledger.ErrNotAllowed, "a fourth")
}

// A resend whose process was lost has no end that could close the way.
func TestLostResendsCountToo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ledger.Claim){
		"under a vendor key": nativeKey,
		"of a state":         func(q *ledger.Claim) { q.Record.Policy.Resend, q.Record.Policy.Natural = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.unknown("a", change)
			for range 3 {
				w.pass(ledger.DefaultSettle + time.Second)
				w.resend("a")
				w.restart()
			}
			w.pass(ledger.DefaultSettle + time.Second)
			if m := w.is("a", ledger.NeedsReconcile); m.ResendTries != 3 || m.ResendClosed {
				t.Errorf("tries %d, closed %v", m.ResendTries, m.ResendClosed)
			}
			w.resendRefused("a", ledger.ErrNotAllowed, "a fourth")
		})
	}
}

func TestNothingIsResentAfterAFailedResend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.finish("a", w.resend("a"), ledger.VerdictFailed, class(verdict.Logic))
	if m := w.is("a", ledger.NeedsReconcile); !m.ResendClosed || m.ResendTries != 1 {
		t.Errorf("closed %v, tries %d", m.ResendClosed, m.ResendTries)
	}
	w.resendRefused("a", ledger.ErrNotAllowed, "one after a failure")
}

// resendRefused wants the resend to be refused with this error.
func (w *world) resendRefused(name string, want error, why string) {
	w.t.Helper()
	m := w.mutation(name)
	_, _, err := w.Resend(w.t.Context(), ledger.Resend{Key: m.Key, Version: m.Version, DispatchID: w.id(), Deadline: time.Minute})
	if !errors.Is(err, want) {
		w.t.Errorf("resend, %s: %v, want %v", why, err, want)
	}
	if after := w.mutation(name); after.Version != m.Version {
		w.t.Errorf("resend, %s: refused, but the record changed", why)
	}
}

// After a boot the wall clock may be behind that of the boot before, so that it tells no order.
func TestASettingAfterABootIsLaterWhateverTheWallClockSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sets := func(name string) func(*ledger.Claim) {
		return func(q *ledger.Claim) {
			q.Record.Policy.BlockScope = ledger.BlockMutation
			q.Record.Identity = map[string]string{"of": name}
			q.Record.Request = ledger.Request{Method: "PUT", URL: "https://bank.test/same"}
		}
	}
	w.unknown("a", sets("1"))
	w.now = ledger.Stamp{Wall: w.now.Wall.Add(-time.Hour), Mono: time.Second, Boot: time.Second, BootID: "boot-2"}
	w.restart()
	w.finish("b", w.send(w.open(returns), "b", sets("2")), ledger.VerdictApplied)
	why, err := w.LaterOfTarget(t.Context(), w.mutation("a"))
	if err != nil || !strings.Contains(why, key("b").ID()) {
		t.Errorf("%q, %v", why, err)
	}
}

// How long ago a state was set is told by the clocks of one start of the machine alone.
func TestAStateIsNotSetAgainAfterABoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", func(q *ledger.Claim) { q.Record.Policy.Resend, q.Record.Policy.Natural = true, true })
	w.pass(ledger.DefaultSettle + time.Second)
	if !ledger.NaturalOpen(w.mutation("a"), w.now, w.Process()) {
		t.Fatal("it is not open before")
	}
	w.now = ledger.Stamp{Wall: w.now.Wall, Mono: time.Second, Boot: time.Second, BootID: "boot-2"}
	w.restart()
	w.pass(ledger.DefaultSettle + time.Second)
	if ledger.NaturalOpen(w.mutation("a"), w.now, w.Process()) {
		t.Error("it is open after another start of the machine")
	}
}

// The first sending's clock was ahead, and has been put right.
func TestALaterSettingIsFoundAlthoughTheClockWasAhead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sets := func(name string) func(*ledger.Claim) {
		return func(q *ledger.Claim) {
			q.Record.Policy.BlockScope = ledger.BlockMutation
			q.Record.Identity = map[string]string{"of": name}
			q.Record.Request = ledger.Request{Method: "PUT", URL: "https://bank.test/same"}
		}
	}
	const ahead = 30 * time.Hour
	w.now.Wall = w.now.Wall.Add(ahead)
	w.unknown("a", sets("1"))
	w.now.Wall = w.now.Wall.Add(-ahead)
	w.pass(time.Minute)
	w.finish("b", w.send(w.open(returns), "b", sets("2")), ledger.VerdictApplied)
	why, err := w.LaterOfTarget(t.Context(), w.mutation("a"))
	if err != nil || !strings.Contains(why, key("b").ID()) {
		t.Errorf("%q, %v", why, err)
	}
}

// paged is a store that lists one mutation at a time, as if there were a thousand like it.
type paged struct{ ledger.Store }

func (p paged) Mutations(ctx context.Context, f ledger.Filter) (ledger.Page[*ledger.Mutation], error) {
	f.Limit = 1
	page, err := p.Store.Mutations(ctx, f)
	page.Items = slices.Repeat(page.Items, 1000)
	return page, err
}

// A later setting may stand on any page, and what can't be looked through may hold one.
func TestALaterSettingIsLookedForOnEveryPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		others     int
		same, want bool
	}{
		{"none of a few", 5, false, false},
		{"one of a few", 5, true, true},
		{"more than can be looked through", 25, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := func(place string) func(*ledger.Claim) {
				return func(q *ledger.Claim) {
					q.Record.Policy.BlockScope = ledger.BlockMutation
					q.Record.Identity = map[string]string{"of": place}
					q.Record.Request = ledger.Request{Method: "PUT", URL: "https://bank.test/" + place}
				}
			}
			w.unknown("a", set("a"))
			r := w.open(returns)
			for range c.others {
				name := "other" + w.id()
				w.finish(name, w.send(r, name, set(name)), ledger.VerdictApplied)
			}
			if c.same {
				w.finish("b", w.send(r, "b", set("a")), ledger.VerdictApplied)
			}
			why, err := ledger.New(paged{w.store}, ledger.Config{Now: func() ledger.Stamp { return w.now }}).LaterOfTarget(t.Context(), w.mutation("a"))
			if err != nil || (why != "") != c.want {
				t.Errorf("%q, %v", why, err)
			}
		})
	}
}

func TestResendIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.send(w.open(), "a", nativeKey)
	w.resendRefused("a", ledger.ErrNotAllowed, "while it is being sent")
	w.finish("a", d, ledger.VerdictUncertain)
	again := w.resend("a")
	w.resendRefused("a", ledger.ErrNotAllowed, "while a resend is being sent")
	m := w.mutation("a")
	_, _, err := w.Resend(t.Context(), ledger.Resend{Key: m.Key, Version: m.Version - 1, DispatchID: "x", Deadline: time.Minute})
	if !errors.Is(err, ledger.ErrVersion) {
		t.Errorf("a stale version: %v", err)
	}
	w.finish("a", again, ledger.VerdictCommitted)
	w.resendRefused("a", ledger.ErrNotAllowed, "of what is committed")
	_, _, err = w.Resend(t.Context(), ledger.Resend{
		Key: m.Key, Version: w.mutation("a").Version, DispatchID: d.ID, Deadline: time.Minute,
	})
	if !errors.Is(err, ledger.ErrInvalid) {
		t.Errorf("a dispatch id used twice: %v", err)
	}
}

func TestResendAfterACrashDuringOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.unknown("a", nativeKey)
	w.resend("a")
	w.restart()
	w.finish("a", w.resend("a"), ledger.VerdictApplied)
	w.is("a", ledger.Applied)
}
