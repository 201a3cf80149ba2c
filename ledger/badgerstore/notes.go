package badgerstore

import (
	"fmt"
	"sync"

	"keep-proxy/ledger"
)

const (
	// manyNotes is how many notes wake the committer before their commit is due. They are evaluated in one go, and
	// a command behind them waits.
	manyNotes = 128
	// mostNotes is how many wait before their callers do.
	mostNotes = 4 * manyNotes
)

// notes are what nobody waits for, in their order. The committer evaluates them before the next command, so that
// who comes after a note finds it done. Without a command it evaluates them when their commit is due. It isn't
// woken for each of them.
type notes struct {
	mu   sync.Mutex
	list []func(ledger.Tx) error
	// room is the list before, to be used again.
	room []func(ledger.Tx) error
	// come holds one after the first of a list, and after many.
	come chan struct{}
	// freed is closed when the list is taken; nil if nobody waits for that.
	freed chan struct{}
}

// add returns nil, or what is closed when there may be room.
func (n *notes) add(fn func(ledger.Tx) error) (full <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) >= mostNotes {
		if n.freed == nil {
			n.freed = make(chan struct{})
		}
		return n.freed
	}
	n.list = append(n.list, fn)
	if len(n.list)%manyNotes <= 1 {
		n.tell()
	}
	return nil
}

func (n *notes) tell() {
	select {
	case n.come <- struct{}{}:
	default:
	}
}

func (n *notes) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.list)
}

// take empties the list. What it returns is to be given back.
func (n *notes) take() []func(ledger.Tx) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list, n.room = n.room, nil
	if n.freed != nil {
		close(n.freed)
		n.freed = nil
	}
	return list
}

// back gives back a list of which so many were evaluated; the others come first again.
func (n *notes) back(list []func(ledger.Tx) error, done int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(list[:done])
	if left := list[done:]; len(left) > 0 {
		n.list = append(left, n.list...)
		return
	}
	n.room = list[:0]
}

// Note implements ledger.Store.
func (s *Store) Note(fn func(ledger.Tx) error) {
	if err := s.note(fn); err != nil {
		s.config.Logger.Warn().Err(err).Msg("note not recorded")
	}
}

// note holds the door, so that Close can't end the committer before it has taken fn.
func (s *Store) note(fn func(ledger.Tx) error) error {
	s.door.RLock()
	defer s.door.RUnlock()
	if s.closed {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	for {
		if err := s.Healthy(); err != nil {
			return err
		}
		full := s.notes.add(fn)
		if full == nil {
			return nil
		}
		select {
		case <-full:
		case <-s.stalled:
		}
	}
}

// takeNotes evaluates the notes, as far as the batch takes them.
func (s *Store) takeNotes(b *batch) {
	if s.notes.count() == 0 {
		return
	}
	list, done := s.notes.take(), 0
	_ = s.commands.over(&aCommand, func() error { // They read what may lie on the disk only.
		for ; done < len(list) && !b.full(); done++ {
			fn := list[done]
			b.commands++
			if _, err := s.add(b, func(t *tx) error { return fn(t) }); err != nil {
				s.config.Logger.Warn().Err(err).Msg("note not recorded")
			}
		}
		return nil
	})
	s.notes.back(list, done)
}
