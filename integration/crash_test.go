package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/script"
	"keep-proxy/internal/fault"
)

// passings are those of a crash point at which the program is killed: the first, and in make proof
// some later ones, as far as a journey leads there.
func passings() []int {
	if kills() < thorough {
		return []int{1}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64}
}

// crashing gives late commits more time than a busy machine takes.
func crashing(s *settings) { s.Settle = "1s" }

// redispatching lets keep-proxy send again by itself what is not there.
func redispatching(s *settings) { s.OnAbsent = "redispatch" }

// TestKilledAtEachCrashPoint is the crash table of docs/semantics.md §9, with every
// named point in the place of a row.
func TestKilledAtEachCrashPoint(t *testing.T) {
	t.Parallel()
	passed := passedBy(t)
	for _, name := range fault.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if passed[name] == 0 {
				t.Error("a process that nobody kills never comes to this point")
			}
			for _, n := range passings() {
				// This journey would not come to the point so often: no process would be killed.
				if n > 1 && n > passed[name]+passed[name]/2 {
					return
				}
				if killed := killedAt(t, fmt.Sprintf("%s:%d", name, n)); !killed {
					if n == 1 {
						t.Error("the journey never comes to this point")
					}
					return
				}
			}
		})
	}
}

// passedBy counts how often a journey that nobody ends comes to each crash point.
func passedBy(t *testing.T) map[string]int {
	t.Helper()
	w := prepare(t, crashing, redispatching)
	file := filepath.Join(w.settings.Dir, "passed.json")
	w.environment = append(w.environment, countVar+"="+file)
	w.die()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var passed map[string]int
	if err := json.Unmarshal(text, &passed); err != nil {
		t.Fatal(err)
	}
	return passed
}

// TestKilledAgainWhileReconciling kills the process that finds out what became of
// what an earlier one had sent.
func TestKilledAgainWhileReconciling(t *testing.T) {
	t.Parallel()
	for _, points := range [][]string{
		{"proxy.claimed:1", "reconcilers.before_observe:1"},
		{"upstream.request_written:1", "reconcilers.before_observe:1", "reconcilers.before_observe:2"},
		{"upstream.before_byte_one:3", "reconcilers.resend_recorded:1"},
		{"upstream.request_written:3", "reconcilers.resend_recorded:1", "reconcilers.resend_answered:1"},
		{"upstream.head_read:2", "badgerstore.before_commit:2", "badgerstore.after_log:1"},
		{"reconcilers.resend_answered:1", "reconcilers.resend_answered:1", "reconcilers.resend_answered:1"},
	} {
		t.Run(strings.Join(points, ", "), func(t *testing.T) {
			t.Parallel()
			if deaths := died(t, points...); deaths != len(points) {
				t.Errorf("killed %d times, want %d", deaths, len(points))
			}
		})
	}
}

// killedAt makes a journey whose first process is armed at a crash point, and
// reports whether it died there.
func killedAt(t *testing.T, point string) (killed bool) {
	t.Helper()
	t.Run(point, func(t *testing.T) { killed = died(t, point) > 0 })
	return killed
}

// died makes a journey through processes of which the first ones are armed, one after
// the other, and counts those that died.
func died(t *testing.T, points ...string) (deaths int) {
	t.Helper()
	return prepare(t, crashing, redispatching).die(points...)
}

// die makes the journey of died in a world that is prepared.
func (w *world) die(points ...string) (deaths int) {
	w.t.Helper()
	w.lay()
	live := func() {
		for {
			armed := ""
			if deaths < len(points) {
				armed = points[deaths]
			}
			w.quiet()
			err := w.spawn(armed)
			if err == nil {
				return
			}
			if !errors.Is(err, errDied) || !w.child.killed() {
				w.t.Fatal(err)
			}
			deaths++
		}
	}
	live()
	for lives, done := 0, false; !done; lives++ {
		if lives > 10 {
			w.t.Fatal("the journey doesn't come to its end")
		}
		done = w.travel()
		err := errors.Join(w.settle(), w.check())
		if err == nil {
			continue
		}
		w.mustHaveDied(err)
		deaths, done = deaths+1, false
		w.checkTwice()
		live()
	}
	w.checkJourney()
	for {
		err := w.child.end()
		if err == nil {
			return deaths
		}
		if deaths == len(points) || !w.child.killed() {
			w.t.Fatalf("the program ended with %v", err)
		}
		// It came to the point when it stopped in order, after the journey.
		deaths++
		live()
		w.checkJourney()
	}
}

// checkJourney holds that everything happened once.
func (w *world) checkJourney() {
	w.t.Helper()
	for _, s := range w.journey() {
		effects := 0
		for _, u := range w.upstreams() {
			effects += u.tally().Effects(s.identity)
		}
		if effects != 1 {
			w.t.Errorf("%s took effect %d times", s.identity, effects)
		}
	}
	report, err := w.api.VerifyLedger(w.t.Context(), nil)
	if err != nil || !report.Sound {
		w.t.Errorf("the ledger: %+v, %v", report, err)
	}
}

// What is lost after its success was known took effect, and a person who can look gives it a
// result: the next run has that, and nothing goes out again.
func TestAResultThatWasLostIsGivenByAPerson(t *testing.T) {
	t.Parallel()
	w := prepare(t, crashing)
	w.hooks.armFault(script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Slow, For: script.Duration(200 * time.Millisecond)}}})
	if err := w.spawn("proxy.committed_recorded:1"); err != nil {
		t.Fatal(err)
	}
	deliver := func() reply {
		return w.again("a").try(t.Context(), http.MethodPost, w.hooks.URL()+"/hook/bounded/M", "hello")
	}
	if a := deliver(); a.err == nil {
		t.Fatalf("the script got %v", a)
	}
	w.mustHaveDied(nil)
	w.quiet()
	w.mustSpawn()
	if err := errors.Join(w.settle(), w.check()); err != nil {
		t.Fatal(err)
	}
	if a := deliver(); a.status != http.StatusOK || a.header.Get("Keep-Replayed") != "true" {
		t.Errorf("the next run got %v", a)
	}
	w.hooks.want("hook:bounded/M", 1, 1)
	if err := w.child.end(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}
