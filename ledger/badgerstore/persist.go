package badgerstore

import (
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var (
	pointBeforeSync      = fault.New("badgerstore.before_sync")
	pointBeforeHighWater = fault.New("badgerstore.before_highwater")
	pointAfterHighWater  = fault.New("badgerstore.after_highwater")
	pointAfterPublish    = fault.New("badgerstore.after_publish")
)

// syncLoop makes batches durable, one after another, and wakes their callers. The
// committer writes no batch before it has the turn, so that the engine doesn't
// change its logs while one is synced.
func (s *Store) syncLoop() {
	defer close(s.drained)
	for b := range s.syncing {
		s.finish(b)
	}
}

// finish makes b durable, gives the turn back and wakes the callers. A sync that
// fails stops the store before the turn is given back: nothing later is
// acknowledged.
func (s *Store) finish(b *batch) {
	err := s.syncs.over(&aSync, func() error { return s.persist(b) })
	if err != nil {
		s.poison(err)
		err = s.Healthy()
	}
	s.turn <- struct{}{}
	b.answer(err)
}

// about names what events are about, for who watches.
func about(events []cbor.RawMessage) string {
	var whats []string
	for _, event := range events {
		var e ledger.Event
		if err := cbor.Unmarshal(event, &e); err == nil {
			whats = append(whats, e.What)
		}
	}
	slices.Sort(whats)
	return strings.Join(slices.Compact(whats), ",")
}

// persist syncs the engine's log, then the high-water file, and shows and publishes what
// the batch holds.
func (s *Store) persist(b *batch) error {
	if fault.Watched() {
		fault.Begin(fault.OpCommit, b.about)
	}
	pointBeforeSync.Pass()
	if err := s.log.sync(); err != nil {
		return err
	}
	pointBeforeHighWater.Pass()
	if err := s.water.write(b.tip); err != nil {
		return err
	}
	pointAfterHighWater.Pass()
	// The committer writes no other batch before this one has given the turn back. What was
	// written by now is durable, and is all that this snapshot sees.
	// Gate and snapshot change together, for those who look at both.
	txn := s.db.NewTransaction(false)
	var letGo func()
	s.gate.publish(b.gate, b.written, func(k *known) {
		letGo = s.newest.renew(txn, s.loans.written())
		k.forget(b.moved, b.items)
	})
	letGo()
	s.commits.Add(1)
	s.horizon.reached(b.number)
	s.unshown.add(b.shown)
	s.unshown.call()
	// Not before: one who holds the pending bodies may wait for the horizon.
	s.pending.forget(b.referred)
	pointAfterPublish.Pass()
	return nil
}
