package badgerstore

import (
	"fmt"
	"slices"
	"strings"

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
// committer hands over no batch before it has the turn.
func (s *Store) syncLoop() {
	defer close(s.drained)
	for b := range s.syncing {
		s.finish(b)
	}
}

// finish makes b durable, wakes the callers and gives the turn back. What fails stops the
// store before either: nothing later is acknowledged.
func (s *Store) finish(b *batch) {
	err := s.awaitRoom(b)
	if err == nil {
		err = s.syncs.over(&aSync, func() error { return s.persist(b) })
	}
	if err != nil {
		s.poison(err)
		err = s.Healthy()
	}
	b.answer(err)
	if err == nil && s.water.wantsRoom() {
		if err := s.syncs.over(&aSync, s.makeRoom); err != nil {
			s.poison(err)
		}
	}
	s.turn <- struct{}{}
}

// about names what events are about, for who watches.
func about(events [][]byte) string {
	var whats []string
	for _, event := range events {
		var e ledger.Event
		if err := decoder.Unmarshal(event, &e); err == nil {
			whats = append(whats, e.What)
		}
	}
	slices.Sort(whats)
	return strings.Join(slices.Compact(whats), ",")
}

// awaitRoom waits until the engine has what must leave the backlog and the journal before b comes.
// That may take as long as several syncs, and giveLoop is looked after by itself.
func (s *Store) awaitRoom(b *batch) error {
	if !s.backlog.takes(b.size) {
		if err := s.giving.await(s.water.last.Commit, s.Healthy); err != nil {
			return err
		}
	}
	if s.water.take(journaled{tip: b.tip, before: b.before, changes: b.entries.list}) && s.water.fits(s.giving.durably().written) {
		return nil
	}
	_, err := s.giving.awaitDurable(s.water.last.Commit, s.Healthy)
	return err
}

// persist makes the batch durable in the journal of the high-water file, then shows and publishes
// what it holds. A batch that is too long for the journal is durable once the engine's log is. It
// follows awaitRoom.
func (s *Store) persist(b *batch) error {
	if fault.Watched() {
		fault.Begin(fault.OpCommit, b.about)
	}
	pointBeforeHighWater.Pass()
	kept, err := s.journal()
	if err != nil {
		return err
	}
	pointAfterHighWater.Pass()
	if kept {
		s.backlog.add(b.entries.list, s.water.end())
		s.show(b)
	} else if err := s.goAhead(b); err != nil {
		return err
	}
	pointAfterPublish.Pass()
	return nil
}

// journal writes the commit that the high-water file has taken into the journal, and syncs it. False:
// it is too long for that, and nothing was written.
func (s *Store) journal() (kept bool, err error) {
	if s.water.kept() && !s.water.fits(s.water.settled) {
		if err := s.water.settle(s.giving.durably()); err != nil {
			return false, err
		}
	}
	return s.water.append()
}

// goAhead makes a batch durable that is too long for the journal: in the engine's log, where it
// can be seen before. A log that lost the end of what came before it would have a hole there.
func (s *Store) goAhead(b *batch) error {
	if err := s.emptyJournal(); err != nil {
		return err
	}
	if err := s.give(b.entries.list); err != nil {
		return err
	}
	if err := s.log.sync(); err != nil {
		return err
	}
	if err := s.water.settle(journalEnd{b.tip, s.water.written}); err != nil {
		return err
	}
	pointAfterApply.Pass()
	s.giving.reached(s.water.end())
	s.giving.synced()
	s.newest.renew(s.db.NewTransaction(false))()
	s.show(b)
	return nil
}

// give gives the engine what is durable in the journal, or is too long for it, in one
// transaction: it has all of that or nothing.
func (s *Store) give(changes []delta) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for i := range changes {
		if err := changes[i].apply(txn); err != nil {
			return err
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// makeRoom takes the room in the journal that there is by now, or asks for it.
func (s *Store) makeRoom() error {
	if err := s.Healthy(); err != nil {
		return err // What the engine says is durable may not be.
	}
	if end := s.giving.durably(); end.tip.Commit > s.water.mark.Tip.Commit {
		return s.water.settle(end)
	}
	s.giving.want(s.water.last.Commit, true)
	return nil
}

// emptyJournal waits until all that the journal holds is durable in the engine's log, and lets it
// be written over.
func (s *Store) emptyJournal() error {
	end, err := s.giving.awaitDurable(s.water.last.Commit, s.Healthy)
	if err != nil {
		return err
	}
	return s.water.settle(end)
}

// show lets everybody see what b holds, of which backlog or snapshot have the records by now.
func (s *Store) show(b *batch) {
	if len(b.feed.Runs)+len(b.feed.Mutations) > 0 {
		for _, told := range s.followers {
			told(b.feed)
		}
	}
	s.commits.Add(1)
	s.horizon.reached(b.number)
	// Not before: one who holds the pending bodies may wait for the horizon.
	s.pending.forget(b.referred)
}
