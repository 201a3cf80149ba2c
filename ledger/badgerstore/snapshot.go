package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// source is what a view reads: one transaction, or a command's overlay over it.
type source interface {
	// get returns the content under key, which must not be changed, or ledger.ErrNotFound.
	get(key []byte) ([]byte, error)
	// read gives the content under key to fn, valid in the call only: it spares a copy.
	read(key []byte, fn func(content []byte) error) error
	// keys lists the keys with this prefix in ascending order.
	keys(prefix []byte) ([][]byte, error)
}

// raw reads sealed values.
type raw func(key []byte) ([]byte, error)

// content reads the value under k and puts the parts of a split one together.
func (read raw) content(k []byte) ([]byte, error) {
	sealed, err := read(k)
	if err != nil {
		return nil, err
	}
	return read.unsealed(k, sealed)
}

// unsealed is the content of the value under k, put together if it is split.
func (read raw) unsealed(k, sealed []byte) ([]byte, error) {
	content, flags, err := unseal(k, sealed)
	if err != nil || flags&flagSplit == 0 {
		return content, err
	}
	var s split
	if err := decode(k, content, &s); err != nil {
		return nil, err
	}
	return read.join(k, s)
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

func (read raw) join(k []byte, s split) ([]byte, error) {
	var out []byte
	for n := range s.Parts {
		pk := partKey(k, n)
		sealed, err := read(pk)
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
	if int64(len(out)) != s.Size || sum256(out) != s.Sum {
		return nil, damaged(k, "the parts don't fit together")
	}
	return out, nil
}

// snapshot is a source over one Badger transaction.
type snapshot struct {
	txn *badger.Txn
}

func (s snapshot) item(k []byte) (*badger.Item, error) {
	item, err := s.txn.Get(k)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ledger.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyName(k), err)
	}
	return item, nil
}

func (s snapshot) raw(k []byte) ([]byte, error) {
	item, err := s.item(k)
	if err != nil {
		return nil, err
	}
	v, err := item.ValueCopy(nil)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", keyName(k), err)
	}
	return v, nil
}

// read implements source.
func (s snapshot) read(k []byte, fn func(content []byte) error) error {
	item, err := s.item(k)
	if err != nil {
		return err
	}
	var failed error
	err = item.Value(func(sealed []byte) error {
		var content []byte
		if content, failed = raw(s.raw).unsealed(k, sealed); failed == nil {
			failed = fn(content)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", keyName(k), err)
	}
	return failed
}

func (s snapshot) get(k []byte) ([]byte, error) { return raw(s.raw).content(k) }

func (s snapshot) keys(prefix []byte) ([][]byte, error) {
	var out [][]byte
	s.each(prefix, func(k []byte) bool {
		out = append(out, bytes.Clone(k))
		return true
	})
	return out, nil
}

// each visits the keys with this prefix, ascending, until fn returns false. The
// key is valid during the call only.
func (s snapshot) each(prefix []byte, fn func(k []byte) bool) {
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
		if !fn(it.Item().Key()) {
			return
		}
	}
}

// after visits the keys with this prefix from start on.
func (s snapshot) after(prefix, start []byte, fn func(k []byte) bool) {
	it := s.txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Seek(start); it.ValidForPrefix(prefix); it.Next() {
		if !fn(it.Item().Key()) {
			return
		}
	}
}

// backwards visits the keys with this prefix from the greatest not after start on.
func (s snapshot) backwards(prefix, start []byte, fn func(k []byte) bool) {
	it := s.txn.NewIterator(badger.IteratorOptions{Reverse: true, Prefix: prefix})
	defer it.Close()
	for it.Seek(start); it.ValidForPrefix(prefix); it.Next() {
		if !fn(it.Item().Key()) {
			return
		}
	}
}

// last returns the greatest key with this prefix, nil if there is none.
func (s snapshot) last(prefix []byte) []byte {
	it := s.txn.NewIterator(badger.IteratorOptions{Reverse: true, Prefix: prefix})
	defer it.Close()
	it.Seek(append(bytes.Clone(prefix), bytes.Repeat([]byte{0xff}, 64)...))
	if !it.ValidForPrefix(prefix) {
		return nil
	}
	return it.Item().KeyCopy(nil)
}
