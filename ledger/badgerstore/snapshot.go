package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// snapshot is the ledger as it was after one commit: Badger, and the changes that it didn't have then,
// the younger ones first.
type snapshot struct {
	young, old *memtable
	// at is the number of that commit.
	at  uint64
	txn *badger.Txn
}

// version returns the last change of a key that Badger doesn't have, nil if there is none.
func (s snapshot) version(k []byte) *version {
	if v := s.young.get(k, s.at); v != nil {
		return v
	}
	return s.old.get(k, s.at)
}

// raw returns the sealed value under k, which must not be changed, or ledger.ErrNotFound.
func (s snapshot) raw(k []byte) ([]byte, error) {
	if v := s.version(k); v != nil {
		if v.sealed == nil {
			return nil, ledger.ErrNotFound
		}
		return v.sealed, nil
	}
	if s.txn == nil {
		return nil, ledger.ErrNotFound
	}
	item, err := s.txn.Get(k)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ledger.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyName(k), err)
	}
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyName(k), err)
	}
	return v, nil
}

func (s snapshot) has(k []byte) (bool, error) {
	_, err := s.raw(k)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// get returns the content under k, which must not be changed, or ledger.ErrNotFound.
func (s snapshot) get(k []byte) ([]byte, error) {
	sealed, err := s.raw(k)
	if err != nil {
		return nil, err
	}
	return s.unsealed(k, sealed)
}

// unsealed is the content of the value under k, put together if it is split.
func (s snapshot) unsealed(k, sealed []byte) ([]byte, error) {
	content, flags, err := unseal(k, sealed)
	if err != nil || flags&flagSplit == 0 {
		return content, err
	}
	var whole split
	if err := decode(k, content, &whole); err != nil {
		return nil, err
	}
	return s.join(k, whole)
}

// split describes a value that is stored in parts.
type split struct {
	Parts uint32   `cbor:"1,keyasint"`
	Size  int64    `cbor:"2,keyasint"`
	Sum   [32]byte `cbor:"3,keyasint"`
}

func partKey(k []byte, n uint32) []byte {
	d := digest(string(k))
	return key(kPart, d[:], binary.BigEndian.AppendUint32(nil, n))
}

func (s snapshot) join(k []byte, whole split) ([]byte, error) {
	var out []byte
	for n := range whole.Parts {
		pk := partKey(k, n)
		sealed, err := s.raw(pk)
		if errors.Is(err, ledger.ErrNotFound) {
			return nil, damaged(k, fmt.Sprintf("part %d is missing", n))
		}
		if err != nil {
			return nil, err
		}
		part, _, err := unseal(pk, sealed)
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	if int64(len(out)) != whole.Size || sum256(out) != whole.Sum {
		return nil, damaged(k, "the parts don't fit together")
	}
	return out, nil
}

// keys lists the keys with this prefix in ascending order. Index entries are those that count.
func (s snapshot) keys(prefix []byte) (out [][]byte, err error) {
	s.each(prefix, func(k []byte) bool {
		var is bool
		if is, err = s.counts(k); is {
			out = append(out, bytes.Clone(k))
		}
		return err == nil
	})
	return out, err
}

// each visits the keys with this prefix, ascending, until fn returns false. The
// key is valid during the call only.
func (s snapshot) each(prefix []byte, fn func(k []byte) bool) { s.after(prefix, prefix, fn) }

// after visits the keys with this prefix from start on.
func (s snapshot) after(prefix, start []byte, fn func(k []byte) bool) {
	s.visit(s.cursor(prefix, false), start, fn)
}

// backwards visits the keys with this prefix from the greatest not after start on.
func (s snapshot) backwards(prefix, start []byte, fn func(k []byte) bool) {
	s.visit(s.cursor(prefix, true), start, fn)
}

func (s snapshot) visit(c *cursor, start []byte, fn func(k []byte) bool) {
	defer c.close()
	for c.seek(start); c.valid() && fn(c.key()); c.next() {
	}
}

// last returns the greatest key with this prefix, nil if there is none.
func (s snapshot) last(prefix []byte) (last []byte) {
	s.backwards(prefix, append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, 64)...), func(k []byte) bool {
		last = bytes.Clone(k)
		return false
	})
	return last
}
