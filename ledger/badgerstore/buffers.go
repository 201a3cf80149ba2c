package badgerstore

import (
	"reflect"

	badger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/ristretto/v2/z"
)

const (
	// pooledBuffers is how many buffers the engine keeps for the next tables.
	pooledBuffers = 8
	// buffer is the size of one that is large enough for any table but those of the
	// newest level, in bytes: see tableSize.
	buffer = 2 * tableSize
	// trimEvery is how much is written between two looks at the buffers, in bytes: a small
	// part of a memory table, each of which lets one of them grow.
	trimEvery = memTableSize / 8
)

// tableBuffers are the buffers in which the engine has built tables and which it keeps for
// the next ones, as large as they have grown: one that a memory table was written with to
// several times what other tables need. As each is taken in turn, all of them would grow so.
// The engine lets go of one every two seconds, but of none while it builds tables at all.
type tableBuffers struct {
	// pool is nil where the engine has none that is known here.
	pool *z.AllocatorPool
	// trimmed is what had been written when the buffers were looked at last, in bytes.
	trimmed uint64
}

// tableBuffersOf finds the engine's buffers. There is no other way to them than the name of
// the field that holds them; an engine that names it otherwise keeps what it has.
func tableBuffersOf(db *badger.DB) tableBuffers {
	field := reflect.ValueOf(db).Elem().FieldByName("allocPool")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*z.AllocatorPool]() {
		return tableBuffers{}
	}
	return tableBuffers{pool: (*z.AllocatorPool)(field.UnsafePointer())}
}

// trim lets go of what the buffers that aren't in use have grown by, if enough was written
// since it last did. The engine must be open.
func (t *tableBuffers) trim(written uint64) {
	if t.pool == nil || written-t.trimmed < trimEvery {
		return
	}
	t.trimmed = written
	for _, a := range t.take() {
		a.TrimTo(buffer + 1)
		if a.Allocated() == 0 {
			a.Release() // It was larger from the start; without its beginning it is of no use.
			continue
		}
		t.pool.Return(a)
	}
}

// drop lets go of all buffers that aren't in use.
func (t *tableBuffers) drop() {
	if t.pool == nil {
		return
	}
	for _, a := range t.take() {
		a.Release()
	}
}

// take takes the buffers that aren't in use out of the engine's hands.
func (t *tableBuffers) take() []*z.Allocator {
	var taken []*z.Allocator
	for range pooledBuffers {
		a := t.pool.Get(0, "")
		if a.Allocated() < buffer {
			a.Release() // It was made for this call: there are no more.
			break
		}
		taken = append(taken, a)
	}
	return taken
}
