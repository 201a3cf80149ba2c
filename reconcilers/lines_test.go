package reconcilers

import (
	"context"
	"encoding/binary"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
)

// many puts n records of a connector into the queue, due now; first tells them from others.
func (f *fakeLedger) many(first byte, connector string, n int) {
	for i := range n {
		k := ledger.Key{first}
		binary.BigEndian.PutUint32(k[1:], uint32(i))
		f.addKey(k, connector, 0)
	}
}

// held lets tries of these connectors hang in Observe until release is closed, and sends
// the key of each try that begins.
func held(f *fakeLedger, slow ...byte) (began chan ledger.Key, release chan struct{}) {
	began, release = make(chan ledger.Key, 10_000), make(chan struct{})
	f.observe = func(_ context.Context, c ledger.Observe) error {
		began <- c.Key
		for _, first := range slow {
			if c.Key[0] == first {
				<-release
			}
		}
		return nil
	}
	return began, release
}

func TestAConnectorWithManyRecordsKeepsNoOtherWaiting(t *testing.T) {
	for _, tells := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, f := bubble(t, Settings{})
			f.tells = tells
			f.many(1, "hangs", 3*lineLimit)
			other := f.add(9, "other", time.Millisecond)
			_, release := held(f, 1)
			stop := running(r)
			pass(time.Minute)
			if n := f.tries()[other]; n == 0 {
				t.Errorf("the other connector's record was not tried while the places of the first one were taken; connectors known: %t", tells)
			}
			close(release)
			stop()
		})
	}
}

func TestConnectorsTakeTurnsForThePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{Concurrency: 4, PerConnector: 2})
		f.many(1, "one", 500)
		f.many(2, "two", 500)
		third := f.add(9, "third", time.Second)
		began := make(chan ledger.Key, 10_000)
		next := make(chan struct{})
		f.observe = func(_ context.Context, c ledger.Observe) error {
			began <- c.Key
			<-next
			return nil
		}
		stop := running(r)
		pass(time.Minute)
		if n := len(began); n != 4 {
			t.Errorf("%d tries at once, want 4", n)
		}
		for range 2 {
			next <- struct{}{}
			pass(time.Second)
		}
		seen := false
		for range len(began) {
			seen = seen || <-began == third
		}
		if !seen {
			t.Error("places that became free went to connectors that had others, twice")
		}
		close(next)
		stop()
	})
}

func TestARecordIsReadAFewTimesForEachTry(t *testing.T) {
	for _, c := range []struct {
		tells bool
		times int
	}{{false, 2}, {true, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r, f := bubble(t, Settings{Rate: 1e9})
			f.tells = c.tells
			const n = 1000
			f.many(1, "api", n)
			stop := running(r)
			pass(time.Second)
			stop()
			if tried := len(f.tries()); tried != n {
				t.Errorf("%d records were tried, want %d", tried, n)
			}
			if f.reads > c.times*n {
				t.Errorf("%d records were read for %d tries; connectors known: %t", f.reads, n, c.tells)
			}
		})
	}
}

func TestNoRecordIsStrandedByAWallClockThatWasSetBackHoweverManyThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		const n = lineLimit + 100
		f.many(1, "api", n)
		f.set(func() {
			for _, m := range f.mutations {
				m.UpdatedAt, m.NextTryAt = m.UpdatedAt.Add(24*time.Hour), m.NextTryAt.Add(25*time.Hour)
			}
		})
		stop := running(r)
		pass(time.Minute)
		stop()
		if tried := len(f.tries()); tried != n {
			t.Errorf("%d of %d records were tried after the clock was set back", tried, n)
		}
	})
}

func TestALongListingIsNotMadeAgainAtOnce(t *testing.T) {
	t.Parallel()
	var l lines
	l.put("api", ledger.Key{1})
	l.listed(time.Minute, time.Minute+time.Second)
	if got := l.wait(time.Minute + time.Second); got != listingShare*time.Second {
		t.Errorf("it may be listed again after %s", got)
	}
	if _, ok := l.pick(newBusy(1, 1)); !ok || l.wait(time.Minute+time.Second) != 0 {
		t.Error("nothing stands in line, and yet what is due may not be listed")
	}
}

func TestConnectorsTakeTurnsWhereThereAreMoreOfThemThanPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{Concurrency: 2, PerConnector: 1})
		for n, connector := range []string{"a", "b", "c", "d", "e"} {
			f.many(byte(n+1), connector, 50)
		}
		began := make(chan ledger.Key, 10_000)
		next := make(chan struct{})
		f.observe = func(_ context.Context, c ledger.Observe) error {
			began <- c.Key
			<-next
			return nil
		}
		stop := running(r)
		pass(time.Second)
		for range 18 {
			next <- struct{}{}
			pass(time.Second)
		}
		turns := map[byte]int{}
		for range len(began) {
			turns[(<-began)[0]]++
		}
		for n := range 5 {
			if got := turns[byte(n+1)]; got < 3 {
				t.Errorf("connector %d of 5 came to %d of 20 tries", n+1, got)
			}
		}
		close(next)
		stop()
	})
}
