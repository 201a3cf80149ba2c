package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// rebuiltDir is the folder of a rebuild, and replacedDir that of the data that it replaces.
func (c Config) rebuiltDir() string  { return filepath.Join(c.Dir, "rebuild") }
func (c Config) replacedDir() string { return filepath.Join(c.Dir, "replaced") }

// Rebuild copies the records of a closed ledger into a fresh Badger and derives the index entries from them.
// It is for a ledger that opens, and whose indexes Verify finds wrong. Nothing is changed before the copy
// is whole and durable.
func Rebuild(ctx context.Context, c Config, progress Progress) (r Report, err error) {
	if err := c.validate(); err != nil {
		return r, err
	}
	s := newStore(c)
	defer func() { err = errors.Join(err, s.release()) }()
	if s.lock, err = lockLedger(c); err != nil {
		return r, err
	}
	found, err := look(c)
	if err == nil && found.none() {
		err = fmt.Errorf("%w: there is no ledger in %s", ledger.ErrMissing, c.Dir)
	}
	if err == nil {
		err = errors.Join(c.cutShort(), os.RemoveAll(c.rebuiltDir()))
	}
	if err == nil {
		err = s.openFiles(found, false)
	}
	if err == nil {
		err = s.load(false)
	}
	if err != nil {
		return r, explain(err)
	}
	r = Report{ID: s.identity.ID, Events: s.tip.Seq, Commits: s.tip.Commit}
	if err := s.rebuildInto(ctx, &r, progress); err != nil {
		return r, fmt.Errorf("rebuild: %w", err)
	}
	left, err := c.closeEngine(s.db, s.dead)
	if s.db = nil; left || err != nil {
		return r, fmt.Errorf("rebuild: %w", err)
	}
	if err := errors.Join(rename(c.dataDir(), c.replacedDir()), syncDir(c.Dir)); err != nil {
		return r, fmt.Errorf("rebuild: %w", err)
	}
	return r, finishRebuild(c)
}

// finishRebuild puts a whole copy in the place of the data set aside for it, also after a kill.
func finishRebuild(c Config) error {
	aside, err := exists(c.replacedDir())
	if err != nil || !aside {
		return err
	}
	there, err := exists(c.dataDir())
	if err == nil && !there {
		err = errors.Join(rename(filepath.Join(c.rebuiltDir(), "data"), c.dataDir()), syncDir(c.Dir))
	}
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(c.rebuiltDir()), os.RemoveAll(c.replacedDir()))
}

// rebuildInto fills a fresh Badger.
func (s *Store) rebuildInto(ctx context.Context, r *Report, progress Progress) (err error) {
	c := s.config
	c.Dir = c.rebuiltDir()
	if err := errors.Join(os.MkdirAll(c.dataDir(), 0o700), s.space.roomForCopy(c.Dir, 0)); err != nil {
		return err
	}
	var failure engineFailure
	db, err := openEngine(c.engineOptions().WithLogger(engineLog{log: c.Logger, failure: &failure}))
	if err != nil {
		return err
	}
	defer func() {
		_, late := c.closeEngine(db, nil)
		err = errors.Join(err, late, failure.err(), syncDir(c.dataDir()), syncDir(c.Dir))
	}()
	return s.db.View(func(txn *badger.Txn) error {
		m := mending{store: s, src: snapshot{txn: txn}, to: newWrites(nil)}
		at := m.src.cursor(nil, false)
		defer at.close()
		for at.seek(nil); at.valid(); at.next() {
			k := bytes.Clone(at.key())
			if bytes.IndexByte(derived, k[0]) >= 0 {
				continue
			}
			if err := m.copy(k, at, r); err != nil {
				return err
			}
			if r.Values++; r.Values%progressEvery == 0 && progress != nil {
				progress(r.Values)
			}
			if m.to.size < backupBatch {
				continue
			}
			if err := errors.Join(ctx.Err(), s.space.roomForCopy(c.Dir, 0), db.Update(m.to.apply)); err != nil {
				return err
			}
			m.to = newWrites(nil)
		}
		return db.Update(m.to.apply)
	})
}

// copy takes the value under k over, with the index entries that follow from it.
func (m *mending) copy(k []byte, at *cursor, r *Report) error {
	v, err := at.sealed()
	if err != nil {
		return err
	}
	if _, _, err := unseal(k, v); err != nil {
		return err
	}
	m.to.set(k, v, nil)
	indexes, err := m.derive(k, r)
	for _, x := range indexes {
		m.to.set(x, seal(x, nil, 0), nil)
	}
	return err
}

// derive is what follows from the record under k, nil if that is none.
func (m *mending) derive(k []byte, r *Report) ([][]byte, error) {
	v := &view{src: m.src}
	switch k[0] {
	case kMutation:
		record, err := v.Mutation(ledger.Key(markName(k)))
		if err != nil {
			return nil, err
		}
		r.Mutations++
		indexes := mutationIndexes(record)
		for _, n := range newSpans(nil, nil, record) {
			indexes = append(indexes, n.key())
		}
		return indexes, nil
	case kRun:
		run, err := v.runBy(markName(k))
		if err != nil {
			return nil, err
		}
		r.Runs++
		return storedRunIndexes(run), nil
	case kItem:
		i, err := v.itemBy(markName(k))
		if err != nil {
			return nil, err
		}
		r.Items++
		return itemIndexes(i), nil
	}
	return nil, nil
}
