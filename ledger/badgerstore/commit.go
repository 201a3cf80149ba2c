package badgerstore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

var pointBeforeCommit = fault.New("badgerstore.before_commit")

// command waits in the queue. Whoever sets taken first decides: the committer
// evaluates it, or its caller gave up.
type command struct {
	fn    func(*tx) error
	taken atomic.Bool
	// done gets the answer; nil for a Note.
	done chan error
	err  error
}

// commands lets a command use the memory of an earlier one.
var commands = sync.Pool{New: func() any { return &command{done: make(chan error, 1)} }}

// batch is one commit in the making.
type batch struct {
	// base is what its commands read; the young memtable is the one that they write into.
	base   reading
	tip    tip
	number uint64
	// entries are its changes, in order: of several of a key the last counts.
	entries []entry
	size    int
	waiting []*command
	// feed is what those who follow are told of it.
	feed     ledger.Changes
	commands int
	// limit is how many commands it takes, most how many bytes before it is full.
	limit, most int
	// events are those that the batch appends; about tells who watches what they are about.
	events [][]byte
	about  string
	// referred are digests of bodies that this batch takes out of the sweep.
	referred []string
	// young is what readers see once it is durable; old is what is folded from then on, nil for nothing.
	young, old *memtable
}

func (b *batch) full() bool { return b.size >= b.most || b.commands >= b.limit }

// empty reports whether nobody waits for the batch and it holds nothing.
func (b *batch) empty() bool { return b.size == 0 && len(b.waiting) == 0 }

// newest is the newest commit of which a command may read something.
func (b *batch) newest() uint64 {
	if b.size > 0 {
		return b.number
	}
	return b.number - 1
}

// Update implements ledger.Store.
func (s *Store) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	return s.do(ctx, func(t *tx) error { return fn(t) })
}

// do evaluates fn and waits until its changes are synced.
func (s *Store) do(ctx context.Context, fn func(*tx) error) error {
	c, _ := commands.Get().(*command)
	c.fn = fn
	if err := s.enqueue(ctx, c); err != nil {
		return err
	}
	select {
	case err := <-c.done:
		// Who answered doesn't look at it any more.
		c.fn, c.err = nil, nil
		c.taken.Store(false)
		commands.Put(c)
		return err
	case <-s.stalled:
	case <-ctx.Done():
		if c.taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
	}
	return s.answered(c)
}

// enqueue holds the door so that Close can't end the committer before c is read.
func (s *Store) enqueue(ctx context.Context, c *command) error {
	s.door.RLock()
	defer s.door.RUnlock()
	if s.closed {
		return fmt.Errorf("%w: the store is closed", ledger.ErrUnavailable)
	}
	if err := s.Healthy(); err != nil {
		return err
	}
	select {
	case s.queue <- c:
		return nil
	case <-s.stalled:
		return s.Healthy()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commitLoop is the committer: the only goroutine that evaluates commands. While one batch is
// being written, it evaluates the next. It rests when no command comes for a while.
func (s *Store) commitLoop(while time.Duration) {
	defer close(s.syncing)
	calm := time.NewTimer(while)
	defer calm.Stop()
	for {
		c, open := s.held, true
		if s.held = nil; c == nil {
			select {
			case c, open = <-s.queue:
			case <-s.notes.come:
			case <-calm.C:
				if !s.rest() {
					calm.Reset(while)
				}
				continue
			}
		}
		if !open && s.notes.count() == 0 {
			return
		}
		b := s.begin()
		if c != nil {
			s.evaluate(b, c)
		}
		s.gather(b)
		s.finish(b)
		calm.Reset(while)
		if s.notes.count() > 0 {
			s.notes.tell()
		}
	}
}

// begin begins a batch, which end ends.
func (s *Store) begin() *batch {
	b := &batch{tip: s.tip, number: s.tip.Commit + 1, limit: fullCommands, most: s.fullBatch}
	if s.config.unmerged {
		b.limit = 1
	}
	b.base, _ = s.state.take()
	if b.base.folded >= s.frozen {
		s.old = nil
	}
	b.base.young, b.base.old, b.base.at = s.head, s.old, allCommits
	return b
}

// end says that the batch reads no more.
func (s *Store) end(b *batch) { s.state.give(b.base) }

// gather evaluates what else waits. It ends when the batch is full, or when nothing waits and the sync before is
// over. It leaves with the turn to sync, unless the batch is empty. A batch of notes alone waits a little for a
// command whose sync it can share. Notes that aren't evaluated yet wait, too.
func (s *Store) gather(b *batch) {
	var timer *time.Timer
	var due <-chan time.Time
	turn, mine, yielded := s.turn, false, false
	for !b.full() {
		if c, ok := s.next(); ok {
			s.evaluate(b, c)
			yielded = false
			continue
		}
		switch {
		case b.empty() && s.notes.count() == 0, mine && yielded:
			s.ready(b, mine)
			return
		case mine:
			runtime.Gosched()
			yielded = true
			continue
		case len(b.waiting) == 0 && timer == nil:
			timer = time.NewTimer(noteDelay)
			defer timer.Stop()
			turn, due = nil, timer.C
		case len(b.waiting) > 0:
			turn, due = s.turn, nil
		}
		select {
		case c, ok := <-s.queue:
			if !ok {
				s.ready(b, mine)
				return
			}
			s.evaluate(b, c)
		case <-s.notes.come:
			if s.notes.count() >= manyNotes {
				s.takeNotes(b)
			}
		case <-turn:
			mine = true
		case <-due:
			s.takeNotes(b)
			turn, due = s.turn, nil
		}
	}
	s.ready(b, mine)
}

// ready takes the last notes into the batch, and then the turn to sync if it isn't mine yet. An empty batch has no
// turn, also if it is full of commands that changed nothing.
func (s *Store) ready(b *batch, mine bool) {
	s.takeNotes(b)
	switch {
	case b.empty() && mine:
		s.turn <- struct{}{}
	case !b.empty() && !mine:
		<-s.turn
	}
}

// next returns a command that waits, if one does.
func (s *Store) next() (*command, bool) {
	select {
	case c, ok := <-s.queue:
		return c, ok
	default:
		return nil, false
	}
}

// evaluate runs one command over the batch, after the notes that came before it. It is answered at once if it
// changed nothing and all that it read is durable. If the notes left no room for it, it is held for the next batch.
func (s *Store) evaluate(b *batch, c *command) {
	if s.takeNotes(b); b.full() {
		s.held = c
		return
	}
	if !c.taken.CompareAndSwap(false, true) {
		return
	}
	b.commands++
	var durable bool
	_ = s.commands.over(&aCommand, func() error { // It reads what may lie on the disk only.
		durable, c.err = s.add(b, c.fn)
		return nil
	})
	switch {
	case c.done != nil && durable:
		c.done <- c.err
	case c.done != nil:
		b.waiting = append(b.waiting, c)
	case c.err != nil:
		s.config.Logger.Warn().Err(c.err).Msg("note not recorded")
	}
}

// add evaluates fn and, if it succeeds, adds its changes to the batch. It reports
// whether the answer holds whatever becomes of the batch.
func (s *Store) add(b *batch, fn func(*tx) error) (durable bool, err error) {
	if err := s.Healthy(); err != nil {
		return true, err
	}
	t := newTx(s, b)
	next := b.tip
	err = t.evaluate(fn, &next)
	durable = t.layer.read <= s.state.durable.Load() && (err != nil || !t.changed())
	if err != nil {
		t.layer.undo()
		if isDamage(err) {
			s.poison(err)
		}
		return durable, err
	}
	b.tip = next
	b.entries = append(b.entries, t.layer.writes...)
	b.size += t.layer.size
	b.feed.Runs = append(b.feed.Runs, t.runs...)
	for _, p := range t.puts {
		b.feed.Mutations = append(b.feed.Mutations, p.Mutation)
		if s.blockers.Put(p.Mutation) {
			s.blockedIn = b.number
		}
	}
	b.events = append(b.events, t.encoded...)
	b.referred = append(b.referred, t.referred...)
	for _, sha256 := range t.uploaded {
		s.pending.add(sha256)
	}
	return durable, nil
}

// finish completes the batch and hands it on to be written and synced. It holds the
// turn to do so, unless the batch is empty.
func (s *Store) finish(b *batch) {
	defer s.end(b)
	if b.empty() {
		return
	}
	if b.size > 0 {
		err := s.commit(b)
		if err == nil {
			s.syncing <- b
			return
		}
		s.poison(err)
	}
	b.answer(s.Healthy())
	s.turn <- struct{}{}
}

// answer wakes the batch's callers.
func (b *batch) answer(err error) {
	for _, c := range b.waiting {
		if c.err == nil {
			c.err = err
		}
		c.done <- c.err
	}
}

// commit completes the batch, and takes it for the last one from now on. It isn't durable
// before persist.
func (s *Store) commit(b *batch) error {
	if err := s.Healthy(); err != nil {
		return err
	}
	if err := s.complete(b, s.now()); err != nil {
		return err
	}
	if fault.Watched() {
		b.about = about(b.events)
	}
	pointBeforeCommit.Pass()
	s.tip = b.tip
	return s.freeze(b)
}

// complete adds the batch's events, which lie under the number of the first.
func (s *Store) complete(b *batch, at time.Time) error {
	if len(b.events) > 0 {
		l := s.layerFor(b)
		stored := &storedEvents{Before: s.tip.Hash, Events: b.events}
		if err := l.putValue(numbered(kEvents, s.tip.Seq+1), stored); err != nil {
			return err
		}
		b.entries = append(b.entries, l.writes...)
		b.size += l.size
	}
	b.tip.Commit = b.number
	b.tip.At = at.UnixNano()
	return nil
}
