package integration

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// soakFor makes a soak of TestSoak: make soak.
var soakFor = flag.Duration("soak", 0, "how long the program is used by all kinds of clients; 0: for a few rounds of each")

const (
	// soakRounds is how many rounds all clients of a habit have together where no time is given, and
	// soakKept how much of what they used may still be there afterwards: connections
	// that are kept for a while. A habit that leaves something behind in each round
	// leaves more.
	soakRounds = 40
	soakKept   = 30
	// soakWarm is the time after which the program is measured for the first time, and
	// soakCalm the time without any client before it is measured. Connections to
	// upstreams are kept for as much as 30 s.
	soakWarm = time.Minute
	soakCalm = 31 * time.Second
	// soakTables is how often the memory table of the ledger's engine is filled before the
	// program is at its working state. The system counts of a table what was written to
	// it: one that has just begun lets the program look smaller than it is, and so does one
	// that lies where none has been, as one that follows another is cleared first. So it is
	// measured after several, with one that is nearly full, as a part of how far others came.
	soakTables = 5
	soakFull   = 0.8
	// soakRush is how many mutations a client in a rush sends in a round.
	soakRush = 20
	// soakLook is the time between two looks at the memory table.
	soakLook = 100 * time.Millisecond
	// soakPace is the time between the rounds of one client of a soak.
	soakPace = 50 * time.Millisecond
	// soakGrowth bounds the memory at the end, as a part of that after the first minute.
	soakGrowth = 1.1
)

// TestSoak lets clients of all habits use the program, a process of its own, at once,
// well-behaved ones and others, in front of upstreams that lose answers, cut them and
// reset connections. What they used up must be free again once they have left: goroutines,
// descriptors and, in a soak of some time, memory. Nothing may have taken effect twice.
//
// With -soak it takes as long as that says; else every habit has a few rounds, and no
// time is measured.
func TestSoak(t *testing.T) {
	t.Parallel()
	s := newSoak(t)
	if *soakFor == 0 {
		s.rounds()
	} else {
		s.hours(*soakFor)
	}
	s.settled()
}

// soak is a world with clients of many habits.
type soak struct {
	*world
	// h1 and h2 are upstreams that can only be read, by one protocol each.
	h1, h2 *httptest.Server
	pace   time.Duration

	mu     sync.Mutex
	random *rand.Rand
	// done counts rounds, and wrong keeps what went wrong, by habit.
	done  map[string]int
	wrong map[string][]error
	// last is the memory table as it was last seen, full how far any came.
	last memTable
	full int64
	// visits tells the clients of one part from those of another.
	visits int
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := &soak{
		world:  prepare(t, func(o *settings) { o.Dial, o.Response, o.Total = "60s", "60s", "60s" }),
		random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}, wrong: map[string][]error{},
	}
	s.output = nil // A log of hours, which nobody reads.
	s.h1, s.h2 = soakAPI(t, s.ca, false), soakAPI(t, s.ca, true)
	s.misbehave(s.chance)
	s.mustSpawn()
	return s
}

// chance draws a number below n.
func (s *soak) chance(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// rounds is the soak that any machine can do: what is left is held against what was
// there before the first client came.
func (s *soak) rounds() {
	s.t.Helper()
	before := s.count()
	s.t.Logf("before: %v", before)
	s.traffic(s.t.Context(), soakRounds, habits)
	s.traffic(s.t.Context(), 1, []habit{rush})
	var after counts
	defer func() { s.t.Logf("afterwards: %v", after) }()
	s.poll("what the clients used is free again", func() bool {
		after = s.count()
		return after.goroutines <= before.goroutines+soakKept && after.sockets <= before.sockets+soakKept && after.others <= before.others
	})
}

// hours is a soak of some time: what is left at its end is held against what was left
// after its first minute, of which the program is at its working state then. Memory is told at each
// time, also where it is held against nothing.
func (s *soak) hours(d time.Duration) {
	s.t.Helper()
	begun := time.Now()
	measure := func(when string) counts {
		c := s.calm()
		s.t.Logf("%s, after %s, with memory table %v: %v", when, time.Since(begun).Round(time.Second), s.table(), c)
		return c
	}
	idle := measure("before any client")
	s.pace = soakPace
	s.trafficFor(min(soakWarm, d/4))
	s.fill(soakTables, d/2)
	minute := measure("after the first minute, at the working state")
	s.trafficFor(d - time.Since(begun))
	rest := measure("after the last minute")
	s.fill(0, d/2)
	end := measure("at the end")
	ratio := func(before counts) float64 { return float64(end.anonymous) / float64(before.anonymous) }
	s.t.Logf("RssAnon at the end is %.2f × that after the first minute, %.2f × that before any client", ratio(minute), ratio(idle))
	for _, after := range []counts{rest, end} {
		if after.goroutines > minute.goroutines || after.sockets > minute.sockets || after.others > minute.others {
			s.t.Errorf("%v is more than %v", after, minute)
		}
	}
	if ratio(minute) > soakGrowth {
		s.t.Errorf("RssAnon is %.2f × what it was", ratio(minute))
	}
}

// fill lets all clients go on without a pause, and some in a rush, until the memory table of the ledger's
// engine has been full so many times, and is nearly full once more.
func (s *soak) fill(times int, limit time.Duration) {
	s.t.Helper()
	s.pace = 0
	defer func() { s.pace = soakPace }()
	until := time.Now().Add(limit)
	want := s.table().number + times
	for time.Now().Before(until) {
		ctx, done := context.WithDeadline(s.t.Context(), until)
		var look sync.WaitGroup
		look.Go(func() {
			defer done()
			for wait(ctx, soakLook); ctx.Err() == nil; wait(ctx, soakLook) {
				if now := s.table(); now.number >= want && s.nearlyFull(now) {
					return
				}
			}
		})
		s.traffic(ctx, 0, append(slices.Clip(habits), rush))
		done()
		look.Wait()
		// The rounds that were under way may have begun the next one.
		if now := s.table(); now.number >= want && s.nearlyFull(now) {
			return
		}
	}
	s.t.Errorf("in %s the ledger's memory table wasn't full %d times, and then nearly once more: give the soak more time", limit, times)
}

// nearlyFull reports whether a memory table is, by how far others came.
func (s *soak) nearlyFull(now memTable) bool {
	if now.number > s.last.number {
		s.full = max(s.full, s.last.written)
	}
	s.last = now
	return s.full > 0 && float64(now.written) >= soakFull*float64(s.full)
}

func (s *soak) trafficFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	s.traffic(ctx, 0, habits)
}

// calm waits a while without clients, and measures.
func (s *soak) calm() counts {
	s.t.Helper()
	s.api.Close()
	wait(s.t.Context(), soakCalm)
	return s.count()
}

// wait returns after d, or when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// traffic lets the clients of each habit have so many rounds together, or, with 0, as many as fit in
// before ctx ends. A round that began goes to its end.
func (s *soak) traffic(ctx context.Context, rounds int, some []habit) {
	s.t.Helper()
	s.visits++
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.child.gone: // Nobody is there to be visited.
			cancel()
		case <-ctx.Done():
		}
	}()
	var all sync.WaitGroup
	for _, h := range some {
		for i := range h.beside {
			v := s.visitor(h, i) //nolint:contextcheck // The test asks, whose life is longer.
			all.Go(func() {
				defer v.leave() //nolint:contextcheck // It leaves when ctx has ended.
				for v.n = 0; ctx.Err() == nil && (rounds == 0 || v.n*h.beside < rounds); v.n++ {
					s.took(h.name, h.round(v))
					wait(ctx, s.pace)
				}
			})
		}
	}
	all.Wait()
}

// took notes how a round went.
func (s *soak) took(habit string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done[habit]++
	if err != nil && len(s.wrong[habit]) < 5 {
		s.wrong[habit] = append(s.wrong[habit], err)
	}
}

// settled holds at the end that every round went as it should, that nothing took effect
// twice, and that the ledger is sound.
func (s *soak) settled() {
	s.t.Helper()
	for name, n := range s.done {
		s.t.Logf("%6d rounds: %s", n, name)
	}
	for name, all := range s.wrong {
		s.t.Errorf("%s: %v", name, errors.Join(all...))
	}
	for _, u := range s.upstreams() {
		tally := u.tally()
		if twice := tally.Twice(); len(twice) > 0 {
			s.t.Errorf("%s: took effect twice: %v", u.API.Name(), twice)
		}
		s.t.Logf("%s: %d requests", u.API.Name(), tally.Heads())
	}
	if report, err := s.api.VerifyLedger(s.t.Context(), nil); err != nil || !report.Sound {
		s.t.Errorf("the ledger: %+v, %v", report, err)
	}
	if err := s.child.end(); err != nil {
		s.t.Errorf("the program ended with %v", err)
	}
}
