package reconcilers

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/ledger"
)

func TestRunnerTriesByBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		start := time.Now()
		f.add(1, "api", 10*time.Second)
		stop := running(r)
		pass(200 * time.Second)
		stop()
		var at []time.Duration
		for _, c := range f.observed {
			at = append(at, c.Observation.At.Wall.Sub(start))
		}
		want := []time.Duration{10 * time.Second, 30 * time.Second, 70 * time.Second, 150 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("tried at %v, want %v", at, want)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Errorf("try %d at %v, want %v", i, at[i], want[i])
			}
		}
	})
}

func TestRunnerWakesForWhatBecomesDueEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		stop := running(r)
		defer stop()
		k := f.add(1, "api", 0)
		synctest.Wait()
		if n := f.tries()[k]; n != 0 {
			t.Fatalf("tried %d times before it was woken", n)
		}
		r.Kick()
		synctest.Wait()
		if n := f.tries()[k]; n != 1 {
			t.Errorf("tried %d times after Kick, want 1", n)
		}
	})
}

func TestRunnerLooksAgainWithoutBeingWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{Poll: time.Minute})
		stop := running(r)
		defer stop()
		k := f.add(1, "api", 0)
		pass(time.Minute)
		if n := f.tries()[k]; n != 1 {
			t.Errorf("tried %d times after Poll, want 1", n)
		}
	})
}

func TestRunnerBoundsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{Concurrency: 3, PerConnector: 2})
		open := make(chan struct{})
		started := make(chan ledger.Key, 16)
		f.observe = func(_ context.Context, c ledger.Observe) error {
			started <- c.Key
			<-open
			return nil
		}
		for n := range byte(4) {
			f.add(10+n, "slow", 0)
		}
		for n := range byte(2) {
			f.add(20+n, "other", 0)
		}
		stop := running(r)
		defer stop()
		if len(started) != 3 {
			t.Fatalf("%d tries run at once, want 3", len(started))
		}
		slow := 0
		for range 3 {
			if k := <-started; k[0] < 20 {
				slow++
			}
		}
		if slow != 2 {
			t.Errorf("%d tries of one connector run at once, want 2", slow)
		}
		close(open)
		synctest.Wait()
		if n := len(f.tries()); n != 6 {
			t.Errorf("%d records were tried in the end, want 6", n)
		}
	})
}

func TestOneTryAtATimePerRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", 0)
		open := make(chan struct{})
		calls := 0
		f.observe = func(context.Context, ledger.Observe) error {
			calls++
			<-open
			return nil
		}
		stop := running(r)
		defer stop()
		for range 5 {
			r.Kick()
			synctest.Wait()
		}
		if calls != 1 {
			t.Errorf("%d tries of one record at once", calls)
		}
		close(open)
		synctest.Wait()
		if n := f.tries()[k]; n != 1 {
			t.Errorf("tried %d times, want 1", n)
		}
	})
}

func TestRunnerPausesWhileTheLedgerIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		f.unhealthy = ledger.ErrUnavailable
		k := f.add(1, "api", 0)
		if c := r.RunOnce(t.Context()); !c.Paused || c.Tried != 0 {
			t.Errorf("counts %+v, want paused and nothing tried", c)
		}
		stop := running(r)
		defer stop()
		pass(time.Hour)
		if n := f.tries()[k]; n != 0 {
			t.Fatalf("tried %d times", n)
		}
		f.set(func() { f.unhealthy = nil })
		pass(30 * time.Second)
		if n := f.tries()[k]; n != 1 {
			t.Errorf("tried %d times after the ledger recovered, want 1", n)
		}
	})
}

func TestTryThatCannotBeRecordedIsPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		f.add(1, "api", 0)
		calls := 0
		f.observe = func(context.Context, ledger.Observe) error {
			calls++
			return ledger.ErrUnavailable
		}
		if c := r.RunOnce(t.Context()); c.Errors != 1 || calls != 1 {
			t.Fatalf("counts %+v after %d calls, want one error after one call", c, calls)
		}
		r.RunOnce(t.Context())
		if calls != 1 {
			t.Fatalf("the record was tried again at once")
		}
		pass(10 * time.Second)
		r.RunOnce(t.Context())
		if calls != 2 {
			t.Errorf("%d calls after Base, want 2", calls)
		}
	})
}

func TestDecisionMadeMeanwhileDropsTheTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", 0)
		f.observe = func(context.Context, ledger.Observe) error {
			f.set(func() {
				decided := *f.mutations[k]
				decided.Version, decided.State = decided.Version+1, ledger.Skipped
				f.mutations[k] = &decided
			})
			return nil
		}
		if c := r.RunOnce(t.Context()); c.Dropped != 1 || c.Tried != 1 {
			t.Errorf("counts %+v, want one dropped try", c)
		}
	})
}

func TestStopWaitsForATryAndRecordsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", 0)
		open := make(chan struct{})
		f.observe = func(ctx context.Context, _ ledger.Observe) error {
			<-open
			return ctx.Err()
		}
		stop := running(r)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("Run returned while a try was being recorded")
		default:
		}
		close(open)
		<-stopped
		if n := f.tries()[k]; n != 1 {
			t.Errorf("recorded %d tries, want 1", n)
		}
	})
}

func TestStoppedRunnerRecordsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", 0)
		ctx, cancel := context.WithCancel(t.Context())
		m, err := r.read(ctx, k)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if out := r.run(ctx, m, false); out.seen != "stopped" || out.err != nil {
			t.Errorf("got %q, %v; want stopped", out.seen, out.err)
		}
		if n := f.tries()[k]; n != 0 {
			t.Errorf("recorded %d tries, want none", n)
		}
	})
}

func TestOutcomeOfAResendIsOfferedUntilItIsDurable(t *testing.T) {
	for name, failure := range map[string]error{
		"the disk fails": ledger.ErrUnavailable, "anything else": errors.New("a command panicked"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { offered(t, failure) })
		})
	}
}

func offered(t *testing.T, failure error) {
	t.Helper()
	r, f := bubble(t, Settings{})
	k := f.add(1, "api", time.Hour)
	failures := 3
	f.finish = func(ledger.EndDispatch) error {
		if failures--; failures >= 0 {
			return failure
		}
		return nil
	}
	r.busy.claim(k)
	if _, err := r.record(t.Context(), f.mutations[k], ledger.EndDispatch{Key: k, Inline: true}, nil); !errors.Is(err, failure) {
		t.Fatalf("got %v, want %v", err, failure)
	}
	r.busy.free(k)
	if r.busy.claim(k) {
		t.Fatal("the record was free while its outcome was not recorded")
	}
	if stops := r.unrecorded.All(); len(stops) != 1 || stops[0].Key != k {
		t.Fatalf("what depends on it is stopped by %v", stops)
	}
	pass(time.Minute)
	if len(f.finished) != 1 {
		t.Fatalf("recorded %d times, want once", len(f.finished))
	}
	if f.finished[0].Inline {
		t.Error("the outcome waits for an inline try whose caller has gone")
	}
	if !r.busy.claim(k) {
		t.Error("the record is still taken after its outcome was recorded")
	}
	if stops := r.unrecorded.All(); len(stops) != 0 {
		t.Errorf("it goes on stopping others: %v", stops)
	}
}

// A record that has moved on has no use for the outcome.
func TestOutcomeThatTheLedgerRefusesIsNotOfferedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", time.Hour)
		f.finish = func(ledger.EndDispatch) error { return ledger.ErrNotAllowed }
		if _, err := r.record(t.Context(), f.mutations[k], ledger.EndDispatch{Key: k}, nil); !errors.Is(err, ledger.ErrNotAllowed) {
			t.Fatalf("got %v", err)
		}
		if !r.busy.claim(k) || len(r.unrecorded.All()) != 0 {
			t.Error("the record is taken, or stops others")
		}
	})
}

func TestCloseGivesUpOnAnOutcomeThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, f := bubble(t, Settings{})
		k := f.add(1, "api", time.Hour)
		f.finish = func(ledger.EndDispatch) error { return ledger.ErrUnavailable }
		if _, err := r.record(t.Context(), f.mutations[k], ledger.EndDispatch{Key: k}, nil); err == nil {
			t.Fatal("no error")
		}
		r.Close()
		if len(f.finished) != 0 {
			t.Errorf("recorded %d times", len(f.finished))
		}
		if len(r.unrecorded.All()) != 1 {
			t.Error("it stops nothing any more")
		}
	})
}
