package badgerstore

import (
	"errors"
	"slices"
	"strings"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
)

var (
	pointBeforeLog    = fault.New("badgerstore.before_log")
	pointAfterLog     = fault.New("badgerstore.after_log")
	pointAfterPublish = fault.New("badgerstore.after_publish")
)

// syncLoop makes batches durable, one after another, and wakes their callers. The
// committer hands over no batch before it has the turn.
func (s *Store) syncLoop() {
	defer close(s.drained)
	for {
		select {
		case b, open := <-s.syncing:
			if !open {
				return
			}
			err := s.syncs.over(&aSync, func() error { return s.persist(b) })
			if err != nil {
				s.poison(err)
				err = s.Healthy()
			}
			b.answer(err)
			s.turn <- struct{}{}
		case <-s.witness.syncDue():
			if err := s.syncs.over(&aSync, s.witness.sync); err != nil {
				s.poison(err)
			}
		}
	}
}

// persist makes the batch durable in the log, then shows and publishes what it holds.
func (s *Store) persist(b *batch) error {
	if fault.Watched() {
		fault.Begin(fault.OpCommit, b.about)
	}
	pointBeforeLog.Pass()
	if err := s.append(frame{tip: b.tip, entries: b.entries}); err != nil {
		return err
	}
	pointAfterLog.Pass()
	s.state.publish(b.tip, b.young, b.old)
	if len(b.feed.Runs)+len(b.feed.Mutations) > 0 {
		for _, told := range s.followers {
			told(b.feed)
		}
	}
	s.commits.Add(1)
	s.pending.forget(b.referred)
	if b.old != nil {
		s.folds <- folding{b.old, b.tip}
	}
	pointAfterPublish.Pass()
	return nil
}

// append writes a frame and syncs it. It waits for room until Badger has what the oldest frames hold.
func (s *Store) append(f frame) error {
	f.witnessed = s.witness != nil
	content := f.encode()
	for {
		r, ok := s.state.take()
		if ok {
			s.state.give(r)
		}
		s.log.Free(r.folded)
		h, err := s.log.Append(wal.Head{Epoch: s.epoch, Elapsed: s.elapsed()}, content)
		switch {
		case err == nil:
			s.logUsed.Store(s.log.Used())
			return s.witness.follow(h)
		case !errors.Is(err, wal.ErrFull):
			return err
		case len(content) > s.log.Longest():
			return errTooLarge
		}
		if err := s.awaitRoom(r.folded + 1); err != nil {
			return err
		}
	}
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
