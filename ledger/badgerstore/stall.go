package badgerstore

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

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

// watched does what may hang. If it takes longer than stallAfter, the store is stopped
// and all who wait are answered, since a caller who waits for a disk knows less than one
// who is told that the outcome is unknown. What hangs may still end, and become durable:
// only a restart tells. The time passes in two halves, so that a process that was frozen
// for long in between doesn't take that for a disk's silence.
func (s *Store) watched(what string, do func() error) error {
	half := s.config.stallAfter() / 2
	var ended atomic.Bool
	first := time.AfterFunc(half, func() {
		time.AfterFunc(half, func() {
			if !ended.Load() {
				s.stall(what, 2*half)
			}
		})
	})
	defer first.Stop()
	defer ended.Store(true)
	return do()
}

// stall stops the store and answers those who wait.
func (s *Store) stall(what string, after time.Duration) {
	s.poison(fmt.Errorf("%w: %s has not ended for %v; look at the disk of %s, then start again", errHangs, what, after, s.config.Dir))
	s.stallOnce.Do(func() { close(s.stalled) })
}

// bounded is watched for those who are asked to wait: it returns when the store stalls,
// and leaves behind what hangs.
func (s *Store) bounded(what string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- s.watched(what, do) }()
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

// drain waits until the committer has ended. One that hangs is given up, with the files
// open: closing them would wait, too.
func (s *Store) drain() error {
	select {
	case <-s.drained:
		return nil
	case <-s.stalled:
	}
	grace := time.NewTimer(min(closeGrace, s.config.stallAfter()))
	defer grace.Stop()
	select {
	case <-s.drained:
		return nil
	case <-grace.C:
		return fmt.Errorf("%w: the ledger was left open: %w", ledger.ErrUnavailable, errHangs)
	}
}
