package badgerstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	badger "github.com/dgraph-io/badger/v4"
)

// errTooLarge refuses a command whose changes are more than a commit may hold.
var errTooLarge = errors.New("the command's changes are too large for one commit")

func sum256(b []byte) [32]byte { return sha256.Sum256(b) }

// entry is one change; a nil value is a removal.
type entry struct {
	key, sealed []byte
}

func entrySize(k, v []byte) int { return len(k) + len(v) + entryOverhead }

// layer is what one command changes. It writes into the newest memtable, and can take that back.
type layer struct {
	// base is what the command reads; its young memtable is the one that it writes into.
	base snapshot
	// commit is the number of its commit, newest that of the newest change before it.
	commit, newest uint64
	// most is how much it may change, in bytes.
	most   int
	writes []entry
	size   int
	// read is the newest commit of which something was read.
	read   uint64
	buffer bytes.Buffer
}

// raw returns the sealed value under k, which must not be changed, or ledger.ErrNotFound.
func (l *layer) raw(k []byte) ([]byte, error) {
	l.saw(k)
	return l.base.raw(k)
}

// saw notes the commit of which the value under k is.
func (l *layer) saw(k []byte) *version {
	v := l.base.version(k)
	if v != nil && v.commit > l.read {
		l.read = v.commit
	}
	return v
}

// get implements source.
func (l *layer) get(k []byte) ([]byte, error) {
	l.saw(k)
	return l.base.get(k)
}

func (l *layer) has(k []byte) (bool, error) {
	l.saw(k)
	return l.base.has(k)
}

// keys implements source. A removal counts as read, too. So all that isn't durable does.
func (l *layer) keys(prefix []byte) ([][]byte, error) {
	l.readAll()
	return l.base.keys(prefix)
}

// readAll says that the command depends on all before it.
func (l *layer) readAll() { l.read = max(l.read, l.newest) }

// put stores content under k, in parts if it is long.
func (l *layer) put(k, content []byte) error {
	if len(content) <= partSize {
		l.set(k, seal(k, content, 0), nil)
		return l.fits()
	}
	s := split{Size: int64(len(content)), Sum: sum256(content)}
	for from := 0; from < len(content); from += partSize {
		pk := partKey(k, s.Parts)
		l.set(pk, seal(pk, content[from:min(from+partSize, len(content))], 0), nil)
		s.Parts++
	}
	var head bytes.Buffer
	if err := encode(&head, s); err != nil {
		return err
	}
	l.set(k, seal(k, head.Bytes(), flagSplit), nil)
	return l.fits()
}

// putValue encodes v and stores it under k.
func (l *layer) putValue(k []byte, v any) error { return l.putRecord(k, v, nil) }

// putRecord encodes v and stores it under k, with the record that it is.
func (l *layer) putRecord(k []byte, v, record any) error {
	l.buffer.Reset()
	l.buffer.Write(emptySeal[:])
	if err := encode(&l.buffer, v); err != nil {
		return err
	}
	if content := l.buffer.Bytes()[sealSize:]; len(content) > partSize {
		return l.put(k, bytes.Clone(content))
	}
	sealed := bytes.Clone(l.buffer.Bytes())
	sealIn(k, sealed, 0)
	l.set(k, sealed, record)
	return l.fits()
}

func (l *layer) remove(k []byte) { l.set(k, nil, nil) }

func (l *layer) set(k, sealed []byte, record any) {
	l.size += entrySize(k, sealed)
	l.writes = append(l.writes, entry{k, sealed})
	l.base.young.set(k, sealed, l.commit, record)
}

// undo takes all changes back.
func (l *layer) undo() {
	for _, w := range slices.Backward(l.writes) {
		l.base.young.unset(w.key)
	}
}

func (l *layer) fits() error {
	if l.size > l.most {
		return fmt.Errorf("%w: %d bytes", errTooLarge, l.size)
	}
	return nil
}

// newWrites is a layer of its own, for what is written to Badger directly.
func newWrites(txn *badger.Txn) *layer {
	return &layer{base: snapshot{young: new(memtable), at: allCommits, txn: txn}, most: math.MaxInt}
}

// apply moves the changes into a transaction of Badger.
func (l *layer) apply(txn *badger.Txn) error { return applyAll(txn, l.writes) }

func applyAll(txn *badger.Txn, changes []entry) error {
	for _, e := range changes {
		var err error
		if e.sealed == nil {
			err = txn.Delete(e.key)
		} else {
			err = txn.Set(e.key, e.sealed)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", keyName(e.key), err)
		}
	}
	return nil
}
