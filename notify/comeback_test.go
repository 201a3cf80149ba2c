package notify

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// The history of a restored ledger ends before what was read of it, and new events have the
// numbers of those that are gone. A question that is asked again, and was answered in what is
// gone, is no repeat of the one that was told.
func TestALedgerThatWentBackIsToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager"}
		_, stop := w.notifying(d)
		lost := w.ask('l')
		for _, name := range []byte("xyz") {
			w.answer(w.ask(name))
		}
		pass(2 * poll)
		synctest.Wait()
		stop()
		d.taken = nil
		restored := newWorld(t)
		restored.path = w.path
		before := restored.ask('b')
		pass(time.Second)
		told := restored.ask('x')
		_, stop = restored.notifying(d)
		pass(2 * poll)
		after := restored.ask('a')
		pass(2 * poll)
		synctest.Wait()
		stop()
		_, stop = restored.notifying(d)
		restored.answer(told)
		pass(2 * poll)
		synctest.Wait()
		stop()
		want(t, d, before+"-1-opened-2", told+"-1-opened-2", lost+"-1-closed-2", after+"-1-opened-2", told+"-1-closed-2")
	})
}

func TestWhatTheLedgerForgotKeepsNobodyFromBeingTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager"}
		_, stop := w.notifying(d)
		known := w.ask('k')
		pass(2 * poll)
		synctest.Wait()
		stop()
		// While nobody notifies, one that was told and one that wasn't are answered and forgotten.
		w.answer(known)
		w.answer(w.ask('u'))
		for range 2 {
			pass(time.Hour + 1)
			for _, key := range []ledger.Key{{'k'}, {'u'}} {
				if _, err := w.Forget(t.Context(), []ledger.Key{key}, ledger.Retention{Keep: time.Hour, Forget: true}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := w.MutationByID(t.Context(), known); err == nil {
			t.Fatal("it isn't forgotten")
		}
		next := w.ask('n')
		_, stop = w.notifying(d)
		pass(2 * poll)
		synctest.Wait()
		stop()
		want(t, d, known+"-1-opened", known+"-1-closed", next+"-1-opened")
	})
}

// Whoever mends a destination that never took anything by giving it another name, say, is told
// what nobody was told.
func TestANewDestinationIsToldWhatIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, stop := w.notifying(&fakeDestination{name: "wrong", fails: 1000})
		open, over := w.ask('a'), w.ask('o')
		pass(2 * poll)
		stop()
		w.answer(over)
		next := w.ask('b')
		right := &fakeDestination{name: "right"}
		for range 2 {
			_, stop = w.notifying(right)
			pass(2 * poll)
			synctest.Wait()
			stop()
			want(t, right, open+"-1-opened", over+"-1-closed", next+"-1-opened")
		}
	})
}

func TestAQueueThatCannotBeWrittenHoldsNothingUp(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &fakeDestination{name: "pager"}
	n, err := New(Config{
		Ledger: w.Ledger, Path: filepath.Join(t.TempDir(), "gone", "notify.json"), Destinations: []Destination{d}, PublicURL: "https://keep.test",
		Now: time.Now, Log: w.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b := w.ask('a'), w.ask('b')
	if err := n.Last(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("that it isn't durable is told as %v", err)
	}
	want(t, d, a+"-1-opened", b+"-1-opened")
	if s := n.Status(); s[0].Tries != 0 || s[0].Error != "" || s[0].Waiting != 0 {
		t.Errorf("status %+v", s)
	}
}

// unreadable is a ledger whose history can't be read while why is set.
type unreadable struct {
	Source

	why atomic.Pointer[error]
}

func (u *unreadable) Events(ctx context.Context, mutation string, after uint64, limit int) ([]ledger.Event, error) {
	if why := u.why.Load(); why != nil {
		return nil, *why
	}
	return u.Source.Events(ctx, mutation, after, limit)
}

// An empty queue looks as if all had been told.
func TestThatNothingCanBeToldIsShownAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &fakeDestination{name: "pager"}
		var lines bytes.Buffer
		source, damaged := &unreadable{Source: w.Ledger}, errors.New("event 7 is damaged")
		source.why.Store(&damaged)
		n, err := New(Config{
			Ledger: source, Path: w.path, Destinations: []Destination{d}, PublicURL: "https://keep.test", Now: time.Now, Log: zerolog.New(&lines),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { n.Run(ctx) })
		a := w.ask('a')
		pass(5 * poll)
		if s := n.Status(); s[0].Error != "what is asked isn't queued: event 7 is damaged" {
			t.Errorf("status %+v", s)
		}
		source.why.Store(nil)
		pass(2 * poll)
		synctest.Wait()
		if s := n.Status(); s[0].Error != "" {
			t.Errorf("status %+v", s)
		}
		cancel()
		running.Wait()
		want(t, d, a+"-1-opened")
		if n := strings.Count(lines.String(), "damaged"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	})
}

// Without flags the command would look for a ledger where the default has one.
func TestTheCommandThatIsToldFindsTheLedger(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &fakeDestination{name: "pager"}
	n, err := New(Config{
		Ledger: w.Ledger, Path: w.path, Destinations: []Destination{d}, PublicURL: "https://keep.test", Flags: " --config '/my files/c.yaml'",
		Now: time.Now, Log: w.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	id := w.ask('a')
	if err := n.Last(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "keep-proxy resolve " + id + " --config '/my files/c.yaml'"; d.told[0].Data.Resolve != want {
		t.Errorf("told %q, want %q", d.told[0].Data.Resolve, want)
	}
}

// A person decides by what they see, and may see it on a terminal.
func TestWhatIsToldCanBeShown(t *testing.T) {
	t.Parallel()
	m := messageOf(&ledger.Mutation{
		Intent:   ledger.Intent{ID: "m", Target: "Pay bob\u202e001\u202c\x1b[2K", Account: "a\u0085b"},
		Question: ledger.Question{Escalation: &ledger.Escalation{Number: 1, Why: "it said\r\n\u2066no\u2069\u009b2J"}},
	}, change{number: 1})
	for got, want := range map[string]string{
		m.Data.Target: "Pay bob 001  [2K", m.Data.Account: "a b", m.Data.Why: "it said   no  2J",
	} {
		if got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	}
}

// What took an escalation's place is no part of what is told of it.
func TestEachEscalationIsToldByItself(t *testing.T) {
	t.Parallel()
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, d := newWorld(t), &fakeDestination{name: "pager"}
			step := func() {
				if pass(time.Minute); !slow {
					pass(2 * poll)
				}
			}
			_, stop := w.notifying(d)
			pass(2 * poll)
			if slow {
				stop()
			}
			start := time.Now()
			id := w.ask('a')
			step()
			m, err := w.MutationByID(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Resolve(t.Context(), ledger.Resolve{Key: m.Key, Action: ledger.OnHappened, NoResult: true, Actor: "ada", Reason: "x", Version: m.Version})
			if err != nil {
				t.Fatal(err)
			}
			for _, payload := range []string{"p", "q"} { // Its answer isn't known, and it is another's.
				step()
				record := *m
				record.PayloadDigest = payload
				if _, err := w.Claim(t.Context(), ledger.Claim{
					Scope: m.Scope, Key: m.Key, DispatchID: "again" + payload, Record: record, Compared: ledger.ComparedWith(m),
				}); err != nil {
					t.Fatal(err)
				}
			}
			if slow {
				_, stop = w.notifying(d)
			}
			step()
			pass(2 * poll)
			synctest.Wait()
			stop()
			want(t, d, id+"-1-opened", id+"-1-closed", id+"-2-opened", id+"-2-closed", id+"-3-opened")
			for i, m := range d.told {
				opened := i%2 == 0
				if at := m.Data.OpenedAt; opened && (at.Before(start) || m.Data.Why == "") || !opened && !at.IsZero() && at.Before(start) {
					t.Errorf("slow %t, %s: opened at %s because of %q", slow, m.ID, at, m.Data.Why)
				}
				if by := []string{"person:ada", "proxy"}[i/2%2]; !opened && m.Data.ClosedBy != by {
					t.Errorf("slow %t, %s: closed by %q, want %s", slow, m.ID, m.Data.ClosedBy, by)
				}
			}
			if !slow && (d.told[3].Data.Kind != ledger.EscalationNoResult || d.told[3].Data.OpenedAt.IsZero()) {
				t.Errorf("of what made way: %+v", d.told[3].Data)
			}
		})
	}
}
