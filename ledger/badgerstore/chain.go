package badgerstore

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"keep-proxy/ledger"
)

// tip is the end of the ledger: of its events, and of its commits.
type tip struct {
	// Commit counts transactions from 1 without gaps; Link chains them.
	Commit uint64   `cbor:"1,keyasint"`
	Link   [32]byte `cbor:"2,keyasint"`
	// Seq and Hash are those of the last event, zero before the first.
	Seq  uint64   `cbor:"3,keyasint"`
	Hash [32]byte `cbor:"4,keyasint"`
	At   int64    `cbor:"5,keyasint"`
}

// advance links the next transaction to the chain of commits.
func (t *tip) advance(at time.Time) {
	t.Commit++
	t.At = at.UnixNano()
	t.Link = t.link(t.Link)
}

// link computes the commit's link from the one before it. The time makes two
// histories that went apart differ, also where they hold no event.
func (t *tip) link(prev [32]byte) [32]byte {
	buf := make([]byte, 0, 32+8+8+32+8)
	buf = append(buf, prev[:]...)
	buf = binary.BigEndian.AppendUint64(buf, t.Commit)
	buf = binary.BigEndian.AppendUint64(buf, t.Seq)
	buf = append(buf, t.Hash[:]...)
	buf = binary.BigEndian.AppendUint64(buf, uint64(t.At))
	return sha256.Sum256(buf)
}

// storedCommit is a commit record: the tip after it, and the link before it.
type storedCommit struct {
	Tip  tip      `cbor:"1,keyasint"`
	Prev [32]byte `cbor:"2,keyasint"`
}

func commitKey(n uint64) []byte { return numbered(kCommit, n%commitRing) }

// readCommit returns commit n; one that left the ring is ledger.ErrNotFound.
func readCommit(src source, n uint64) (storedCommit, error) {
	sk := commitKey(n)
	content, err := src.get(sk)
	if err != nil {
		return storedCommit{}, err
	}
	var c storedCommit
	if err := decode(sk, content, &c); err != nil {
		return storedCommit{}, err
	}
	if c.Tip.link(c.Prev) != c.Tip.Link {
		return storedCommit{}, damaged(sk, "the commit's link doesn't match")
	}
	if c.Tip.Commit != n {
		return storedCommit{}, ledger.ErrNotFound
	}
	return c, nil
}

// walkCommits follows the commits after from as far as they go. A commit that is
// missing ends the walk: the high-water mark tells whether it was acknowledged.
func walkCommits(src source, from tip) (tip, error) {
	last := from
	for {
		c, err := readCommit(src, last.Commit+1)
		if errors.Is(err, ledger.ErrNotFound) {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		if c.Prev != last.Link {
			return last, fmt.Errorf("%w: commit %d doesn't follow the one before it", ledger.ErrDamaged, c.Tip.Commit)
		}
		last = c.Tip
	}
}
