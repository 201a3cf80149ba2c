package badgerstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"keep-proxy/ledger"
)

// lostBodies calls lost with each body whose file isn't there whole, and returns the
// first one's damage.
func (s *Store) lostBodies(ctx context.Context, lost func([32]byte, bodyHead)) (first, err error) {
	err = s.snapshot(func(src snapshot) (err error) {
		src.each([]byte{kBody}, func(k []byte) bool {
			var h bodyHead
			var content []byte
			if content, err = src.get(k); err == nil {
				err = errors.Join(decode(k, content, &h), ctx.Err())
			}
			if err != nil || !h.File || h.Lost {
				return err == nil
			}
			sum := [32]byte(k[1:])
			damage := checkBodyFile(s.config, sum, h.Size, io.Discard)
			if damage != nil && !errors.Is(damage, ledger.ErrDamaged) {
				err = damage
				return false
			}
			if damage != nil {
				if first == nil {
					first = damage
				}
				lost(sum, h)
			}
			return true
		})
		return err
	})
	return first, err
}

// acceptLostBodies writes down which contents are gone: they are answered as dropped
// from now on. What is left of a file is kept beside it, for whoever looks for it.
func (s *Store) acceptLostBodies(ctx context.Context, loss *Loss) error {
	heads := map[[32]byte]bodyHead{}
	var names [][32]byte
	if _, err := s.lostBodies(ctx, func(sum [32]byte, h bodyHead) {
		heads[sum] = h
		names = append(names, sum)
	}); err != nil {
		return err
	}
	for _, sum := range names {
		path := s.config.bodyPath(hex.EncodeToString(sum[:]))
		if err := rename(path, path+".damaged"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("keep a damaged body: %w", err)
		}
	}
	return s.markAll(ctx, names, func(t *tx, sum [32]byte) (bool, error) {
		h := heads[sum]
		h.Lost = true
		return true, t.layer.putValue(key(kBody, sum[:]), &h)
	}, &loss.Bodies)
}
