package badgerstore

import (
	"bytes"
	"context"
	"errors"
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

// commands spare each command the memory of the one before it.
var commands = sync.Pool{New: func() any { return &command{done: make(chan error, 1)} }}

// batch is one transaction in the making.
type batch struct {
	// base is the newest snapshot as the batch was begun, engine: changed has what it lacks.
	base   snapshot
	engine *shared
	tip    tip
	// before is the link of the commit before it.
	before [32]byte
	// entries is what it changes.
	entries *changes
	// number is that of the commit it will be, changed what it and the batch before
	// it hold so far.
	number  uint64
	changed *changed
	// size is what it changes, in bytes.
	size    int
	waiting []*command
	// feed is what those who follow are told of it.
	feed     ledger.Changes
	commands int
	// limit is how many commands it takes.
	limit int
	// events are those that the batch appends; about tells who watches what they are about.
	// They are gone once the batch is written.
	events [][]byte
	about  string
	// referred are digests of bodies that this batch takes out of the sweep.
	referred []string
}

// holds returns the number of the commit that changed what lies under sk last, if
// that isn't durable yet, else 0.
func (b *batch) holds(sk []byte) uint64 { return b.changed.in(sk) }

// bytes is what the engine gets, looked at only where size is over the limit: that counts events with
// their commands, too, and each change of a value.
func (b *batch) bytes(limit int64) (size int64) {
	if int64(b.size) <= limit {
		return int64(b.size)
	}
	for i := range b.entries.list {
		size += int64(entrySize(b.entries.list[i].key, b.entries.list[i].sealed))
	}
	return size
}

func (b *batch) full() bool { return b.size >= fullBatch || b.commands >= b.limit }

// empty reports whether nobody waits for the batch and it holds nothing.
func (b *batch) empty() bool { return b.size == 0 && len(b.waiting) == 0 }

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
				if s.horizon.behind() && s.Healthy() == nil {
					calm.Reset(while) // The last commit is to be among what the engine gets then.
				} else {
					s.rest()
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
		s.settle(b)
		calm.Reset(while)
		if s.notes.count() > 0 {
			s.notes.tell()
		}
	}
}

// begin begins a batch, which end ends.
func (s *Store) begin() *batch {
	b := &batch{
		tip: s.tip, before: s.tip.Link, number: s.tip.Commit + 1,
		changed: s.changed, limit: fullCommands,
	}
	if s.config.unmerged {
		b.limit = 1
	}
	s.changed.begin(b.number)
	// Not one of its own: that would wait for what the engine is being given.
	b.engine = s.newest.take()
	b.base = b.engine.snapshot
	b.entries = s.changed.now
	return b
}

// end says that the batch reads no more.
func (s *Store) end(b *batch) {
	s.newest.give(b.engine)
	b.changed.end()
}

// gather evaluates what else waits until the batch is full, or the sync before it
// is over and nothing waits any more. It leaves with the turn to sync, unless the
// batch is empty. A batch of notes alone waits a little for a command whose sync it
// can share, and so do notes that aren't evaluated yet.
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

// ready takes the last notes into the batch, and then the turn to sync if it isn't mine yet. A
// batch that is full of commands which change nothing is empty all the same, and has none.
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

// evaluate runs one command over the batch, after the notes that came before it. One that
// changed nothing, and read nothing that isn't durable yet, is answered at once. One for which
// the notes left no room is held for the next batch.
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
	durable = !t.layer.pending && (err != nil || !t.changed())
	if err == nil {
		t.layer.join()
	}
	s.remember(t, err == nil)
	if err != nil {
		if isDamage(err) {
			s.poison(err)
		}
		return durable, err
	}
	b.tip = next
	b.size += t.layer.size
	b.feed.Runs = append(b.feed.Runs, t.runs...)
	for _, m := range t.mutations() {
		b.feed.Mutations = append(b.feed.Mutations, m)
		if s.blockers.Put(m) {
			s.blockedIn = b.number
		}
	}
	b.events = append(b.events, t.encoded...)
	b.referred = append(b.referred, t.referred...)
	for _, u := range t.uploaded {
		s.pending.add(u.sha256, u.number)
	}
	return durable, nil
}

// remember keeps what a command that succeeded has put, and forgets content that it
// removed.
func (s *Store) remember(t *tx, succeeded bool) {
	s.mutations.end(succeeded)
	s.runs.end(succeeded)
	s.items.end(succeeded)
	s.deliveries.end(succeeded)
	s.bodies.end(succeeded)
	s.connectors.end(succeeded)
	s.spans.end(succeeded)
	if !succeeded {
		return
	}
	for _, drop := range t.dropped {
		drop()
	}
	for _, e := range t.layer.writes {
		if e.sealed == nil && e.key[0] == kBody {
			var sum [32]byte
			copy(sum[:], e.key[1:])
			s.bodies.drop(sum)
		}
	}
}

// evaluate runs fn and completes its changes. A panic drops them: the committer
// must outlive a faulty command.
func (t *tx) evaluate(fn func(*tx) error, next *tip) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("command panicked: %v", p)
		}
	}()
	if err := fn(t); err != nil {
		return err
	}
	if t.failed != nil {
		return t.failed
	}
	for _, b := range t.bodies {
		if err := t.requireBody(b); err != nil {
			return err
		}
	}
	return t.complete(next)
}

// settle completes the batch and hands it on to be written and synced. It holds the
// turn to do so, unless the batch is empty.
func (s *Store) settle(b *batch) {
	s.end(b)
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
	if err := s.seal(b, s.config.Now().Wall); err != nil {
		return err
	}
	if fault.Watched() {
		b.about = about(b.events)
	}
	pointBeforeCommit.Pass()
	// From here on it may become durable, so that who reads waits for it.
	s.horizon.wrote(b.number)
	s.tip = b.tip
	return nil
}

// keptBuffer is the largest buffer that is kept for what completes the next batch, in bytes.
const keptBuffer = 64 << 10

// seal adds the batch's events, the commit record, and a checkpoint if one is due.
func (s *Store) seal(b *batch, now time.Time) error {
	l := s.ends
	l.reset(snapshot{})
	before := s.tip
	if len(b.events) > 0 {
		stored := &storedEvents{Before: before.Hash, Events: b.events}
		if err := l.putValue(numbered(kEvents, before.Seq+1), stored); err != nil {
			return err
		}
	}
	b.tip.advance(now)
	if err := l.putValue(commitKey(b.tip.Commit), &storedCommit{Tip: b.tip, Prev: before.Link}); err != nil {
		return err
	}
	written := s.written + uint64(b.size+l.size)
	if next := s.checkpoint.Number + 1; written-s.checkpoint.Bytes >= checkpointBytes || s.checkpointDue {
		c := checkpoint{Number: next, Bytes: written, Before: before, Epoch: s.process.ID}
		if err := l.putValue(numbered(kCheckpoint, next), c); err != nil {
			return err
		}
		s.checkpoint, s.checkpointDue = c, false
	}
	s.written = written
	b.size += l.size
	l.join()
	// What is durable in the journal has to fit into a transaction of the engine.
	if size := b.bytes(s.db.MaxBatchSize()); size > s.db.MaxBatchSize() || int64(len(b.entries.list)) > s.db.MaxBatchCount() {
		return fmt.Errorf("%w: the batch has %d bytes", errTooLarge, size)
	}
	l.reset(snapshot{})
	if l.buffer.Cap() > keptBuffer {
		l.buffer = new(bytes.Buffer)
	}
	return nil
}

// poison makes every later Update fail; the first cause is kept.
func (s *Store) poison(err error) {
	if !errors.Is(err, ledger.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ledger.ErrUnavailable, err)
	}
	if s.sick.CompareAndSwap(nil, &err) {
		s.config.Logger.Error().Err(err).Msg("ledger stopped: nothing may be sent on its word until a restart")
		s.horizon.wake()
		s.giving.wake()
	}
}

// Healthy implements ledger.Store.
func (s *Store) Healthy() error {
	if err := s.sick.Load(); err != nil {
		return *err
	}
	return nil
}
