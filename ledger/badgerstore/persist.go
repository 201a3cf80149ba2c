package badgerstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var (
	pointBeforeHighWater = fault.New("badgerstore.before_highwater")
	pointAfterHighWater  = fault.New("badgerstore.after_highwater")
	pointAfterApply      = fault.New("badgerstore.after_apply")
	pointAfterPublish    = fault.New("badgerstore.after_publish")
)

// syncLoop makes batches durable, one after another, and wakes their callers. The
// committer hands over no batch before it has the turn: the engine never has a commit
// that isn't durable, and doesn't change its logs while one is synced.
func (s *Store) syncLoop() {
	defer close(s.drained)
	for b := range s.syncing {
		s.finish(b)
	}
}

// finish makes b durable, wakes the callers and gives the turn back. What fails stops the
// store before either: nothing later is acknowledged. Nobody waits for room in the journal but
// the next batch.
func (s *Store) finish(b *batch) {
	err := s.syncs.over(&aSync, func() error { return s.persist(b) })
	if err != nil {
		s.poison(err)
		err = s.Healthy()
	}
	b.answer(err)
	if err == nil && s.water.wantsRoom() {
		if err := s.syncs.over(&aSync, func() error { return s.emptyJournal(b.tip) }); err != nil {
			s.poison(err)
		}
	}
	s.turn <- struct{}{}
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

// persist makes the batch durable in the journal of the high-water file, then gives it to the
// engine, then shows and publishes what it holds. A batch that is too long for the journal is
// durable once the engine's log is.
func (s *Store) persist(b *batch) error {
	if fault.Watched() {
		fault.Begin(fault.OpCommit, b.about)
	}
	pointBeforeHighWater.Pass()
	kept, err := s.water.append(journaled{tip: b.tip, before: b.before, changes: b.entries.list})
	if err != nil {
		return err
	}
	if !kept {
		// A log that lost the end of what came before it would have a hole there.
		if err := s.emptyJournal(s.water.last); err != nil {
			return err
		}
		s.horizon.goesAhead(b.number)
	}
	pointAfterHighWater.Pass()
	if err := s.give(b); err != nil {
		return err
	}
	if !kept {
		if err := s.emptyJournal(b.tip); err != nil {
			return err
		}
	}
	pointAfterApply.Pass()
	s.show(b)
	pointAfterPublish.Pass()
	return nil
}

// give gives the batch to the engine.
func (s *Store) give(b *batch) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	defer s.room.reset()
	for i := range b.entries.list {
		if err := b.entries.list[i].apply(txn, &s.room); err != nil {
			return err
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	s.loans.commit(b.moved)
	return nil
}

// emptyJournal makes durable in the engine's log what the journal holds, so that it can be
// written over. t is the last commit that the engine has.
func (s *Store) emptyJournal(t tip) error {
	if err := s.log.sync(); err != nil {
		return err
	}
	return s.water.settle(t)
}

// show lets everybody see what b holds.
func (s *Store) show(b *batch) {
	// No other batch is given to the engine before this one has given the turn back. What it
	// has by now is durable, and is all that this snapshot sees.
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
}
