package badgerstore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	badger "github.com/dgraph-io/badger/v4"

	"keep-proxy/ledger"
)

// stallAfter is how long a write or a sync may take before the store counts as stopped.
const stallAfter = 30 * time.Second

// closeGrace is how long Close waits for a write that hangs.
const closeGrace = 5 * time.Second

// errHangs is the cause when the disk doesn't answer.
var errHangs = errors.New("the disk doesn't answer")

func (c Config) stallAfter() time.Duration {
	if c.stall > 0 {
		return c.stall
	}
	return stallAfter
}

// looks is how often a watch looks within stallAfter. A hang is found too late by one such part of it at most.
const looks = 16

// What a watch is told that is done.
var (
	aCommand, aSync, aRead, aWrite = "a command", "a sync", "a read", "a write"
)

// watch looks after one goroutine that does what may hang. If that takes longer than stallAfter, the store stops
// and all who wait are answered. Told that the outcome is unknown, a caller knows more than one who waits for a
// disk. What hangs may still end, and become durable: only a restart tells.
//
// A timer for each thing that is done would cost more than many a command. So one looks now and then whether it is
// the same thing still, and rests while nothing is done. A process that was frozen for long finds one look due, and
// doesn't take that for a disk's silence.
type watch struct {
	every   atomic.Int64 // in nanoseconds
	stalled func(what string, after time.Duration)
	// turn is odd while something is done, and another for each; what says what it is.
	turn atomic.Uint64
	what atomic.Pointer[string]
	// armed says that a look is due.
	armed atomic.Bool
	// Of the one look that is due: what it saw last time, and how often since the first.
	seen  uint64
	times int
}

func (s *Store) newWatch() *watch {
	w := &watch{stalled: s.stall}
	w.every.Store(int64(s.config.stallAfter() / looks))
	return w
}

// over does what may hang. One goroutine does so at a time.
func (w *watch) over(what *string, do func() error) error {
	w.what.Store(what)
	w.turn.Add(1)
	defer w.turn.Add(1)
	if !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		w.lookLater()
	}
	return do()
}

func (w *watch) lookLater() { time.AfterFunc(time.Duration(w.every.Load()), w.look) }

// look finds out whether what was done at the last look is done still.
func (w *watch) look() {
	switch turn := w.turn.Load(); {
	case turn%2 == 0:
		w.armed.Store(false)
		// What began in between may have seen that a look is due.
		if w.turn.Load()%2 == 0 || !w.armed.CompareAndSwap(false, true) {
			return
		}
	case turn != w.seen:
		w.seen, w.times = turn, 0
	default:
		if w.times++; w.times == looks {
			w.stalled(*w.what.Load(), looks*time.Duration(w.every.Load()))
			return // for good: the store takes nothing more
		}
	}
	w.lookLater()
}

// stall stops the store and answers those who wait.
func (s *Store) stall(what string, after time.Duration) {
	s.poison(fmt.Errorf("%w: %s has not ended for %v; look at the disk of %s, then start again", errHangs, what, after, s.config.Dir))
	s.stallOnce.Do(func() { close(s.stalled) })
}

// engineFailed stops the store for good. That call of Badger never returns, and who waits for it is answered.
func (s *Store) engineFailed(err error) {
	s.poison(err)
	s.stallOnce.Do(func() { close(s.stalled) })
	s.deadOnce.Do(func() { close(s.dead) })
}

// bounded does what may hang while a caller waits. It returns when the store stalls, and leaves behind what hangs.
func (s *Store) bounded(what *string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- s.newWatch().over(what, do) }()
	select {
	case err := <-done:
		return err
	case <-s.stalled:
		return s.Healthy()
	}
}

// answered waits for the command's answer, or for the store to stall.
func (s *Store) answered(c *command) error {
	select {
	case err := <-c.done:
		return err
	case <-s.stalled:
	}
	select {
	case err := <-c.done:
		return err
	default:
		return s.Healthy()
	}
}

// ended waits until a goroutine has ended, such as the committer. One that hangs is given up, with the files open:
// closing them would wait, too.
func (s *Store) ended(ended <-chan struct{}) error {
	select {
	case <-ended:
		return nil
	case <-s.stalled:
	}
	grace := time.NewTimer(min(closeGrace, s.config.stallAfter()))
	defer grace.Stop()
	select {
	case <-ended:
		return nil
	case <-grace.C:
		return fmt.Errorf("%w: the ledger was left open: %w", ledger.ErrUnavailable, errHangs)
	}
}

// closeEngine closes Badger, if it was opened, and reports whether it had to be left open. Where a disk is full or
// a folder is gone, Badger tries for ever to write its memtables. Whoever closes it would wait as long. What isn't
// in a table is in Badger's WAL, which the next start reads.
func (c Config) closeEngine(db *badger.DB, failed <-chan struct{}) (left bool, err error) {
	if db == nil {
		return false, nil
	}
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	bound := time.NewTimer(c.stallAfter())
	defer bound.Stop()
	select {
	case err := <-closed:
		return false, err
	case <-failed:
		return true, fmt.Errorf("%w: the ledger was left open, as Badger failed", ledger.ErrUnavailable)
	case <-bound.C:
		return true, fmt.Errorf("%w: the ledger was left open, as Badger could not write the last tables for %v; look at the disk of %s",
			ledger.ErrUnavailable, c.stallAfter(), c.Dir)
	}
}
