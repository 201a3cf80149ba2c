package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// load verifies what was opened and fills the memory. It reads the unresolved
// records and the running runs only, never all.
func (s *Store) load(accepted bool) error {
	s.process.Ledger = s.identity.ID
	return s.db.View(func(txn *badger.Txn) (err error) {
		src := snapshot{txn}
		if err := s.checkMeta(src); err != nil {
			return err
		}
		check := s.loadVerified
		if accepted {
			check = s.loadLeft
		}
		if err := check(src); err != nil {
			return err
		}
		if s.lost, err = readLost(src); err != nil {
			return err
		}
		s.pending.next = lastUpload(src)
		all, err := standing(src)
		for _, m := range all.Mutations {
			s.blockers.Put(m)
		}
		return err
	})
}

// loadVerified finds the tip and holds it against all that Open verifies.
func (s *Store) loadVerified(src snapshot) error {
	last, from, err := verifyCheckpoints(src)
	if err != nil {
		return err
	}
	s.checkpoint, s.written = last, last.Bytes
	if s.tip, err = walkCommits(src, from.Before); err != nil {
		return err
	}
	if err := s.checkHighWater(src); err != nil {
		if !s.config.Restored || !errors.Is(err, ledger.ErrShortened) {
			return err
		}
		s.older = true
	}
	return verifyEvents(src, from.Before, s.tip, nil) // What was lost lies before.
}

// checkMeta compares the identity inside with the one outside.
func (s *Store) checkMeta(src snapshot) error {
	content, err := src.get(metaKey)
	if err != nil {
		return required(err, "its identity")
	}
	var i identity
	if err := decode(metaKey, content, &i); err != nil {
		return err
	}
	if i.ID != s.identity.ID || i.Format != s.identity.Format {
		return fmt.Errorf("%w: ledger.id says %s (format %d), the data are those of %s (format %d)",
			ledger.ErrDamaged, s.identity.ID, s.identity.Format, i.ID, i.Format)
	}
	return nil
}

// checkHighWater compares the ledger's end with what was acknowledged.
func (s *Store) checkHighWater(src snapshot) error {
	a, err := readHighWater(s.config.highWaterPath())
	if err != nil {
		return err
	}
	if a.mark.ID != s.identity.ID {
		return fmt.Errorf("%w: the high-water file %s is that of ledger %s, not of %s",
			ledger.ErrForeign, s.config.highWaterPath(), a.mark.ID, s.identity.ID)
	}
	last := a.tip()
	if s.tip.Commit < last.Commit || s.tip.Seq < last.Seq {
		return fmt.Errorf("%w: it ends at commit %d with event %d, and commit %d with event %d was acknowledged",
			ledger.ErrShortened, s.tip.Commit, s.tip.Seq, last.Commit, last.Seq)
	}
	c, err := readCommit(src, last.Commit)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	if err != nil || c.Tip.Link != last.Link {
		return fmt.Errorf("%w: commit %d is another than the one acknowledged", ledger.ErrShortened, last.Commit)
	}
	// A crash may come between the mark of an epoch and its first commit. Only a commit too long for the journal is in the
	// data before the file knows it.
	if epoch := s.checkpoint.Epoch; a.mark.Epoch != epoch && a.mark.Before != epoch || s.tip.Commit > last.Commit+1 {
		return fmt.Errorf("%w: the high-water file %s is an older copy than the data in %s: put the newest one back, "+
			"as the last commits may be in it alone", ledger.ErrDamaged, s.config.highWaterPath(), s.config.dataDir())
	}
	return nil
}

// lastUpload is the greatest number of an upload that left traces.
func lastUpload(src snapshot) uint64 {
	if k := src.last([]byte{kPending}); k != nil {
		return binary.BigEndian.Uint64(k[1:])
	}
	return 0
}

// standing reads the runs that aren't over, and the mutations that are unresolved or queued.
func standing(src snapshot) (c ledger.Changes, err error) {
	v := &view{src: src}
	known := map[ledger.Key]bool{}
	for _, kind := range []byte{xUnresolved, xDue} {
		found, err := src.keys([]byte{kind})
		if err != nil {
			return c, err
		}
		for _, k := range found {
			name := ledger.Key(markName(k))
			if known[name] {
				continue
			}
			known[name] = true
			m, err := v.Mutation(name)
			if err != nil {
				return c, required(err, "an unresolved or queued mutation")
			}
			c.Mutations = append(c.Mutations, m)
		}
	}
	runs, err := src.keys([]byte{xRunActive})
	if err != nil {
		return c, err
	}
	for _, k := range runs {
		r, err := v.runBy(markName(k))
		if err != nil {
			return c, required(err, "a run")
		}
		c.Runs = append(c.Runs, r)
	}
	return c, nil
}
