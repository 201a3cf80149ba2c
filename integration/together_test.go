package integration

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"keep-proxy/internal/fakes/script"
)

// crowd is how many callers ask at once.
const crowd = 20

// askTogether sends the same request so many times at once, and gives each answer to
// the channel as it comes.
func (s *scriptRun) askTogether(n int, bank *upstream, reference string, edits ...func(*http.Request)) <-chan reply {
	answers := make(chan reply, n)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			answers <- s.try(s.w.t.Context(), http.MethodPost, bank.URL()+"/transfers", order(reference), edits...)
		})
	}
	go func() {
		all.Wait()
		close(answers)
	}()
	return answers
}

func TestTwentyCallersWithOneIdempotencyKeyGetOneAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("hang")
	run := w.open("a")
	answers := run.askTogether(crowd, w.probed, "R-1", field("Idempotency-Key", "mine"))
	w.probed.await("the transfer arrived", received("transfer:R-1", 1))
	w.probed.Release(script.GateHang)
	var first reply
	n := 0
	for a := range answers {
		if n++; n == 1 {
			first = a
		}
		if a.err != nil || a.status != http.StatusCreated || a.body != first.body || a.header.Get("Location") != first.header.Get("Location") ||
			a.header.Get("Keep-Mutation") != first.header.Get("Keep-Mutation") {
			t.Errorf("an answer differs: %v, from %v", a, first)
		}
	}
	if n != crowd {
		t.Errorf("%d answers", n)
	}
	run.wantState("running")
	w.probed.want("transfer:R-1", 1, 1)
}

func TestTwentyCallersWithoutAKeyAreOneIntentAndNineteenRepeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("hang")
	run := w.open("a")
	answers := run.askTogether(crowd, w.probed, "R-1")
	for range crowd - 1 {
		(<-answers).wantRefusal("repeated", http.StatusUnprocessableEntity, "subkey")
	}
	w.probed.Release(script.GateHang)
	(<-answers).wantApplied(http.StatusCreated)
	run.wantState("running")
	w.probed.want("transfer:R-1", 1, 1)
}

func TestAskingAgainInOneRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hook          string
		first, second []func(*http.Request)
		replayed      bool
	}{
		"is a second intent":                            {"plain/x", nil, nil, false},
		"is one with another Idempotency-Key too":       {"plain/x", key("k1"), key("k2"), false},
		"is a replay with the same Idempotency-Key":     {"plain/x", key("k1"), key("k1"), true},
		"is a replay where the rule says so":            {"again/x", nil, nil, true},
		"is a second intent if only one of them has it": {"plain/x", key("k1"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run := w.open("a")
			first := run.deliver(c.hook, c.first...).wantApplied(http.StatusOK)
			second := run.deliver(c.hook, c.second...)
			if c.replayed {
				second.wantReplay(first)
			} else {
				second.wantRefusal("repeated", http.StatusUnprocessableEntity, "second intent")
			}
			run.wantState("running")
			w.hooks.want("hook:"+c.hook, 1, 1)
		})
	}
}

func key(k string) []func(*http.Request) {
	return []func(*http.Request){field("Idempotency-Key", k)}
}

func TestACallerThatWentAwayMayAskAgain(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"while it is being sent": true, "once it has happened": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.probed.arm("hang")
			run := w.open("a")
			run.leaveByReset()
			ctx, leave := context.WithCancel(t.Context())
			gone := make(chan reply, 1)
			go func() { gone <- run.try(ctx, http.MethodPost, w.probed.URL()+"/transfers", order("R-1")) }()
			w.probed.await("the transfer arrived", received("transfer:R-1", 1))
			leave()
			if a := <-gone; a.err == nil {
				t.Errorf("the caller that left got %v", a)
			}
			if !early {
				w.probed.Release(script.GateHang)
				w.awaitState("a", "applied")
			}
			again := make(chan reply, 1)
			go func() { again <- run.try(t.Context(), http.MethodPost, w.probed.URL()+"/transfers", order("R-1")) }()
			w.probed.Release(script.GateHang)
			if a := <-again; a.status != http.StatusCreated {
				// The proxy may not have seen yet that the earlier caller is gone.
				a.wantRefusal("repeated", http.StatusUnprocessableEntity, "second intent")
				w.awaitState("a", "applied")
				if a := run.transfer(w.probed, "R-1"); a.status != http.StatusCreated {
					t.Errorf("asked again: %v", a)
				}
			}
			run.wantState("running")
			w.probed.want("transfer:R-1", 1, 1)
		})
	}
}

func TestAnotherRunJoinsWhatIsBeingSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.probed.arm("hang")
	first := w.open("a")
	answers := first.askTogether(1, w.probed, "R-1")
	w.probed.await("the transfer arrived", received("transfer:R-1", 1))
	second := w.again("a")
	first.wantState("aborted")
	joined := second.askTogether(1, w.probed, "R-1")
	w.probed.Release(script.GateHang)
	a, b := <-answers, <-joined
	if a.status != http.StatusCreated || b.status != http.StatusCreated || a.body != b.body {
		t.Errorf("the first got %v, the one that took over %v", a, b)
	}
	second.wantState("running")
	w.probed.want("transfer:R-1", 1, 1)
}

func TestARunThatJoinedSharesAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.armFault(script.Fault{Name: "held, then lost", Steps: []script.Step{{Do: script.Wait, Hold: "g"}, {Do: script.Commit}, {Do: script.Close}}})
	ask := func(s *scriptRun) <-chan reply {
		answer := make(chan reply, 1)
		go func() { answer <- s.try(t.Context(), http.MethodPost, w.hooks.URL()+"/hook/plain/x", "hello") }()
		return answer
	}
	a := ask(w.open("a"))
	w.hooks.await("the delivery arrived", received("hook:plain/x", 1))
	second := w.again("a")
	b := ask(second)
	w.hooks.Release("g")
	first, joined := <-a, <-b
	first.wantRefusal("unknown-outcome", 424, "a person must decide")
	if joined.status != http.StatusFailedDependency && joined.status != http.StatusLocked {
		t.Errorf("the run that joined got %v", joined)
	}
	if s := second.state(); s == "running" {
		t.Errorf("the run that joined is %s", s)
	}
	w.hooks.want("hook:plain/x", 1, 1)
}

func TestTwoItemsAreTwoIntents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open("a").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	b := w.open("b").transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	if a.body == b.body || a.header.Get("Keep-Mutation") == b.header.Get("Keep-Mutation") {
		t.Errorf("two items got one answer: %v and %v", a, b)
	}
	w.keyed.want("transfer:R-1", 2, 2)
}

func TestAnUnmanagedScopeReplaysWithoutARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.UnmanagedItem = "cron" })
	env, err := w.api.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptRun{w: w, client: scriptClient(t, env.Env)}
	first := s.transfer(w.probed, "R-1").wantApplied(http.StatusCreated)
	if got := first.header.Get("Keep-Scope"); got != "unmanaged" {
		t.Errorf("Keep-Scope is %q", got)
	}
	s.transfer(w.probed, "R-1").wantReplay(first)
	w.probed.arm("hang")
	answers := s.askTogether(2, w.probed, "R-2")
	w.probed.await("the transfer arrived", received("transfer:R-2", 1))
	w.probed.Release(script.GateHang)
	for a := range answers {
		if a.status != http.StatusCreated {
			t.Errorf("one of two callers got %v", a)
		}
	}
	w.probed.want("transfer:R-1", 1, 1)
	w.probed.want("transfer:R-2", 1, 1)
	w.hooks.arm("commit-close")
	s.deliver("plain/x").wantRefusal("unknown-outcome", 424, "a person must decide")
	got := s.read(w.probed).wantRefusal("blocked", http.StatusLocked, "Nothing was sent")
	if got.Mutation == nil || got.Mutation.State != "indeterminate" {
		t.Errorf("blocked by %+v", got.Mutation)
	}
}

func TestAScriptThatSpeaksHTTP2(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	tr, ok := run.client.Transport.(*http.Transport)
	if !ok {
		t.Fatal("no transport")
	}
	tr.ForceAttemptHTTP2 = true
	answers := run.askTogether(crowd, w.keyed, "R-1", field("Idempotency-Key", "mine"))
	for a := range answers {
		if a.status != http.StatusCreated {
			t.Errorf("got %v", a)
		}
	}
	w.keyed.arm("commit-close")
	run.transfer(w.keyed, "R-2").wantApplied(http.StatusCreated)
	w.keyed.want("transfer:R-1", 1, 1)
	w.keyed.want("transfer:R-2", 1, 2)
}
