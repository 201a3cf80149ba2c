package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"keep-proxy/ledger"
)

func testUpdateSeen(t *testing.T, s Subject) {
	m := SampleMutation("no UTF-8: \xff", ledger.InFlight, 0)
	update(t, s.Store, func(tx ledger.Tx) error {
		if err := tx.PutMutation(m); err != nil {
			return err
		}
		own, err := tx.Mutation(m.Key)
		if err == nil && !reflect.DeepEqual(own, m) {
			err = fmt.Errorf("the command sees %+v of its own, want %+v", own, m)
		}
		return err
	})
	if got := load(t, s.Store, m.Key); !reflect.DeepEqual(got, m) {
		t.Errorf("view\n got %+v\nwant %+v", got, m)
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		_, err := tx.Mutation(m.Key)
		return err
	})
}

func testFailedCommand(t *testing.T, s Subject) {
	refused := errors.New("refused")
	m := SampleMutation("a", ledger.NeedsReconcile, 0)
	err := s.Store.Update(t.Context(), func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "never"})
		return errors.Join(tx.PutMutation(m), tx.PutRun(SampleRun("run-1", 0)),
			tx.PutItem(SampleItem("order-1", 0)), tx.PutEvidence("c", "a", "o", m.Key), refused)
	})
	if !errors.Is(err, refused) {
		t.Fatalf("Update answers %v, want the command's own error", err)
	}
	update(t, s.Store, func(tx ledger.Tx) error {
		for what, err := range absences(tx, m.Key) {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%s: %v, want ErrNotFound", what, err)
			}
		}
		blockers, err := tx.Blockers("refunds")
		if len(blockers) != 0 {
			return fmt.Errorf("blockers %v, want none", blockers)
		}
		return err
	})
	events, err := s.Store.Events(t.Context(), "", 0, 10)
	if err != nil || len(events) != 0 {
		t.Errorf("events %v (%v), want none", events, err)
	}
	if _, _, err := standings(s.Store).Standing("run-1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Standing: %v, want ErrNotFound", err)
	}
}

// absences asks for one of each.
func absences(v ledger.View, k ledger.Key) map[string]error {
	out := map[string]error{}
	_, out["mutation"] = v.Mutation(k)
	_, out["run"] = v.Run("run-1")
	_, out["token"] = v.RunByToken(hash("token of run-1"))
	_, out["item"] = v.Item("refunds", "order-1")
	_, out["connector"] = v.Connector("x")
	_, out["evidence"] = v.EvidenceOf("c", "a", "o")
	_, out["delivery"] = v.Delivery("run-1", k)
	return out
}

func testAbsent(t *testing.T, s Subject) {
	m := SampleMutation("a", ledger.Applied, 0)
	viewOf(t, s.Store, func(v ledger.View) error {
		for what, err := range absences(v, m.Key) {
			if !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%s: %v, want ErrNotFound", what, err)
			}
		}
		return nil
	})
	gate := standings(s.Store)
	for what, err := range map[string]error{
		"standing": second(gate.Standing("x")), "token": second(gate.StandingByToken("x")),
		"empty token": second(gate.StandingByToken("")),
	} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
	l := &ledger.Ledger{Store: s.Store}
	if _, err := l.MutationByID(t.Context(), m.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("by id: %v, want ErrNotFound", err)
	}
	if _, err := s.Store.Body(t.Context(), SampleBody([]byte("x"))); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("body: %v, want ErrNotFound", err)
	}
}

func second[A, B any](_ A, _ B, err error) error { return err }

func testVersions(t *testing.T, s Subject) {
	m, r, i := SampleMutation("a", ledger.InFlight, 0), SampleRun("run-1", 0), SampleItem("order-1", 0)
	store := func(version int64) error {
		return s.Store.Update(t.Context(), func(tx ledger.Tx) error {
			m.Version, r.Version, i.Version = version, version, version
			errs := []error{tx.PutMutation(m), tx.PutRun(r), tx.PutItem(i)}
			for n := range errs {
				if (errs[n] == nil) != (errs[0] == nil) {
					t.Errorf("version %d: mutation %v, run %v, item %v", version, errs[0], errs[1], errs[2])
				}
			}
			return errors.Join(errs...)
		})
	}
	for _, c := range []struct {
		name    string
		version int64
		ok      bool
	}{
		{"a new record begins with 1", 2, false},
		{"0 is no version", 0, false},
		{"the first", 1, true},
		{"the same again", 1, false},
		{"a gap", 3, false},
		{"the next", 2, true},
	} {
		err := store(c.version)
		if c.ok && err != nil || !c.ok && !errors.Is(err, ledger.ErrVersion) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func testInvalidStates(t *testing.T, s Subject) {
	for name, fn := range map[string]func(ledger.Tx) error{
		"mutation": func(tx ledger.Tx) error { return tx.PutMutation(SampleMutation("a", "", 0)) },
		"unknown":  func(tx ledger.Tx) error { return tx.PutMutation(SampleMutation("a", "half", 0)) },
	} {
		if err := s.Store.Update(t.Context(), fn); err == nil {
			t.Errorf("%s: stored", name)
		}
	}
	if err := s.Store.Healthy(); err != nil {
		t.Errorf("refusing made the store unhealthy: %v", err)
	}
}

func testPrivateCopies(t *testing.T, s Subject) {
	m := SampleMutation("a", ledger.InFlight, 0)
	put(t, s.Store, m)
	m.Identity["charge"] = "changed"
	got := load(t, s.Store, m.Key)
	if got.Identity["charge"] != `"a"` {
		t.Fatal("the store shares the record with the one who put it")
	}
	got.Dispatches[0].ID = "changed"
	got.Request.Header["Accept"][0] = "changed"
	again := load(t, s.Store, m.Key)
	if again.Dispatches[0].ID != "d-a" || again.Request.Header["Accept"][0] != "a" {
		t.Error("two readers share a record")
	}
}

func testCancelled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.Store.Update(ctx, func(tx ledger.Tx) error { return tx.PutRun(SampleRun("run-1", 0)) })
	stored := s.Store.View(t.Context(), func(v ledger.View) error { _, err := v.Run("run-1"); return err })
	switch {
	case err == nil && stored != nil:
		t.Errorf("Update succeeded, but the run is not stored: %v", stored)
	case err != nil && !errors.Is(err, context.Canceled):
		t.Errorf("Update answers %v, want context.Canceled", err)
	case err != nil && !errors.Is(stored, ledger.ErrNotFound):
		t.Errorf("cancelled, but the run is stored: %v", stored)
	}
}

func testWriters(t *testing.T, s Subject) {
	const writers, each = 16, 20
	put(t, s.Store, SampleMutation("a", ledger.InFlight, 0))
	key := SampleMutation("a", ledger.InFlight, 0).Key
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				err := s.Store.Update(t.Context(), func(tx ledger.Tx) error {
					m, err := tx.Mutation(key)
					if err != nil {
						return err
					}
					m.Version++
					m.Tries++
					tx.Append(ledger.Event{Mutation: m.ID, What: "try"})
					return tx.PutMutation(m)
				})
				if err != nil {
					t.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if m := load(t, s.Store, key); m.Tries != writers*each || m.Version != writers*each+1 {
		t.Errorf("%d tries in version %d, want %d: commands overlapped", m.Tries, m.Version, writers*each)
	}
}

func testNote(t *testing.T, s Subject) {
	k := SampleMutation("a", ledger.Applied, 0).Key
	s.Store.Note(func(tx ledger.Tx) error { return tx.PutDelivery("run-1", k, ledger.Delivery{At: Epoch}) })
	s.Store.Note(func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "never"})
		return errors.New("refused")
	})
	update(t, s.Store, func(tx ledger.Tx) error {
		_, err := tx.Delivery("run-1", k)
		return err
	})
	s.Store.Note(func(tx ledger.Tx) error { return tx.PutDelivery("run-2", k, ledger.Delivery{At: Epoch}) })
	viewOf(t, s.Reopen(), func(v ledger.View) error {
		_, err := v.Delivery("run-2", k)
		return err
	})
}

func testEvidence(t *testing.T, s Subject) {
	a, b := SampleMutation("a", ledger.Applied, 0), SampleMutation("b", ledger.Applied, 0)
	tie := func(m *ledger.Mutation, object string) error {
		return s.Store.Update(t.Context(), func(tx ledger.Tx) error {
			return tx.PutEvidence("stripe", "acct_1", object, m.Key)
		})
	}
	if err := errors.Join(tie(a, "re_1"), tie(a, "re_1"), tie(b, "re_2")); err != nil {
		t.Fatal(err)
	}
	if err := tie(b, "re_1"); !errors.Is(err, ledger.ErrEvidence) {
		t.Errorf("another's object: %v, want ErrEvidence", err)
	}
	viewOf(t, s.Store, func(v ledger.View) error {
		k, err := v.EvidenceOf("stripe", "acct_1", "re_1")
		if k != a.Key {
			t.Errorf("re_1 is evidence for %s, want %s", k.ID(), a.ID)
		}
		if _, err := v.EvidenceOf("stripe", "acct_1re_1", ""); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("names run into each other: %v", err)
		}
		return err
	})
}

func testDeliveries(t *testing.T, s Subject) {
	k := SampleMutation("a", ledger.Applied, 0).Key
	want := ledger.Delivery{At: Epoch, ClientKey: hash("key")}
	update(t, s.Store, func(tx ledger.Tx) error {
		err := tx.PutDelivery("run-1", k, want)
		if keys, listed := tx.RunDeliveries("run-1"); listed != nil || len(keys) != 1 || keys[0] != k {
			t.Errorf("the command lists %v, %v", keys, listed)
		}
		return err
	})
	viewOf(t, s.Store, func(v ledger.View) error {
		one, err := v.RunDeliveries("run-1")
		two, other := v.RunDeliveries("run-2")
		if len(one) != 1 || one[0] != k || len(two) != 0 {
			t.Errorf("listed are %v, and %v of another run", one, two)
		}
		return errors.Join(err, other)
	})
	viewOf(t, s.Store, func(v ledger.View) error {
		got, err := v.Delivery("run-1", k)
		if err == nil && *got != want {
			t.Errorf("got %+v, want %+v", *got, want)
		}
		if _, err := v.Delivery("run-2", k); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("another run's: %v, want ErrNotFound", err)
		}
		return err
	})
}

func testReopen(t *testing.T, s Subject) {
	m, r, i := SampleMutation("a", ledger.NeedsReconcile, 0), SampleRun("run-1", 0), SampleItem("order-1", 0)
	update(t, s.Store, func(tx ledger.Tx) error {
		tx.Append(ledger.Event{What: "one", Mutation: m.ID})
		return errors.Join(tx.PutMutation(m), tx.PutRun(r), tx.PutItem(i))
	})
	process := s.Store.Process()
	again := s.Reopen()
	if id := again.Process().Ledger; id != process.Ledger || id == "" {
		t.Errorf("id %q, want %q and not empty", id, process.Ledger)
	}
	if again.Process().ID == process.ID {
		t.Error("the new process has the id of the old one")
	}
	viewOf(t, again, func(v ledger.View) error {
		gotM, errM := v.Mutation(m.Key)
		gotR, errR := v.Run(r.ID)
		gotI, errI := v.Item(i.Workflow, i.Item)
		for _, c := range []struct{ got, want any }{{gotM, m}, {gotR, r}, {gotI, i}} {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Errorf("got %+v\nwant %+v", c.got, c.want)
			}
		}
		return errors.Join(errM, errR, errI)
	})
	if _, blockers, err := standings(again).Standing("run-1"); err != nil || len(blockers) != 1 {
		t.Errorf("the gate after reopening: %v, %v", blockers, err)
	}
	update(t, again, func(tx ledger.Tx) error { tx.Append(ledger.Event{What: "two"}); return nil })
	events, err := again.Events(t.Context(), "", 0, 10)
	if err != nil || len(events) != 2 || events[1].Seq != events[0].Seq+1 {
		t.Errorf("events %+v, %v: the numbering broke", events, err)
	}
}

func testClosed(t *testing.T, s Subject) {
	if err := s.Store.Close(); err != nil {
		t.Fatal(err)
	}
	err := s.Store.Update(t.Context(), func(ledger.Tx) error { return nil })
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("Update: %v, want ErrUnavailable", err)
	}
	s.Store.Note(func(ledger.Tx) error { return nil })
	if err := s.Store.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}
