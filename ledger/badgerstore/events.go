package badgerstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"keep-proxy/ledger"
)

// storedEvents are the events of one commit, stored under the number of the first.
// Each event's hash is that of the hash before it and its own bytes.
type storedEvents struct {
	_ struct{} `cbor:",toarray"`
	// Before is the hash of the event before the first.
	Before [32]byte
	// Events are events, each encoded by itself.
	Events [][]byte
}

// linked is the hash of an event, as it is stored, after one with the hash before.
func linked(before [32]byte, event []byte) [32]byte {
	content := append(make([]byte, 0, len(before)+len(event)), before[:]...)
	return sha256.Sum256(append(content, event...))
}

// chained is a stored event with its place in the chain.
type chained struct {
	ledger.Event
	prev, hash [32]byte
}

// appendEvent numbers e, chains it to t and keeps it for the commit. It gets an index entry unless its mutation's
// record lists it.
func (l *layer) appendEvent(t *tip, e *ledger.Event, listed bool) (event []byte, err error) {
	e.Seq = t.Seq + 1
	l.buffer.Reset()
	l.buffer.Write(t.Hash[:])
	if err := encode(&l.buffer, e); err != nil {
		return nil, err
	}
	hash := sha256.Sum256(l.buffer.Bytes())
	event = bytes.Clone(l.buffer.Bytes()[len(t.Hash):])
	if e.Mutation != "" && !listed {
		if err := l.put(historyKey(e.Mutation, e.Seq), nil); err != nil {
			return nil, err
		}
	}
	l.size += len(event)
	t.Seq, t.Hash = e.Seq, hash
	return event, l.fits()
}

func historyKey(mutation string, seq uint64) []byte {
	d := digest(mutation)
	return key(xHistory, d[:], binary.BigEndian.AppendUint64(nil, seq))
}

// events reads events. It keeps the last commit's, so that those who read on don't
// look for each.
type events struct {
	src snapshot
	// it walks the commits' events backwards.
	it *cursor
	// first is the number of the first event of block.
	first uint64
	block []chained
}

func newEvents(src snapshot) *events {
	return &events{src: src, it: src.cursor([]byte{kEvents}, true)}
}

func (r *events) close() { r.it.close() }

// at returns the event number seq; a missing one is ledger.ErrNotFound.
func (r *events) at(seq uint64) (chained, error) {
	if seq < r.first || seq-r.first >= uint64(len(r.block)) {
		if err := r.find(seq); err != nil {
			return chained{}, err
		}
	}
	return r.block[seq-r.first], nil
}

// find loads the events among which number seq is.
func (r *events) find(seq uint64) error {
	if r.it.seek(numbered(kEvents, seq)); r.it.valid() {
		if err := r.load(bytes.Clone(r.it.key())); err != nil {
			return err
		}
		if seq-r.first < uint64(len(r.block)) {
			return nil
		}
	}
	return ledger.ErrNotFound
}

// load reads the events under sk.
func (r *events) load(sk []byte) error {
	content, err := r.src.get(sk)
	if err != nil {
		return required(err, "events "+keyName(sk))
	}
	_, err = r.take(sk, content)
	return err
}

// take reads the events in content, the value under sk, and returns the hash of the event before them.
func (r *events) take(sk, content []byte) (before [32]byte, err error) {
	first := binary.BigEndian.Uint64(sk[1:])
	stored, err := chainEvents(sk, content)
	if err != nil {
		return before, err
	}
	for i := range stored.block {
		if seq, want := stored.block[i].Seq, first+uint64(i); seq != want {
			return before, damaged(sk, fmt.Sprintf("it holds event %d in the place of %d", seq, want))
		}
	}
	r.first, r.block = first, stored.block
	return stored.before, nil
}

// chainedEvents are the events of one commit, and the hash of the one before the first.
type chainedEvents struct {
	before [32]byte
	block  []chained
}

// chainEvents reads the events of one commit, which lie under sk.
func chainEvents(sk, content []byte) (c chainedEvents, err error) {
	var stored storedEvents
	if err := decode(sk, content, &stored); err != nil {
		return c, err
	}
	c = chainedEvents{before: stored.Before, block: make([]chained, len(stored.Events))}
	prev := c.before
	for i, event := range stored.Events {
		c.block[i].prev, c.block[i].hash = prev, linked(prev, event)
		prev = c.block[i].hash
		if err := decode(sk, event, &c.block[i].Event); err != nil {
			return c, err
		}
	}
	return c, nil
}

// last returns the last event that is stored; ledger.ErrNotFound if there is none.
func (r *events) last() (chained, error) {
	if k := r.src.last([]byte{kEvents}); k != nil {
		if err := r.load(k); err != nil {
			return chained{}, err
		}
		if n := len(r.block); n > 0 {
			return r.block[n-1], nil
		}
		return chained{}, damaged(k, "it holds no event")
	}
	return chained{}, ledger.ErrNotFound
}

// after returns up to limit events from the one after number after on. Numbers that a
// loss left out are left out.
func (r *events) after(ctx context.Context, after uint64, limit int) (out []ledger.Event, err error) {
	// Among those of one commit may be the next.
	start := numbered(kEvents, after+1)
	if r.it.seek(start); r.it.valid() {
		start = bytes.Clone(r.it.key())
	}
	var blocks [][]byte
	r.src.after([]byte{kEvents}, start, func(k []byte) bool {
		blocks = append(blocks, bytes.Clone(k))
		return len(blocks) <= limit && ctx.Err() == nil
	})
	for _, sk := range blocks {
		if len(out) >= limit {
			break
		}
		if err := r.load(sk); err != nil {
			return nil, err
		}
		for _, e := range r.block {
			if e.Seq > after && len(out) < limit {
				out = append(out, e.Event)
			}
		}
	}
	return out, ctx.Err()
}

// numbersAfter lists the numbers at the end of keys that are greater than after. Lost events are left out.
func numbersAfter(ctx context.Context, src snapshot, prefix []byte, after uint64, limit int, lost lostEvents) []uint64 {
	var out []uint64
	start := binary.BigEndian.AppendUint64(bytes.Clone(prefix), after+1)
	src.after(prefix, start, func(k []byte) bool {
		if seq := binary.BigEndian.Uint64(k[len(k)-8:]); !lost.holds(seq) {
			out = append(out, seq)
		}
		return len(out) < limit && ctx.Err() == nil
	})
	return out
}

// stretch are events of which each follows the one before it.
type stretch struct {
	// first is the number of the first one, next that of the one after the last.
	first, next uint64
	// before is the hash of the event before the first, last that of the last one.
	before, last [32]byte
}

// stretchOf are the events of one commit.
func stretchOf(first uint64, before [32]byte, block []chained) stretch {
	s := stretch{first: first, next: first + uint64(len(block)), before: before, last: before}
	if len(block) > 0 {
		s.last = block[len(block)-1].hash
	}
	return s
}

// join puts o at the end of s; false if it doesn't follow.
func (s *stretch) join(o stretch) bool {
	if o.first != s.next || o.before != s.last {
		return false
	}
	s.next, s.last = o.next, o.last
	return true
}

// verifyEvents wants all events up to to, each after the one before it, and no others. Those that were lost
// are missing. It shows each to seen.
func verifyEvents(src snapshot, to tip, lost lostEvents, seen func(k []byte, e ledger.Event) error) error {
	r := newEvents(src)
	defer r.close()
	all := stretch{next: 1}
	missing := func() error {
		return fmt.Errorf("%w: event %d of %d is missing", ledger.ErrDamaged, all.next, to.Seq)
	}
	var err error
	src.each([]byte{kEvents}, func(k []byte) bool {
		if err = r.load(k); err != nil {
			return false
		}
		var before [32]byte
		if len(r.block) > 0 {
			before = r.block[0].prev
		}
		lost = lost.after(&all)
		switch {
		case all.join(stretchOf(r.first, before, r.block)):
		case r.first > all.next:
			err = missing()
		default:
			err = fmt.Errorf("%w: event %d doesn't follow the one before it", ledger.ErrDamaged, r.first)
		}
		for i := 0; err == nil && i < len(r.block); i++ {
			err = seen(k, r.block[i].Event)
		}
		return err == nil
	})
	lost = lost.after(&all)
	switch {
	case err != nil:
		return err
	case all.next <= to.Seq:
		return missing()
	case all.next > to.Seq+1 || all.last != to.Hash || len(lost) > 0:
		return fmt.Errorf("%w: the events up to %d don't lead to the last commit", ledger.ErrDamaged, to.Seq)
	}
	return nil
}
