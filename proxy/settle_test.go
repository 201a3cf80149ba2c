package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// kicked counts how often the runner is woken.
type kicked struct {
	fakeInliner
	times atomic.Int32
}

// Kick implements Inliner.
func (k *kicked) Kick() { k.times.Add(1) }

// Where an unknown outcome stops its mutation alone, its own run is let in; what asks for it
// again is refused, is over, and has the runner look.
func TestAskingForWhatIsUnknownIsRefusedAndWakesTheRunner(t *testing.T) {
	t.Parallel()
	k := &kicked{}
	w := newWorld(t, lost, func(c *Config) { c.Inliner = k })
	alone := func(o *ledger.OpenRun) { o.BlockScope = ledger.BlockMutation }
	wantProblem(t, w.open("a", alone).post("/ask", payX), "unknown-outcome", 424, "")
	r, before := w.open("a", alone, takesOver), k.times.Load()
	wantProblem(t, r.post("/ask", payX), "blocked", 423, "keep-proxy is asking the API what happened")
	if got := r.state(); got.State != ledger.RunAborted || got.Class != verdict.Transient {
		t.Errorf("the run is %s, class %s", got.State, got.Class)
	}
	if n := k.times.Load() - before; n != 1 {
		t.Errorf("the runner was woken %d times", n)
	}
	w.wantSends("/ask", 1)
}

// What ends a run between the gate and the claim is what its script is told.
func TestAClaimOfARunThatEndsJustThenSaysWhy(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	var w *world
	var r *run
	w = newWorld(t, created, func(c *Config) {
		newID := c.NewID
		c.NewID = func() string {
			if armed.CompareAndSwap(true, false) {
				if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Logic, "a person ended it", "ann"); err != nil {
					t.Error(err)
				}
			}
			return newID()
		}
	})
	r = w.open("a")
	armed.Store(true)
	g := r.post("/pay", payX)
	wantProblem(t, g, "run-aborted", 424, "a person ended it")
	if !strings.Contains(g.body, `"class":"logic"`) {
		t.Errorf("it says %s", g.body)
	}
	w.noRecords("a")
	w.wantSends("/pay", 0)
}

// A refusal of the ledger that has no name here is the proxy's own fault, and sends nothing.
func TestAClaimThatIsRefusedWithoutAKnownNameIsInternal(t *testing.T) {
	t.Parallel()
	f := claimRefusal(ledger.Claimed{Decision: ledger.DecideRefused, Problem: "never-heard", Detail: "Why."})
	if f.problem != problemInternal || f.detail != "Why. Nothing was sent." {
		t.Errorf("%s: %q", f.problem, f.detail)
	}
}

// Whose attempt can't be read is sent nothing.
func TestAnUnmanagedScopeWhoseAttemptCantBeReadSendsNothing(t *testing.T) {
	t.Parallel()
	s := &viewed{}
	w := newWorld(t, created, func(c *Config) {
		s.Store, c.Ledger.Store = c.Ledger.Store, s
		c.Unmanaged = Unmanaged{"wf", "shared"}
	})
	s.fails.Store(true)
	g := send(w.newClient(nil, false), http.MethodPost, w.upstream.URL+"/pay", payX)
	s.fails.Store(false)
	wantProblem(t, g, "ledger-unavailable", 503, errNoLook.Error())
	w.noRecords("shared")
	w.wantSends("/pay", 0)
}

// itemless is a store that shows everything but items.
type itemless struct{ ledger.Store }

type itemlessView struct{ ledger.View }

// View implements ledger.Store.
func (s itemless) View(ctx context.Context, fn func(ledger.View) error) error {
	return s.Store.View(ctx, func(v ledger.View) error { return fn(itemlessView{v}) })
}

// Item implements ledger.View.
func (itemlessView) Item(string, string) (*ledger.Item, error) { return nil, errNoLook }

// Nor is it taken for an item that nobody has worked on.
func TestAnItemThatCantBeReadIsNotTakenForANewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Ledger.Store = itemless{c.Ledger.Store} })
	if attempt, err := w.proxy.currentAttempt(t.Context(), "wf", "shared"); !errors.Is(err, errNoLook) {
		t.Errorf("attempt %d, %v", attempt, err)
	}
}

// waitRecorded returns once nothing is left to be recorded.
func (w *world) waitRecorded() {
	w.t.Helper()
	for deadline := time.Now().Add(waitLimit); len(w.proxy.unrecorded.All()) > 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			w.t.Fatal("an outcome is still to be recorded")
		}
	}
}

// ambiguous is a store whose next command fails although it was committed.
type ambiguous struct {
	ledger.Store
	armed atomic.Bool
}

func (s *ambiguous) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if err := s.Store.Update(ctx, fn); err != nil || !s.armed.CompareAndSwap(true, false) {
		return err
	}
	return errTrouble
}

// An outcome that was recorded although its commit failed is not tried for ever: what depended
// on it goes on, and its answer is replayed. The run that was told that it is unknown is over.
func TestAnOutcomeThatWasRecordedAllTheSameStopsNothing(t *testing.T) {
	t.Parallel()
	s := &ambiguous{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		s.armed.Store(r.Method == http.MethodPost)
		created(rw, r)
	}, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
	r, beside := w.open("a"), w.open("b")
	wantProblem(t, r.post("/pay", payX), "unknown-outcome", 424, "could not be recorded")
	w.waitRecorded()
	wantAnswer(t, beside.get("/read"), 201, `{"id":1}`, false)
	wantProblem(t, r.get("/read"), "run-aborted", 424, "could not be recorded")
	wantAnswer(t, w.open("a", takesOver).post("/pay", payX), 201, `{"id":1}`, true)
	w.wantSends("/pay", 1)
}

// A run that retention has forgotten needs no end any more.
func TestARunThatIsForgottenCountsAsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	if !w.proxy.endTold("run-of-nobody", dispatch.NotRecorded("m-1")) {
		t.Error("it is tried again")
	}
}

// A run that the gate no longer knows is over; a gate that can't be asked, or says what isn't
// known here, lets nobody in.
func TestWhatTheGateSaysBesidesAStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says   ledger.Admission
		want   problem
		detail string
	}{
		"its credentials are gone": {ledger.Admission{Problem: "credentials"}, problemRunAborted, "no longer known, so it is over; nothing was sent."},
		"it can't be asked":        {ledger.Admission{Err: errors.New("the ledger is closed")}, problemLedgerUnavailable, "nothing was sent: the ledger is closed."},
		"another word":             {ledger.Admission{Problem: "never-heard"}, problemInternal, "nothing was sent."},
		"nothing":                  {ledger.Admission{}, problemInternal, "nothing was sent."},
	} {
		if f := overRefusal(c.says); f.problem != c.want || !strings.HasSuffix(f.detail, c.detail) {
			t.Errorf("%s: %s: %q", name, f.problem, f.detail)
		}
	}
}

// A try that ends late doesn't end the wait for a later one of the same mutation.
func TestTheEndOfAnEarlierTryIsNotThatOfALaterOne(t *testing.T) {
	t.Parallel()
	w, key := newWaits(func() {}), ledger.Key{1}
	first := w.begin(key)
	second := w.begin(key)
	first()
	first()
	if !w.trying(key) {
		t.Error("nothing is under way")
	}
	second()
	if w.trying(key) {
		t.Error("something is under way")
	}
}

// restless is a store of which a record has another payload each of the first times that a body is read.
type restless struct {
	ledger.Store
	key            ledger.Key
	times, changes atomic.Int32
}

func (s *restless) Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error) {
	if n := s.times.Add(1); n <= s.changes.Load() {
		if err := s.Update(ctx, func(tx ledger.Tx) error {
			m, err := tx.Mutation(s.key)
			if err != nil {
				return err
			}
			m.PayloadDigest = fmt.Sprint("another", n)
			m.Version++
			return tx.PutMutation(m)
		}); err != nil {
			return nil, err
		}
	}
	return s.Store.Body(ctx, b)
}

// A request that is held against a record which changes meanwhile is held against it once more,
// and then refused. Its run goes on.
func TestARecordThatChangesTwiceWhileItIsComparedRefuses(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int32]struct {
		problem string
		status  int
		state   ledger.RunState
	}{
		1: {"payload-mismatch", 422, ledger.RunPausedAttention},
		2: {"stale", 503, ledger.RunRunning},
	} {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			t.Parallel()
			s := &restless{}
			w := newWorld(t, created, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
			wantAnswer(t, w.open("a").post("/pay", `{"to":"x","amount":1}`), 201, `{"id":1}`, false)
			s.key = w.mutation("a").Key
			s.changes.Store(changes)
			r := w.open("a", takesOver)
			wantProblem(t, r.post("/pay", `{"to":"x","amount":2}`), want.problem, want.status, "")
			if n, is := s.times.Load(), r.state().State; n != 2 || is != want.state {
				t.Errorf("it was compared %d times, and the run is %s", n, is)
			}
			w.wantSends("/pay", 1)
		})
	}
}

// renaming is a store in which an item gets a mutation under one more version of the rule each of the
// first times that a rule is read.
func (w *world) renaming(changes *atomic.Int32) Pinned {
	return func(ctx context.Context, hash string) (*rules.Connector, error) {
		if n := changes.Add(-1); n >= 0 {
			if err := w.store.Update(ctx, func(tx ledger.Tx) error {
				i, err := tx.Item("wf", "a")
				if err != nil {
					return err
				}
				rule := i.Rules[0]
				rule.Hosts = fmt.Sprint(rule.Hosts, n)
				i.Rules = append(i.Rules, rule)
				i.Version++
				return tx.PutItem(i)
			}); err != nil {
				return nil, err
			}
		}
		return w.pinned(ctx, hash)
	}
}

// The same holds where the item gets mutations under other versions of the rule meanwhile.
func TestAnItemThatChangesTwiceWhileItsRulesAreReadRefuses(t *testing.T) {
	t.Parallel()
	for changes, want := range map[int32]string{1: "", 9: "stale"} {
		t.Run(fmt.Sprint(changes), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			var left atomic.Int32
			w.proxy.config.Pinned = w.renaming(&left)
			first := w.open("a")
			wantAnswer(t, first.post("/pay", payX), 201, `{"id":1}`, false)
			w.end(first)
			w.use(changed("name: pay\n", "name: transfer\n    was: [pay]\n"))
			left.Store(changes)
			r := w.open("a")
			g := r.post("/pay", payX)
			if want != "" {
				wantProblem(t, g, want, 503, "nothing was sent")
			} else {
				wantAnswer(t, g, 201, `{"id":1}`, true)
			}
			if is := r.state().State; is != ledger.RunRunning {
				t.Errorf("the run is %s", is)
			}
			w.wantSends("/pay", 1)
		})
	}
}

// A run that is refused because of a stop is over, or isn't told of the stop: else it would go
// on with a hole in what it saw.
func TestAStopOfWhichTheLedgerCantBeToldIsNone(t *testing.T) {
	t.Parallel()
	var first *run
	var armed atomic.Bool
	s := &failingUpdates{}
	s.left.Store(-1)
	w := newWorld(t, lost, func(c *Config) {
		s.Store, c.Ledger.Store = c.Ledger.Store, s
		newID := c.NewID
		c.NewID = func() string {
			if armed.CompareAndSwap(true, false) {
				if g := first.post("/pay", payX); g.problem() != "unknown-outcome" {
					t.Errorf("what was lost: %d %s, %v", g.status, g.body, g.err)
				}
				s.left.Store(1) // The claim finds the stop.
			}
			return newID()
		}
	})
	first = w.open("a")
	second := w.open("b")
	armed.Store(true)
	wantProblem(t, second.post("/pay", `{"to":"y"}`), "ledger-unavailable", 503, errTrouble.Error())
	s.left.Store(-1)
	wantProblem(t, second.get("/read"), "blocked", 423, "This run is over")
	if got := second.state(); got.State != ledger.RunAborted {
		t.Errorf("the run is %s", got.State)
	}
	w.noRecords("b")
	w.wantSends("/pay", 1)
}
