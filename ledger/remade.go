package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
)

// A record that retention removed leaves in the outside world what it made, with its marker
// and vendor key on it. One that is made of the same key afterwards must not take that for its
// own, or owe its undoing, so that it gets others. That a marker was used up is kept as
// evidence of no connector, which takes few bytes, and says no more than the marker does. What
// was found to be of it stays its evidence.

// markedBy is from what the marker and the vendor keys of a mutation are derived: its key,
// or, of a record that was made after others of the key were removed, that and their number.
func markedBy(k Key, remade int) Key {
	if remade == 0 {
		return k
	}
	buf := append([]byte("keep/v1 remade\x00"), k[:]...)
	return sha256.Sum256(binary.BigEndian.AppendUint64(buf, uint64(max(remade, 0))))
}

// mark gives the new record m a marker that no removed record had, and counts these.
func (c *command) mark(m *Mutation) error {
	for m.Remade = 0; ; m.Remade++ {
		m.Marker = Marker(markedBy(m.Key, m.Remade))
		switch _, err := c.EvidenceOf("", "", m.Marker); {
		case errors.Is(err, ErrNotFound):
			return nil
		case err != nil:
			return err
		}
	}
}

// useUp notes that the marker of m, which is removed, isn't free.
func (c *command) useUp(m *Mutation) error {
	return c.PutEvidence("", "", Marker(markedBy(m.Key, m.Remade)), m.Key)
}

// Owns reports whether an upstream object whose evidence is for owner is m's own. Of a key of which
// records were removed before m was made it may be theirs: then it is m's only if m itself found it.
func (m *Mutation) Owns(owner Key, object string) bool {
	if owner != m.Key || m.Remade == 0 {
		return owner == m.Key
	}
	return slices.ContainsFunc(m.Observations, func(o Observation) bool {
		return (o.Seen == SeenApplied || o.Seen == SeenDuplicate) && slices.Contains(o.Objects, object)
	})
}
