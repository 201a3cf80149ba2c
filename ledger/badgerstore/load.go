package badgerstore

import (
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore/wal"
)

// load verifies what was opened, folds again what the log still has, and fills the memory. It reads the
// unresolved records and the running runs only, never all.
func (s *Store) load(accepted bool) error {
	s.process.Ledger = s.identity.ID
	if err := s.view(s.checkMeta); err != nil {
		return err
	}
	fold := s.recover
	if accepted {
		fold = s.recoverLeft
	}
	if err := fold(); err != nil {
		return err
	}
	return s.view(func(src snapshot) (err error) {
		if err := s.checkTip(src); err != nil && !accepted {
			return err
		}
		if s.lost, err = readLost(src); err != nil {
			return err
		}
		all, err := standing(src)
		for _, m := range all.Mutations {
			s.blockers.Put(m)
		}
		return err
	})
}

// view reads Badger alone.
func (s *Store) view(fn func(snapshot) error) error {
	return s.db.View(func(txn *badger.Txn) error { return fn(snapshot{txn: txn}) })
}

// recover holds log, Badger and witness against each other, and folds the tail again. That brings Badger what it
// lacks, and heals what it lost of its WAL.
func (s *Store) recover() error {
	var newest tip
	if err := s.view(func(src snapshot) error {
		base, err := readBaseline(src)
		if err == nil {
			s.foldedTip, newest, err = readFolds(src, base)
		}
		return err
	}); err != nil {
		return err
	}
	last := s.log.Last()
	switch {
	case last.Number < newest.Commit:
		return fmt.Errorf("%w: the log %s ends at commit %d, and commit %d was folded: it is an older copy",
			ledger.ErrShortened, s.config.logPath(), last.Number, newest.Commit)
	case s.log.First() > s.foldedTip.Commit+1:
		return fmt.Errorf("%w: commits from %d on are neither in the log %s, which begins at %d, nor whole in %s",
			ledger.ErrDamaged, s.foldedTip.Commit+1, s.config.logPath(), s.log.First(), s.config.dataDir())
	}
	run, err := s.readRun()
	if err != nil {
		return err
	}
	t, err := s.config.readWitness()
	if err == nil {
		err = s.config.checkWitness(t, s.identity.ID, s.log, run.witnessed)
	}
	if s.older = s.config.Restored && errors.Is(err, ledger.ErrShortened); err != nil && !s.older {
		return err
	}
	if run.clean && s.foldedTip.Commit == last.Number-1 {
		s.tip = run.tip
		return nil
	}
	return s.foldRun(run)
}

// run is what the log's tail holds.
type run struct {
	table *memtable
	tip   tip
	// clean says that it ends with a clean stop, witnessed that a witness goes with its last epoch.
	clean, witnessed bool
}

func (s *Store) readRun() (r run, err error) {
	r = run{table: new(memtable), tip: s.foldedTip}
	err = s.log.Replay(func(h wal.Head, content []byte) error {
		f, err := parseFrame(h.Number, content)
		if err != nil {
			return err
		}
		if h.Number == s.foldedTip.Commit && f.tip != s.foldedTip {
			return fmt.Errorf("%w: commit %d in the log %s is another than the one that was folded", ledger.ErrDamaged, h.Number, s.config.logPath())
		}
		for _, e := range f.entries {
			r.table.set(e.key, e.sealed, h.Number, nil)
		}
		r.tip, r.clean, r.witnessed = f.tip, f.clean, f.witnessed
		return nil
	})
	return r, err
}

// foldRun gives Badger the run.
func (s *Store) foldRun(r run) error {
	w := folder{db: s.db, most: maxBatch(s.config.memtable), first: s.foldedTip.Commit + 1, tip: r.tip}
	if err := w.all(r.table); err != nil {
		return engineError(fmt.Errorf("fold the log: %w", err))
	}
	s.tip, s.foldedTip = r.tip, r.tip
	return nil
}

// checkTip wants the ledger's last event.
func (s *Store) checkTip(src snapshot) error {
	if s.tip.Seq == 0 {
		return nil
	}
	r := newEvents(src)
	defer r.close()
	e, err := r.at(s.tip.Seq)
	if err == nil && e.hash != s.tip.Hash {
		err = fmt.Errorf("%w: event %d has another hash than the log says", ledger.ErrDamaged, s.tip.Seq)
	}
	return required(err, fmt.Sprintf("event %d", s.tip.Seq))
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

// standing reads the runs that aren't over, and the mutations that are unresolved or queued. An entry counts only
// if its record names it. If the record is missing, that is damage: nobody can tell what it was.
func standing(src snapshot) (c ledger.Changes, err error) {
	v := &view{src: src}
	known := map[ledger.Key]bool{}
	for _, kind := range []byte{xUnresolved, xDue} {
		src.each([]byte{kind}, func(k []byte) bool {
			name := ledger.Key(markName(k))
			if known[name] {
				return true
			}
			var m *ledger.Mutation
			if m, err = v.Mutation(name); err == nil && containsKey(mutationIndexes(m), k) {
				known[name] = true
				c.Mutations = append(c.Mutations, m)
			}
			return err == nil
		})
		if err != nil {
			return c, required(err, "an unresolved or queued mutation")
		}
	}
	src.each([]byte{xRunActive}, func(k []byte) bool {
		var r *ledger.Run
		if r, err = v.runBy(markName(k)); err == nil && containsKey(storedRunIndexes(r), k) {
			c.Runs = append(c.Runs, r)
		}
		return err == nil
	})
	return c, required(err, "a run")
}

// baselineKey holds the tip from which on a ledger is verified, where a loss was accepted.
var baselineKey = []byte{kMeta, 'b'}

func readBaseline(src snapshot) (base tip, err error) {
	content, err := src.get(baselineKey)
	if errors.Is(err, ledger.ErrNotFound) {
		return tip{}, nil
	}
	if err != nil {
		return base, err
	}
	return base, decode(baselineKey, content, &base)
}
