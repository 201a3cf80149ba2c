package badgerstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// errTooLarge refuses a command whose changes fit no transaction.
var errTooLarge = errors.New("the command's changes are too large for one transaction")

func sum256(b []byte) [32]byte { return sha256.Sum256(b) }

// entry is one change; a nil value is a deletion.
type entry struct {
	key, sealed []byte
}

// layer holds the pending changes of one command over those of the commands before it,
// and over what the engine has. Its keys and values must not be changed: the batch takes
// them over.
type layer struct {
	base   snapshot
	writes []entry
	// places finds an entry once there are too many to look through.
	places map[string]int
	size   int
	// earlier are the changes of the batch so far and of the one before it, nil if there
	// is no batch; pending says that one of them was read which isn't durable.
	earlier *changed
	pending bool
	buffer  *bytes.Buffer
}

// fewWrites is how many entries are looked through one by one.
const fewWrites = 32

func newLayer(base snapshot) *layer {
	return &layer{base: base, buffer: new(bytes.Buffer)}
}

// reset makes l empty, for another command over base.
func (l *layer) reset(base snapshot) {
	clear(l.writes)
	l.base, l.writes, l.places, l.size, l.pending = base, l.writes[:0], nil, 0, false
}

// find returns the place of the entry under k, -1 if there is none.
func (l *layer) find(k []byte) int {
	if l.places != nil {
		if at, ok := l.places[string(k)]; ok {
			return at
		}
		return -1
	}
	for at := range l.writes {
		if bytes.Equal(l.writes[at].key, k) {
			return at
		}
	}
	return -1
}

func (l *layer) raw(k []byte) ([]byte, error) {
	if at := l.find(k); at >= 0 {
		if l.writes[at].sealed == nil {
			return nil, ledger.ErrNotFound
		}
		return l.writes[at].sealed, nil
	}
	l.pending = l.pending || l.earlier.has(k)
	if sealed, ok := l.earlier.value(k); ok {
		if sealed == nil {
			return nil, ledger.ErrNotFound
		}
		return bytes.Clone(sealed), nil
	}
	return l.base.raw(k)
}

func (l *layer) get(k []byte) ([]byte, error) { return raw(l.raw).content(k) }

// read implements source.
func (l *layer) read(k []byte, fn func(content []byte) error) error {
	if _, batched := l.earlier.value(k); !batched && l.find(k) < 0 {
		l.pending = l.pending || l.earlier.has(k)
		return l.base.read(k, fn)
	}
	content, err := l.get(k)
	if err != nil {
		return err
	}
	return fn(content)
}

func (l *layer) has(k []byte) (bool, error) {
	_, err := l.raw(k)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (l *layer) keys(prefix []byte) ([][]byte, error) {
	l.pending = l.pending || l.earlier.any()
	set := map[string]bool{}
	l.base.each(prefix, func(k []byte) bool {
		set[string(k)] = true
		return true
	})
	over := func(e entry) {
		if e.sealed == nil {
			delete(set, string(e.key))
		} else {
			set[string(e.key)] = true
		}
	}
	l.earlier.overlay(prefix, over)
	for _, e := range l.writes {
		if bytes.HasPrefix(e.key, prefix) {
			over(e)
		}
	}
	out := make([][]byte, 0, len(set))
	for _, k := range slices.Sorted(maps.Keys(set)) {
		out = append(out, []byte(k))
	}
	return out, nil
}

// put stores content under k, in parts if it is long.
func (l *layer) put(k, content []byte) error {
	if len(content) <= partSize {
		l.set(k, seal(k, content, 0))
		return l.fits()
	}
	s := split{Size: int64(len(content)), Sum: sum256(content)}
	for part := range slices.Chunk(content, partSize) {
		pk := partKey(k, s.Parts)
		l.set(pk, seal(pk, part, 0))
		s.Parts++
	}
	var head bytes.Buffer
	if err := encode(&head, s); err != nil {
		return err
	}
	l.set(k, seal(k, head.Bytes(), flagSplit))
	return l.fits()
}

// putValue encodes v and stores it under k.
func (l *layer) putValue(k []byte, v any) error {
	_, err := l.putRecord(k, v)
	return err
}

// putRecord is putValue and returns the content, which
// must not be changed, and is valid until the next call only.
func (l *layer) putRecord(k []byte, v any) (content []byte, err error) {
	l.buffer.Reset()
	l.buffer.Write(emptySeal[:])
	if err := encode(l.buffer, v); err != nil {
		return nil, err
	}
	sealed := l.buffer.Bytes()
	if content = sealed[sealSize:]; len(content) > partSize {
		return content, l.put(k, content)
	}
	sealed = bytes.Clone(sealed)
	sealIn(k, sealed, 0)
	l.set(k, sealed)
	return content, l.fits()
}

func (l *layer) remove(k []byte) { l.set(k, nil) }

func (l *layer) set(k, sealed []byte) {
	l.size += entrySize(k, sealed)
	if at := l.find(k); at >= 0 {
		l.size -= entrySize(k, l.writes[at].sealed)
		l.writes[at].sealed = sealed
		return
	}
	l.writes = append(l.writes, entry{k, sealed})
	switch {
	case l.places != nil:
		l.places[string(k)] = len(l.writes) - 1
	case len(l.writes) > fewWrites:
		l.places = make(map[string]int, 4*fewWrites)
		for at := range l.writes {
			l.places[string(l.writes[at].key)] = at
		}
	}
}

func (l *layer) fits() error {
	if l.size > maxCommand {
		return fmt.Errorf("%w: %d bytes", errTooLarge, l.size)
	}
	return nil
}

// join moves the changes into the batch.
func (l *layer) join() {
	for _, e := range l.writes {
		l.earlier.add(e)
	}
}

// apply moves the changes into a transaction of the engine.
func (l *layer) apply(txn *badger.Txn) error {
	for _, e := range l.writes {
		if err := e.apply(txn); err != nil {
			return err
		}
	}
	return nil
}

// apply makes the change in a transaction of the engine.
func (e entry) apply(txn *badger.Txn) error {
	var err error
	if e.sealed == nil {
		err = txn.Delete(e.key)
	} else {
		err = txn.Set(e.key, e.sealed)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", keyName(e.key), err)
	}
	return nil
}

func entrySize(k, v []byte) int { return len(k) + len(v) + entryOverhead }
