package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// askedToWait is a failure whose answer asks to be asked again so much later.
func (w *world) askedToWait(d time.Duration) func(*ledger.EndDispatch) {
	return func(f *ledger.EndDispatch) { f.RetryAfter = w.now.Wall.Add(d) }
}

func TestTheGraceLastsAsLongAsTheAnswerAsks(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, c := range map[string]struct {
		// asked is what the failures ask to wait, the first and then the tries, each as soon as it may be.
		asked []time.Duration
		// lasts is how long after the last of them the run still goes on; 0 if it is over at once.
		lasts time.Duration
	}{
		"nothing asked":                         {[]time.Duration{0}, minute},
		"less than the grace":                   {[]time.Duration{time.Second}, minute + time.Second},
		"more than the grace":                   {[]time.Duration{5 * minute}, 6 * minute},
		"as much as leaves less than the grace": {[]time.Duration{599 * time.Second}, 10 * minute},
		"as much as leaves nothing":             {[]time.Duration{10 * minute}, 0},
		"more than there is":                    {[]time.Duration{time.Hour}, 0},
		"twice":                                 {[]time.Duration{2 * minute, 3 * minute}, 4 * minute},
		"twice, up to the bound":                {[]time.Duration{5 * minute, 4*minute + 30*time.Second}, 5 * minute},
		"twice, beyond the bound":               {[]time.Duration{5 * minute, 5 * minute}, 0},
		"nothing extends it without a word":     {[]time.Duration{2 * minute, 0}, minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			r := w.open()
			for i, wait := range c.asked {
				if i > 0 {
					w.pass(c.asked[i-1])
				}
				d := w.send(r, "a")
				if wait == 0 {
					w.finish("a", d, ledger.VerdictFailed)
				} else {
					w.finish("a", d, ledger.VerdictFailed, w.askedToWait(wait))
				}
			}
			if c.lasts == 0 {
				if r := w.stands(r, ledger.RunAborted, verdict.Transient); !strings.Contains(r.Reason, "retry_grace_max") || r.Cause != key("a").ID() {
					t.Errorf("it says %q of %s", r.Reason, r.Cause)
				}
				return
			}
			w.pass(c.lasts - 1)
			if n, err := w.ExpireRuns(t.Context()); n != 0 || err != nil {
				t.Fatalf("%d runs ended before that, %v", n, err)
			}
			w.pass(1)
			if n, err := w.ExpireRuns(t.Context()); n != 1 || err != nil {
				t.Fatalf("%d runs ended then, %v", n, err)
			}
			w.stands(r, ledger.RunAborted, verdict.Transient)
		})
	}
}

// The bound is for what answers ask. A longer grace stays as long as it is.
func TestABoundThatIsLessThanTheGrace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Ledger = ledger.New(&checkedStore{Store: w.store, w: w}, ledger.Config{
		Now: func() ledger.Stamp { return w.now }, NewID: w.id, RetryGrace: time.Minute, RetryGraceMax: 10 * time.Second,
	})
	for asked, state := range map[time.Duration]ledger.RunState{
		time.Nanosecond: ledger.RunFailing, 8 * time.Second: ledger.RunFailing, 10 * time.Second: ledger.RunAborted,
	} {
		name := asked.String()
		r := w.open(item(name))
		w.finish(name, w.send(r, name, of(name)), ledger.VerdictFailed, w.askedToWait(asked))
		if r := w.stands(r, state, verdict.Transient); state == ledger.RunFailing && !r.FailingUntil.Equal(w.now.Wall.Add(time.Minute)) {
			t.Errorf("asked to wait %v, its grace ends at %v", asked, r.FailingUntil)
		}
	}
}

func TestARunMayFailByMany(t *testing.T) {
	t.Parallel()
	// Three are sent at once: a asks for a minute, b wants another token, c is refused its connection.
	failing := func(t *testing.T, change ...func(*ledger.OpenRun)) (*world, *ledger.Run) {
		t.Helper()
		w := newWorld(t)
		r := w.open(change...)
		var forItem []func(*ledger.Claim)
		sent := map[string]*ledger.Dispatch{}
		for _, name := range []string{"a", "b", "c"} {
			if r.Many() {
				forItem = []func(*ledger.Claim){of("of-" + name)}
			}
			sent[name] = w.send(r, name, forItem...)
		}
		w.finish("a", sent["a"], ledger.VerdictFailed, w.askedToWait(time.Minute))
		w.pass(time.Second)
		w.finish("b", sent["b"], ledger.VerdictFailed, unauthorized)
		w.pass(time.Second)
		w.finish("c", sent["c"], ledger.VerdictFailed)
		w.stands(r, ledger.RunFailing, verdict.Permission)
		for name := range sent {
			w.escalated(name, "")
		}
		return w, r
	}
	t.Run("each may be tried again, and the run goes on once none is left", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		for i, name := range []string{"b", "a", "c"} {
			w.finish(name, w.send(r, name), ledger.VerdictApplied)
			if out := w.claim(r, "d"); i < 2 && (out.Problem != "run-failing" || out.RunRefused || out.Dispatch != nil) {
				t.Errorf("another mutation after %s: %q %q, run refused %v", name, out.Decision, out.Problem, out.RunRefused)
			}
		}
		w.stands(r, ledger.RunRunning, "")
		w.escalated("b", "")
	})
	t.Run("each has tries of its own", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		for range 4 {
			w.finish("a", w.send(r, "a"), ledger.VerdictFailed)
			w.finish("b", w.send(r, "b"), ledger.VerdictFailed, unauthorized)
		}
		w.stands(r, ledger.RunFailing, verdict.Permission)
		w.finish("a", w.send(r, "a"), ledger.VerdictFailed)
		w.stands(r, ledger.RunAborted, verdict.Transient)
	})
	t.Run("the first grace that ends ends it", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		w.pass(59 * time.Second) // A minute after b failed.
		if out := w.claim(r, "a"); out.Problem != "run-aborted" || !out.RunRefused {
			t.Errorf("%q, run refused %v", out.Problem, out.RunRefused)
		}
		if r := w.stands(r, ledger.RunAborted, verdict.Permission); r.Cause != key("b").ID() {
			t.Errorf("it ended by %s", r.Cause)
		}
		w.escalated("b", ledger.EscalationPermission)
	})
	t.Run("who waits is told when each may have been tried", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t)
		if out := w.claim(r, "d"); out.Wait != 59*time.Second {
			t.Errorf("after %v", out.Wait)
		}
	})
	t.Run("the items of all of them are failed", func(t *testing.T) {
		t.Parallel()
		w, r := failing(t, many)
		w.pass(59 * time.Second)
		n, err := w.ExpireRuns(t.Context())
		w.ok(err)
		for _, name := range []string{"a", "b", "c"} {
			if i := w.item("of-" + name); n != 1 || i.State != ledger.ItemFailed || i.Cause != key(name).ID() || i.ActiveRun != "" {
				t.Errorf("%d runs ended; the item is %+v", n, i)
			}
		}
		w.stands(r, ledger.RunAborted, verdict.Permission)
	})
	t.Run("beyond 64 they wait as others do", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		r := w.open()
		sent := map[string]*ledger.Dispatch{}
		for i := range 65 {
			name := fmt.Sprint("m", i)
			sent[name] = w.send(r, name)
		}
		for i := range 65 {
			name := fmt.Sprint("m", i)
			w.finish(name, sent[name], ledger.VerdictFailed)
		}
		if r := w.stands(r, ledger.RunFailing, verdict.Transient); len(r.FailingMore) != 63 {
			t.Errorf("it fails by %d more", len(r.FailingMore))
		}
		if out := w.claim(r, "m64"); out.Problem != "run-failing" {
			t.Errorf("the 65th: %q %q", out.Decision, out.Problem)
		}
		for i := range 64 {
			name := fmt.Sprint("m", i)
			w.finish(name, w.send(r, name), ledger.VerdictApplied)
		}
		w.finish("m64", w.send(r, "m64"), ledger.VerdictApplied)
		w.stands(r, ledger.RunRunning, "")
	})
}
