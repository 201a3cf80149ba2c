package badgerstore

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// errTooLarge refuses a command whose changes fit no transaction.
var errTooLarge = errors.New("the command's changes are too large for one transaction")

func sum256(b []byte) [32]byte { return sha256.Sum256(b) }

// layer holds the pending changes of one command over the batch's transaction,
// which already holds those of the commands before it. A nil value is a deletion.
type layer struct {
	base   snapshot
	writes map[string][]byte
	size   int
}

func newLayer(base snapshot) *layer {
	return &layer{base: base, writes: make(map[string][]byte, 16)}
}

func (l *layer) raw(k []byte) ([]byte, error) {
	if v, ok := l.writes[string(k)]; ok {
		if v == nil {
			return nil, ledger.ErrNotFound
		}
		return v, nil
	}
	return l.base.raw(k)
}

func (l *layer) get(k []byte) ([]byte, error) {
	content, err := raw(l.raw).content(k)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(content), nil
}

func (l *layer) has(k []byte) (bool, error) {
	_, err := l.raw(k)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func (l *layer) keys(prefix []byte) ([][]byte, error) {
	set := map[string]bool{}
	l.base.each(prefix, func(k []byte) bool {
		set[string(k)] = true
		return true
	})
	for k, v := range l.writes {
		if !strings.HasPrefix(k, string(prefix)) {
			continue
		}
		if v == nil {
			delete(set, k)
		} else {
			set[k] = true
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
	head, err := encode(s)
	if err != nil {
		return err
	}
	l.set(k, seal(k, head, flagSplit))
	return l.fits()
}

// putValue encodes v and stores it under k.
func (l *layer) putValue(k []byte, v any) error {
	content, err := encode(v)
	if err != nil {
		return err
	}
	return l.put(k, content)
}

func (l *layer) remove(k []byte) { l.set(k, nil) }

func (l *layer) set(k, sealed []byte) {
	if old, ok := l.writes[string(k)]; ok {
		l.size -= entrySize(k, old)
	}
	l.writes[string(k)] = sealed
	l.size += entrySize(k, sealed)
}

func (l *layer) fits() error {
	if l.size > maxCommand {
		return fmt.Errorf("%w: %d bytes", errTooLarge, l.size)
	}
	return nil
}

// apply moves the changes into the batch's transaction.
func (l *layer) apply(txn *badger.Txn) error {
	for k, v := range l.writes {
		var err error
		if v == nil {
			err = txn.Delete([]byte(k))
		} else {
			err = txn.Set([]byte(k), v)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", keyName([]byte(k)), err)
		}
	}
	return nil
}

func entrySize(k, v []byte) int { return len(k) + len(v) + entryOverhead }
