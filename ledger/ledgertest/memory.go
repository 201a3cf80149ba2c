// Package ledgertest holds doubles of the ledger for tests: Memory, a Store that
// evaluates commands exactly like a real one but keeps nothing on disk.
//
// # Failure
//
// A store fails where a test says so, before or after the change is kept. From then on it answers
// ledger.ErrUnavailable, as the real one does. What was noted and not synced is lost when it is opened again.
package ledgertest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"keep-proxy/ledger"
)

// Memory is a ledger.Store in memory. Commands are evaluated one after another. As with a real store, what was noted
// becomes durable with the next update. Reopen before that loses it. Memory is safe for concurrent use.
type Memory struct {
	process ledger.Process

	mu        sync.Mutex
	followers []func(ledger.Changes)
	// durable is what was acknowledged, or kept although it wasn't.
	durable *layer
	// noted is evaluated, but not durable yet.
	noted *layer
	// broken is why the store takes no updates any more.
	broken error
	fail   failure
	// syncs counts updates that were acknowledged.
	syncs int
}

// failure says what happens to the next update.
type failure int

const (
	noFailure failure = iota
	failBefore
	failAfter
)

var _ ledger.Store = (*Memory)(nil)

// NewMemory returns an empty store for the process.
func NewMemory(process ledger.Process) *Memory {
	process.Ledger = "memory"
	return &Memory{process: process, durable: &layer{}, noted: &layer{}}
}

// Reopen returns the store as another process finds it after this one was lost. It has what is durable, and not what
// was only noted. The old store answers ErrUnavailable from then on.
func (s *Memory) Reopen(process ledger.Process) *Memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = fmt.Errorf("%w: reopened by process %s", ledger.ErrUnavailable, process.ID)
	process.Ledger = s.process.Ledger
	return &Memory{process: process, durable: s.durable.clone(), noted: &layer{}}
}

// FailBefore makes the next update fail before it is kept; from then on the
// store answers ErrUnavailable until Reopen.
func (s *Memory) FailBefore() { s.failNext(failBefore) }

// FailAfter makes the next update fail after it was kept: its caller gets an
// error although Reopen will find it.
func (s *Memory) FailAfter() { s.failNext(failAfter) }

func (s *Memory) failNext(f failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

// Syncs returns how many updates were acknowledged.
func (s *Memory) Syncs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs
}

// Update implements ledger.Store.
func (s *Memory) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	top, err := s.evaluate(fn)
	if err != nil {
		return err
	}
	if top.empty() && s.noted.empty() {
		return nil
	}
	if s.fail != noFailure {
		s.broken = fmt.Errorf("%w: a failure was asked for", ledger.ErrUnavailable)
	}
	if s.fail == failBefore {
		return s.broken
	}
	s.noted.add(top)
	s.durable.add(s.noted)
	for _, told := range s.followers {
		told(s.noted.changes())
	}
	s.noted = &layer{}
	s.syncs++
	return s.broken
}

// evaluate returns the changes of a command over everything before it.
func (s *Memory) evaluate(fn func(ledger.Tx) error) (*layer, error) {
	top := &layer{}
	t := &tx{view: view{layers: layers{s.durable, s.noted, top}, process: s.process}, top: top}
	return top, fn(t)
}

// Note implements ledger.Store.
func (s *Memory) Note(fn func(ledger.Tx) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return
	}
	if top, err := s.evaluate(fn); err == nil {
		s.noted.add(top)
	}
}

// View implements ledger.Store.
func (s *Memory) View(ctx context.Context, fn func(ledger.View) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(&view{layers: layers{s.durable}, process: s.process})
}

// Stored lets fn see what is durable, with the mutations oldest first. They are the kept records, not copies, so they
// must not be changed. They may be held on to, since a later version is another record.
func (s *Memory) Stored(fn func(v ledger.View, all []*ledger.Mutation) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &view{layers: layers{s.durable}, process: s.process}
	return fn(v, v.layers.all())
}

// read evaluates fn on what is durable.
func (s *Memory) read(fn func(*view)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&view{layers: layers{s.durable}, process: s.process})
}

// Follow implements ledger.Store.
func (s *Memory) Follow(follower func(ledger.Changes)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all ledger.Changes
	for _, r := range s.durable.runs {
		if !r.State.Ended() {
			all.Runs = append(all.Runs, r)
		}
	}
	for _, m := range s.durable.mutations {
		if m != nil && (m.Unresolved() || m.Queued()) {
			all.Mutations = append(all.Mutations, m)
		}
	}
	follower(all)
	s.followers = append(s.followers, follower)
	return nil
}

// WriteBody implements ledger.Store.
func (s *Memory) WriteBody(ctx context.Context, content io.Reader) (ledger.Body, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Body{}, err
	}
	all, err := io.ReadAll(content)
	if err != nil {
		return ledger.Body{}, fmt.Errorf("reading a body: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return ledger.Body{}, s.broken
	}
	b := BodyOf(all)
	change(&s.durable.bodies, b.SHA256, all)
	return b, nil
}

// Spool implements ledger.Store.
func (s *Memory) Spool() (ledger.Spool, error) { return &memorySpool{store: s}, nil }

// memorySpool keeps content in memory.
type memorySpool struct {
	bytes.Buffer
	store *Memory
}

// ReadAt implements io.ReaderAt.
func (m *memorySpool) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.Bytes()).ReadAt(p, off)
}

// Size implements ledger.Spool.
func (m *memorySpool) Size() int64 { return int64(m.Len()) }

// Body implements ledger.Spool.
func (m *memorySpool) Body() ledger.Body {
	if m.Len() == 0 {
		return ledger.Body{}
	}
	return BodyOf(m.Bytes())
}

// Keep implements ledger.Spool.
func (m *memorySpool) Keep(ctx context.Context) (ledger.Body, error) {
	return m.store.WriteBody(ctx, bytes.NewReader(m.Bytes()))
}

// Close implements ledger.Spool.
func (m *memorySpool) Close() error { return nil }

// Body implements ledger.Store.
func (s *Memory) Body(_ context.Context, b ledger.Body) (io.ReadCloser, error) {
	if b.Dropped {
		return nil, ledger.ErrBodyDropped
	}
	if b.SHA256 == "" {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.durable.bodies[b.SHA256]
	if !ok {
		return nil, ledger.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// Process implements ledger.Store.
func (s *Memory) Process() ledger.Process { return s.process }

// ID is the ledger's own id.
func (s *Memory) ID() string { return s.process.Ledger }

// Healthy implements ledger.Store.
func (s *Memory) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// Close implements ledger.Store.
func (s *Memory) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil {
		s.durable.add(s.noted)
		s.noted = &layer{}
		s.broken = fmt.Errorf("%w: closed", ledger.ErrUnavailable)
	}
	return nil
}
