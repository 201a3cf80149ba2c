package badgerstore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

// errReadOnly says that something is to be put back into an engine that is open for reading.
var errReadOnly = errors.New("commits are to be put back into the engine")

// putBackLost puts back what the engine has lost of the commits that its high-water file holds.
// Where the loss is accepted, or the folder is known to be a copy, what can't be put back stays
// away.
//
// Where the journal has a hole, only who accepts the loss gets what is before it: the less is
// lost, the less is guessed. What is behind it stays away, although it was acknowledged, too: it
// was decided on what the hole held, and would stand there without it.
func (s *Store) putBackLost(accepted bool) error {
	a, err := readHighWater(s.config.highWaterPath())
	if accepted && errors.Is(err, os.ErrNotExist) {
		a, err = readHighWater(s.config.insidePath()) // It wasn't moved, as it has a hole.
	}
	switch {
	case err == nil, accepted && (errors.Is(err, os.ErrNotExist) || errors.Is(err, ledger.ErrDamaged)):
		err = s.putBack(a, accepted)
	case accepted:
		// What can't be read now may hold what is to be put back. It would be replaced.
		return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if accepted && !errors.Is(err, ledger.ErrUnavailable) || s.config.Restored && errors.Is(err, ledger.ErrShortened) {
		return nil
	}
	return err
}

// putBack gives the engine what its logs have lost of the commits in the journal: it has all up
// to the mark, and each later commit whole or not at all, but an older log may have lost its end
// while a newer one has its beginning. So all from the first one that is missing on are given to
// it once more, in their order. One that was cut short itself is found out by the engine's own
// numbers: a commit that stands before the one that it follows was not put back yet.
//
// It changes nothing where what the engine has doesn't end where the journal begins: then the
// ledger is another one or a copy, as opening it finds.
func (s *Store) putBack(a acknowledged, accepted bool) error {
	if len(a.after) == 0 || a.mark.ID != s.identity.ID {
		return nil
	}
	missing, err := s.missing(a)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.endsWith(a, accepted); err != nil {
		return err
	}
	// Who accepts the loss of a content doesn't lose what the ledger knows besides.
	if !accepted {
		if err := s.haveBodies(missing); err != nil {
			return err
		}
	}
	if s.db.Opts().ReadOnly {
		return errReadOnly
	}
	for _, j := range missing {
		step := fault.Begin(fault.OpPutBack, s.config.dataDir())
		if err := step.End(s.db.Update(func(txn *badger.Txn) error {
			for _, e := range j.changes {
				if err := e.apply(txn); err != nil {
					return err
				}
			}
			return nil
		})); err != nil {
			return engineError(fmt.Errorf("put commit %d back: %w", j.tip.Commit, err))
		}
		if s.config.puttingBack != nil {
			s.config.puttingBack()
		}
	}
	// What was put into several logs of the engine is to be durable before its marks say so.
	if err := syncWhatIsLeft(s.config.dataDir()); err != nil {
		return err
	}
	s.config.Logger.Info().Uint64("from", missing[0].tip.Commit).Uint64("to", a.tip().Commit).
		Msg("commits that the engine had lost were put back from the high-water file")
	return nil
}

// missing returns the commits of the journal from the first one on that the engine doesn't have
// behind the one before.
func (s *Store) missing(a acknowledged) (missing []journaled, err error) {
	err = s.db.View(func(txn *badger.Txn) error {
		src := snapshot{txn}
		before, ok, err := commitVersion(src, a.mark.Tip)
		if err != nil || !ok {
			return err
		}
		for i, j := range a.after {
			version, ok, err := commitVersion(src, j.tip)
			if err != nil {
				return err
			}
			// The later ones are looked at all the same: one of them may be another's.
			if missing == nil && (!ok || version < before) {
				missing = a.after[i:]
			}
			before = version
		}
		return nil
	})
	return missing, err
}

// endsWith refuses an engine that has a commit after the last one of the journal: that came
// after what is missing, so that it can't be put back before it. Where the journal has no hole,
// this can only be the next one; where it may have, as the loss is accepted, any.
func (s *Store) endsWith(a acknowledged, accepted bool) error {
	return s.db.View(func(txn *badger.Txn) error {
		src, next := snapshot{txn}, a.tip().Commit+1
		_, err := readCommit(src, next)
		if accepted {
			var last tip
			if last, err = findTip(src); err == nil && last.Commit < next {
				return nil
			}
			next = last.Commit
		}
		if err == nil {
			return fmt.Errorf("%w: the engine has commit %d and not all before it, and the journal of the high-water file ends before it",
				ledger.ErrDamaged, next)
		}
		if errors.Is(err, ledger.ErrNotFound) {
			return nil
		}
		return err
	})
}

// commitVersion is the engine's number of the transaction of a commit; false if it doesn't have
// that commit. That it has another of the same number is an error: over one history, no other
// is put back.
func commitVersion(src snapshot, t tip) (version uint64, ok bool, err error) {
	c, err := readCommit(src, t.Commit)
	if errors.Is(err, ledger.ErrNotFound) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if c.Tip.Link != t.Link {
		return 0, false, fmt.Errorf("%w: commit %d is another than the one acknowledged", ledger.ErrShortened, t.Commit)
	}
	item, err := src.item(commitKey(t.Commit))
	if err != nil {
		return 0, false, err
	}
	return item.Version(), true, nil
}

// haveBodies refuses commits that leave a file named which isn't there: the folder is an older
// copy then, of a ledger whose high-water file lies elsewhere. A name that a later one of them
// takes back doesn't count: its file was removed then.
func (s *Store) haveBodies(commits []journaled) error {
	named := map[string]uint64{}
	for _, j := range commits {
		for _, e := range j.changes {
			if e.key[0] != kBody {
				continue
			}
			file, err := e.namesFile()
			if err != nil {
				return err
			}
			if name := hex.EncodeToString(e.key[1:]); file {
				named[name] = j.tip.Commit
			} else {
				delete(named, name)
			}
		}
	}
	for name, commit := range named {
		there, err := exists(s.config.bodyPath(name))
		if err != nil {
			return fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
		}
		if !there {
			return fmt.Errorf("%w: the content that commit %d names is missing", ledger.ErrShortened, commit)
		}
	}
	return nil
}

// namesFile reports whether the change of a body leaves its content in a file.
func (e entry) namesFile() (bool, error) {
	if e.sealed == nil {
		return false, nil
	}
	content, _, err := unseal(e.key, e.sealed)
	if err != nil {
		return false, err
	}
	var h bodyHead
	err = decode(e.key, content, &h)
	return h.File && !h.Lost, err
}
