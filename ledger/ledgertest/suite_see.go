package ledgertest

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"keep-proxy/ledger"
)

// What a claim is judged by is durable, of one moment, and not older than what was answered.
func testSee(t *testing.T, s Subject) {
	m, r, i := SampleMutation("a", ledger.Applied, 0), SampleRun("run-1", 0), SampleItem("order-1", 0)
	scope := m.Scope
	see := func(want bool) {
		t.Helper()
		for range 2 { // What was seen once may be remembered.
			got, ok := s.Store.See(scope, m.Key)
			if ok != want {
				t.Errorf("seen: %t, want %t", ok, want)
			}
			if ok && (!reflect.DeepEqual(got.Mutation, m) || !reflect.DeepEqual(got.Run, r) || !reflect.DeepEqual(got.Item, i)) {
				t.Errorf("%+v, %+v, %+v", got.Mutation, got.Run, got.Item)
			}
		}
	}
	see(false)
	put(t, s.Store, m)
	see(false)
	update(t, s.Store, func(tx ledger.Tx) error { return tx.PutRun(r) })
	see(false)
	update(t, s.Store, func(tx ledger.Tx) error { return tx.PutItem(i) })
	see(true)
	change := func(fn func(tx ledger.Tx) error) {
		t.Helper()
		update(t, s.Store, fn)
		see(true)
	}
	m.Version, m.Reason = 2, "changed"
	change(func(tx ledger.Tx) error { return tx.PutMutation(m) })
	r.Version, r.Reason = 2, "changed"
	change(func(tx ledger.Tx) error { return tx.PutRun(r) })
	i.Version, i.Reason = 2, "changed"
	change(func(tx ledger.Tx) error { return tx.PutItem(i) })
	for n, c := range []struct {
		scope ledger.BlockScope
		item  string
		stops bool
	}{
		{ledger.BlockWorkflow, "other", true}, {ledger.BlockItem, i.Item, true}, {ledger.BlockItem, "other", false}, {ledger.BlockMutation, i.Item, false},
	} {
		blocker := SampleMutation(fmt.Sprint("b", n), ledger.Indeterminate, 0)
		blocker.Policy.BlockScope, blocker.Item = c.scope, c.item
		put(t, s.Store, blocker)
		see(!c.stops)
		blocker.Version, blocker.State = 2, ledger.Skipped
		put(t, s.Store, blocker)
		see(true)
	}
	if got, ok := s.Store.See(ledger.Scope{Workflow: scope.Workflow, Item: scope.Item}, m.Key); !ok || got.Run != nil {
		t.Errorf("of no run: %t, %+v", ok, got.Run)
	}
	if got, ok := s.Store.See(ledger.Scope{Workflow: scope.Workflow, Item: scope.Item, Run: "run-2"}, m.Key); ok {
		t.Errorf("of a run that nobody opened: %+v", got)
	}
	update(t, s.Store, func(tx ledger.Tx) error { return tx.DropMutation(m) })
	see(false)
	if err := s.Store.Close(); err != nil {
		t.Fatal(err)
	}
	see(false)
}

// Run, item and record are of one moment.
func testSeeAtOnce(t *testing.T, s Subject) {
	const times = 200
	m, r, i := SampleMutation("a", ledger.Applied, 0), SampleRun("run-1", 0), SampleItem("order-1", 0)
	var writer, readers sync.WaitGroup
	step := func(n int64) {
		m.Version, r.Version, i.Version = n, n, n
		update(t, s.Store, func(tx ledger.Tx) error {
			for _, err := range []error{tx.PutItem(i), tx.PutRun(r), tx.PutMutation(m)} {
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	step(1)
	scope, k := m.Scope, m.Key
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		for n := range int64(times) {
			step(n + 2)
		}
	})
	for range 3 {
		readers.Go(func() {
			for last := int64(0); ; {
				got, ok := s.Store.See(scope, k)
				switch {
				case !ok:
					t.Error("not seen")
				case got.Mutation.Version != got.Run.Version, got.Run.Version != got.Item.Version, got.Run.Version < last:
					t.Error(fmt.Sprint("versions of record, run and item: ", got.Mutation.Version, got.Run.Version, got.Item.Version, ", before: ", last))
				default:
					last = got.Run.Version
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writer.Wait()
	readers.Wait()
}

// What is to be called once a note can be seen is called then.
func testShown(t *testing.T, s Subject) {
	k := SampleMutation("a", ledger.Applied, 0).Key
	shown := make(chan bool, 1)
	s.Store.Note(func(tx ledger.Tx) error {
		tx.Shown(func() { shown <- true })
		return tx.PutDelivery("run-1", k, ledger.Delivery{At: Epoch})
	})
	update(t, s.Store, func(tx ledger.Tx) error { return tx.PutRun(SampleRun("run-1", 0)) })
	<-shown
	viewOf(t, s.Store, func(v ledger.View) error {
		_, err := v.Delivery("run-1", k)
		return err
	})
}
