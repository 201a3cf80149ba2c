package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unique"
)

// Changes are records as a commit leaves them: shared, so that they must not be changed.
type Changes struct {
	Runs      []*Run
	Mutations []*Mutation
}

// Add adds later changes.
func (c *Changes) Add(later Changes) {
	c.Runs = append(c.Runs, later.Runs...)
	c.Mutations = append(c.Mutations, later.Mutations...)
}

// Standings answer from memory what stands in a request's way. What they answer must not be changed.
type Standings interface {
	// Standing is the run, and those blockers of its workflow that may stop it. One that is over is known for
	// a day.
	Standing(run string) (Run, []Blocker, error)
	// StandingByToken does so for proxy credentials.
	StandingByToken(sha256 string) (Run, []Blocker, error)
	// BlockersOf answers the gate of an unmanaged scope.
	BlockersOf(workflow string) ([]Blocker, error)
	// Watch tells of each change after which one of these three may answer otherwise, until stop is called. It
	// doesn't wait: told needs room for one, and who reads from it asks anew.
	Watch(told chan<- struct{}) (stop func())
	// Running lists the runs that aren't over, by their ids.
	Running() ([]Run, error)
	// ConnectorOf is the connector of a record that is unresolved or queued, "" for any other.
	ConnectorOf(k Key) string
}

// rememberEnded is how long a run that is over still answers the gate.
const rememberEnded = 24 * time.Hour

// standing is Standings by what a store tells of its commits.
type standing struct {
	store    Store
	wall     func() time.Time
	watchers watchers
	// lost is why the store couldn't be followed.
	lost error

	mu       sync.RWMutex
	runs     map[string]*Run
	tokens   map[string]string
	blockers Blockers
	// connectors are those of unresolved and queued mutations.
	connectors map[Key]string
}

func newStanding(s Store, wall func() time.Time) *standing {
	st := &standing{store: s, wall: wall, runs: map[string]*Run{}, tokens: map[string]string{}, connectors: map[Key]string{}}
	if err := s.Follow(st.apply); err != nil {
		st.lost = fmt.Errorf("%w: what stands in the way of requests: %w", ErrUnavailable, err)
	}
	return st
}

// apply takes the changes of a commit. It tells the watchers if one may stop something.
func (s *standing) apply(c Changes) {
	s.mu.Lock()
	stops := false
	for _, r := range c.Runs {
		stops = stops || shuts(s.runs[r.ID], r)
		s.setRun(r)
	}
	for _, m := range c.Mutations {
		stops = s.blockers.Put(m) || stops
		if m.Unresolved() || m.Queued() {
			s.connectors[m.Key] = unique.Make(m.Connector).Value()
		} else {
			delete(s.connectors, m.Key)
		}
	}
	s.mu.Unlock()
	if stops {
		s.watchers.tell()
	}
}

// shuts reports whether what a run was, if it was, may be refused now.
func shuts(was, is *Run) bool {
	return !Admit(*is, nil).Open ||
		was != nil && (was.TokenSHA256 != is.TokenSHA256 || was.Workflow != is.Workflow || was.Item != is.Item)
}

func (s *standing) setRun(r *Run) {
	if old := s.runs[r.ID]; old != nil {
		delete(s.tokens, old.TokenSHA256)
	}
	if r.State.Ended() {
		delete(s.runs, r.ID)
		return
	}
	s.runs[r.ID] = r
	if r.TokenSHA256 != "" {
		s.tokens[r.TokenSHA256] = r.ID
	}
}

// Standing implements Standings.
func (s *standing) Standing(run string) (Run, []Blocker, error) {
	if r, blockers, ok := s.look(func() string { return run }); ok {
		return r, blockers, nil
	}
	return s.readOver(func(v View) (*Run, error) { return v.Run(run) })
}

// StandingByToken implements Standings.
func (s *standing) StandingByToken(sha256 string) (Run, []Blocker, error) {
	if sha256 == "" {
		return Run{}, nil, ErrNotFound
	}
	if r, blockers, ok := s.look(func() string { return s.tokens[sha256] }); ok {
		return r, blockers, nil
	}
	return s.readOver(func(v View) (*Run, error) { return v.RunByToken(sha256) })
}

// look finds a run that isn't over.
func (s *standing) look(id func() string) (Run, []Blocker, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.runs[id()]
	if r == nil || s.lost != nil {
		return Run{}, nil, false
	}
	return *r, s.blockers.forRun(r), true
}

// readOver reads a run that isn't in memory: it is unknown, or over. One that isn't over was not durable
// when the memory was asked.
func (s *standing) readOver(find func(View) (*Run, error)) (Run, []Blocker, error) {
	if s.lost != nil {
		return Run{}, nil, s.lost
	}
	var r *Run
	err := read(context.Background(), s.store, func(v View) (err error) {
		r, err = find(v)
		return err
	})
	switch {
	case err != nil:
		return Run{}, nil, err
	case !r.State.Ended(), s.wall().Sub(r.EndedAt) > rememberEnded:
		return Run{}, nil, ErrNotFound
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return *r, s.blockers.forRun(r), nil
}

// BlockersOf implements Standings.
func (s *standing) BlockersOf(workflow string) ([]Blocker, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.blockers.Of(workflow), s.lost
}

// Watch implements Standings.
func (s *standing) Watch(told chan<- struct{}) (stop func()) { return s.watchers.add(told) }

// Running implements Standings.
func (s *standing) Running() ([]Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]Run, 0, len(s.runs))
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		list = append(list, *s.runs[id])
	}
	return list, s.lost
}

// ConnectorOf implements Standings.
func (s *standing) ConnectorOf(k Key) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.connectors[k]
}

// watchers are whom the gate tells of its changes. The zero value is nobody.
type watchers struct {
	mu  sync.Mutex
	all map[chan<- struct{}]struct{}
}

// add implements Standings.Watch.
func (w *watchers) add(told chan<- struct{}) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[chan<- struct{}]struct{})
	}
	w.all[told] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, told)
	}
}

// tell tells all of them, and waits for none: a channel that has no room says it already.
func (w *watchers) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for told := range w.all {
		select {
		case told <- struct{}{}:
		default:
		}
	}
}
