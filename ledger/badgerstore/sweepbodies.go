package badgerstore

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"keep-proxy/ledger"
)

// Swept counts what SweepBodies removed.
type Swept struct {
	// Bodies is the number of contents, Bytes their length.
	Bodies int   `json:"bodies"`
	Bytes  int64 `json:"bytes"`
	// Orphans is the number of files that no value named.
	Orphans int `json:"orphans"`
}

// sweepBatch is how many contents one command removes.
const sweepBatch = 64

// SweepBodies removes content that no record names any more, while the store works. Retention dropped it, or a
// crash left a file without its value. Any number of records may name the same content. So it looks at all of them
// first, and the committer notes meanwhile what new ones name. There must be one at a time.
func (s *Store) SweepBodies(ctx context.Context) (done Swept, err error) {
	if err := s.beginNaming(ctx); err != nil {
		return done, fmt.Errorf("sweep bodies: %w", err)
	}
	defer func() { err = errors.Join(err, s.endNaming()) }() //nolint:contextcheck // It ends what was begun, also for a ctx that has ended.
	named, err := s.namedBodies(ctx)
	if err != nil {
		return done, fmt.Errorf("sweep bodies: %w", err)
	}
	w := s.newWalker([]byte{kBody})
	for more := true; more; {
		var unnamed [][32]byte
		more, err = w.slice(ctx, func(_ snapshot, k, _ []byte, _ bool) error {
			if _, found := slices.BinarySearch(named, binary.BigEndian.Uint64(k[1:])); !found {
				unnamed = append(unnamed, [32]byte(k[1:]))
			}
			return nil
		})
		if err != nil {
			return done, fmt.Errorf("sweep bodies: %w", err)
		}
		for batch := range slices.Chunk(unnamed, sweepBatch) {
			if err := s.removeBodies(ctx, batch, &done); err != nil {
				return done, fmt.Errorf("sweep bodies: %w", err)
			}
		}
	}
	return done, s.removeOrphans(ctx, w, &done)
}

// beginNaming has the committer note which bodies records name from now on. It returns
// once all that was named before is durable, and so in every later snapshot.
func (s *Store) beginNaming(ctx context.Context) error {
	return s.do(ctx, func(t *tx) error {
		t.store.named = map[string]struct{}{}
		t.layer.readAll()
		return nil
	})
}

func (s *Store) endNaming() error {
	err := s.do(context.Background(), func(t *tx) error {
		t.store.named = nil
		return nil
	})
	if errors.Is(err, ledger.ErrUnavailable) {
		return nil // Nothing is named any more.
	}
	return err
}

// namedBodies lists the beginnings of the digests that records name, in order. Two that
// begin alike keep each other, which does no harm.
func (s *Store) namedBodies(ctx context.Context) (named []uint64, err error) {
	w := s.newWalker([]byte{kMutation})
	for more := true; more; {
		more, err = w.slice(ctx, func(src snapshot, k, content []byte, whole bool) error {
			if !whole {
				if content, err = src.get(k); err != nil {
					return err
				}
			}
			e, err := decodeMutation(k, content)
			if err != nil {
				return err
			}
			for _, b := range bodiesOf(e.Mutation) {
				sum, err := bodySum(b)
				if err != nil {
					return damaged(k, err.Error())
				}
				named = append(named, binary.BigEndian.Uint64(sum))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(named)
	return slices.Compact(named), nil
}

// bodiesOf are the contents that a record names.
func bodiesOf(m *ledger.Mutation) (out []ledger.Body) {
	all := []ledger.Body{m.Request.Body}
	if m.Result != nil {
		all = append(all, m.Result.Body)
	}
	for _, b := range all {
		if b.SHA256 != "" && !b.Dropped {
			out = append(out, b)
		}
	}
	return out
}

// removeBodies removes those that still nobody names: first the values, durably, then the files. No backup runs
// meanwhile, since it reads both.
func (s *Store) removeBodies(ctx context.Context, sums [][32]byte, done *Swept) error {
	s.tending.Lock()
	defer s.tending.Unlock()
	var heads map[string]bodyHead
	err := s.do(ctx, func(t *tx) (err error) {
		if heads, err = t.dropBodies(sums); err != nil {
			for name := range heads {
				err = errors.Join(err, s.pending.removed(name, false))
			}
		}
		return err
	})
	if err != nil {
		return err // The committer may be at it still, if the store has stalled.
	}
	for name, h := range heads {
		err = errors.Join(err, s.pending.removed(name, h.File))
		done.Bodies++
		done.Bytes += h.Size
	}
	return err
}

// dropBodies removes values of bodies, and returns those that it did remove.
func (t *tx) dropBodies(sums [][32]byte) (map[string]bodyHead, error) {
	out := map[string]bodyHead{}
	for _, sum := range sums {
		name := hex.EncodeToString(sum[:])
		if _, named := t.store.named[name]; named || !t.store.pending.removing(name) {
			continue
		}
		out[name] = bodyHead{}
		sk := key(kBody, sum[:])
		content, err := t.layer.get(sk)
		if errors.Is(err, ledger.ErrNotFound) {
			continue
		}
		var h bodyHead
		if err == nil {
			err = decode(sk, content, &h)
		}
		if err != nil {
			return out, err
		}
		if err := t.layer.drop(sk); err != nil {
			return out, err
		}
		out[name] = h
	}
	return out, nil
}

// removeOrphans removes the files of bodies/ that no value names and nobody is about to.
func (s *Store) removeOrphans(ctx context.Context, w *walker, done *Swept) error {
	files, err := os.ReadDir(s.config.bodiesDir())
	if err != nil {
		return fmt.Errorf("sweep bodies: %w", err)
	}
	for i, f := range files {
		name := f.Name()
		if sum, err := hex.DecodeString(name); err != nil || len(sum) != 32 {
			continue // What is left of a damaged one is kept for whoever looks for it.
		}
		removed, err := s.pending.removeOrphan(name, func() (bool, error) {
			head, known, err := s.bodyNamed(name)
			return known && head.File, err
		})
		if err != nil {
			return fmt.Errorf("sweep bodies: %w", err)
		}
		if removed {
			done.Orphans++
		}
		if i%sliceValues == 0 {
			if err := w.rest(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
