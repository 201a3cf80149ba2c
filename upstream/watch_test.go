package upstream

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/internal/clock"
)

// watched starts a watch that may take an hour, on a fake clock; killed counts.
func watched(ctx context.Context, t *testing.T) (w *watch, fake *clock.Fake, killed *int) {
	t.Helper()
	fake, killed = clock.NewFake(time.Now()), new(int)
	w = &watch{clock: fake, lookEvery: time.Second, kill: func() { *killed++ }}
	w.start(ctx, fake.Boot(), fake.Boot()+time.Hour)
	t.Cleanup(func() { w.stop() })
	return w, fake, killed
}

func TestWatchKillsOnceAndKeepsTheFirstCause(t *testing.T) {
	for name, tc := range map[string]struct {
		do    func(*watch, *clock.Fake)
		cause ErrorClass
	}{
		"nothing has run out":             {func(*watch, *clock.Fake) {}, ""},
		"just before the total deadline":  {func(_ *watch, c *clock.Fake) { c.Advance(time.Hour - 1) }, ""},
		"at the total deadline":           {func(_ *watch, c *clock.Fake) { c.Advance(time.Hour) }, ErrorTimeout},
		"asleep past the total deadline":  {func(_ *watch, c *clock.Fake) { c.Sleep(time.Hour) }, ErrorTimeout},
		"a wall clock that jumps":         {func(_ *watch, c *clock.Fake) { c.JumpWall(48 * time.Hour) }, ""},
		"just before the head's deadline": {func(w *watch, c *clock.Fake) { w.awaitHead(time.Minute); c.Advance(time.Minute - 1) }, ""},
		"at the head's deadline":          {func(w *watch, c *clock.Fake) { w.awaitHead(time.Minute); c.Advance(time.Minute) }, ErrorTimeout},
		"the head came in time":           {func(w *watch, c *clock.Fake) { w.awaitHead(time.Minute); w.gotHead(); c.Advance(time.Minute) }, ""},
		"the head came before all was written": {func(w *watch, c *clock.Fake) {
			w.gotHead()
			w.awaitHead(time.Minute)
			c.Advance(time.Minute)
		}, ""},
		"closed before the deadline":     {func(w *watch, c *clock.Fake) { w.end(ErrorClosed); c.Advance(time.Hour) }, ErrorClosed},
		"stopped before the deadline":    {func(w *watch, c *clock.Fake) { w.stop(); c.Advance(time.Hour) }, ""},
		"closed after it was stopped":    {func(w *watch, _ *clock.Fake) { w.stop(); w.end(ErrorClosed) }, ""},
		"closed twice":                   {func(w *watch, _ *clock.Fake) { w.end(ErrorClosed); w.end(ErrorCanceled) }, ErrorClosed},
		"ended by a body that broke off": {func(w *watch, _ *clock.Fake) { w.end(ErrorBody) }, ErrorBody},
	} {
		t.Run(name, func(t *testing.T) {
			w, fake, killed := watched(context.Background(), t)
			tc.do(w, fake)
			w.look()
			w.look()
			want := 0
			if tc.cause != "" {
				want = 1
			}
			if cause := w.stop(); cause != tc.cause || *killed != want {
				t.Errorf("cause %q, killed %d times; want %q, %d", cause, *killed, tc.cause, want)
			}
		})
	}
}

func TestWatchLooksAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, fake, killed := watched(context.Background(), t)
		<-time.After(10 * time.Second)
		if *killed != 0 {
			t.Fatal("killed before its deadline")
		}
		fake.Sleep(time.Hour)
		<-time.After(time.Second + 1)
		if cause := w.stop(); cause != ErrorTimeout || *killed != 1 {
			t.Errorf("a second after waking up: cause %q, killed %d times", cause, *killed)
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w, _, killed := watched(ctx, t)
		cancel()
		synctest.Wait()
		if cause := w.stop(); cause != ErrorCanceled || *killed != 1 {
			t.Errorf("cause %q, killed %d times", cause, *killed)
		}
		after, fake, _ := watched(ctx, t)
		synctest.Wait()
		if cause := after.ready(ctx, fake.Boot()); cause != ErrorCanceled {
			t.Errorf("ready with an ended context: %q", cause)
		}
	})
}

func TestWatchIsReadyUntilItsDeadline(t *testing.T) {
	w, fake, _ := watched(context.Background(), t)
	if cause := w.ready(context.Background(), fake.Boot()); cause != "" {
		t.Errorf("not ready: %q", cause)
	}
	fake.Sleep(time.Hour)
	if cause := w.ready(context.Background(), fake.Boot()); cause != ErrorTimeout {
		t.Errorf("ready after its deadline: %q", cause)
	}
}

// Each dispatch is looked at when it may run out, and not after its end.
func TestWatchesLookByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		fake := clock.NewFake(began)
		ended := map[string]time.Duration{}
		begin := func(name string, left time.Duration) *watch {
			w := &watch{clock: fake, lookEvery: time.Minute, kill: func() { ended[name] = time.Since(began) }}
			w.start(context.Background(), fake.Boot(), fake.Boot()+left)
			return w
		}
		passes := func(d time.Duration) {
			fake.Advance(d)
			<-time.After(d)
			synctest.Wait()
		}
		long, short := begin("long", time.Hour), begin("short", 2*time.Second)
		over := begin("over", 3*time.Second)
		over.stop()
		passes(2 * time.Second)
		later := begin("later", 3*time.Second)
		passes(3 * time.Second)
		if len(ended) != 2 || ended["short"] != 2*time.Second || ended["later"] != 5*time.Second {
			t.Errorf("ended: %v", ended)
		}
		short.stop()
		later.stop()
		for range 60 {
			passes(time.Minute)
		}
		if at := ended["long"]; at < time.Hour-time.Minute || at > time.Hour+time.Minute {
			t.Errorf("the long one ended after %v", at)
		}
		long.stop()
		begin("last", time.Second)
		passes(time.Second)
		if ended["last"] == 0 {
			t.Error("one that came after a rest was not looked at")
		}
	})
}
