package badgerstore

import (
	"bytes"

	badger "github.com/dgraph-io/badger/v4"
)

// cursor walks the keys of a snapshot with one prefix, in either direction. Of several changes of a key
// the youngest counts; a removed key isn't there.
type cursor struct {
	prefix  []byte
	reverse bool
	legs    []leg
	badger  *badger.Iterator
	// at is the leg whose key is the cursor's, -1 at the end.
	at int
}

// leg is one source of a cursor, the younger ones first.
type leg interface {
	seek(k []byte)
	// key is where the leg stands, nil at its end. It is valid until the next step.
	key() []byte
	// sealed is the value there, nil if the key was removed.
	sealed() ([]byte, error)
	next()
}

func (s snapshot) cursor(prefix []byte, reverse bool) *cursor {
	c := &cursor{prefix: prefix, reverse: reverse, at: -1}
	for _, m := range []*memtable{s.young, s.old} {
		if list := m.sorted(prefix, s.at); len(list) > 0 {
			c.legs = append(c.legs, &memtableLeg{list: list, reverse: reverse})
		}
	}
	if s.txn != nil {
		c.badger = s.txn.NewIterator(badger.IteratorOptions{Reverse: reverse, Prefix: prefix})
		c.legs = append(c.legs, badgerLeg{c.badger, prefix})
	}
	return c
}

// seek goes to the first key that isn't before k, in the cursor's direction.
func (c *cursor) seek(k []byte) {
	for _, l := range c.legs {
		l.seek(k)
	}
	c.settle()
}

// next goes to the next key.
func (c *cursor) next() {
	c.step()
	c.settle()
}

// settle finds the leg that comes first, and goes past keys that were removed.
func (c *cursor) settle() {
	for {
		c.at = -1
		for i, l := range c.legs {
			k := l.key()
			if k == nil {
				continue
			}
			if c.at < 0 || c.before(k, c.legs[c.at].key()) {
				c.at = i
			}
		}
		if c.at < 0 {
			return
		}
		if m, ok := c.legs[c.at].(*memtableLeg); !ok || m.list[m.at].sealed != nil {
			return
		}
		c.step()
	}
}

// step takes every leg past the cursor's key.
func (c *cursor) step() {
	k := bytes.Clone(c.key())
	for _, l := range c.legs {
		if bytes.Equal(l.key(), k) {
			l.next()
		}
	}
}

func (c *cursor) before(a, b []byte) bool {
	order := bytes.Compare(a, b)
	return order < 0 && !c.reverse || order > 0 && c.reverse
}

func (c *cursor) valid() bool { return c.at >= 0 }

// key is where the cursor stands. It is valid until the next step.
func (c *cursor) key() []byte { return c.legs[c.at].key() }

// sealed is the value there, which is valid until the next step.
func (c *cursor) sealed() ([]byte, error) { return c.legs[c.at].sealed() }

func (c *cursor) close() {
	if c.badger != nil {
		c.badger.Close()
	}
}

type badgerLeg struct {
	it     *badger.Iterator
	prefix []byte
}

func (l badgerLeg) seek(k []byte) { l.it.Seek(k) }

func (l badgerLeg) key() []byte {
	if !l.it.ValidForPrefix(l.prefix) {
		return nil
	}
	return l.it.Item().Key()
}

func (l badgerLeg) sealed() (out []byte, err error) {
	return l.it.Item().ValueCopy(nil)
}

func (l badgerLeg) next() { l.it.Next() }
