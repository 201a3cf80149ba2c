package badgerstore

import (
	"slices"
	"sync"
	"sync/atomic"

	"keep-proxy/ledger"
)

// stopped is what blocks one workflow. Its lists are made when somebody asks: where
// thousands of mutations are unknown, and none is asked about in between, each that is
// settled costs a note, and not a list of the others. It is changed under the gate's lock;
// who reads holds that lock for reading. A nil one blocks nothing.
type stopped struct {
	// count is how many mutations block.
	count int

	mu sync.Mutex
	// list is ordered by age, and never changed once it was made; changes have come since,
	// by key.
	list    []blocked
	changes map[ledger.Key]change
	// made is what follows from both; nil after a change.
	made atomic.Pointer[standstill]
}

// change is a mutation that blocks from now on, or no more.
type change struct {
	blocked
	unresolved bool
}

// manyChanges is how many changes may wait however short the list is.
const manyChanges = 64

// put reports whether c changes anything.
func (s *stopped) put(c change) bool {
	was, blocks := s.find(c.blocked)
	if blocks == c.unresolved && (!blocks || was == c.blocked) {
		return false
	}
	switch {
	case c.unresolved && !blocks:
		s.count++
	case blocks && !c.unresolved:
		s.count--
	}
	if s.changes == nil {
		s.changes = map[ledger.Key]change{}
	}
	s.changes[c.key] = c
	s.made.Store(nil)
	if len(s.changes) > max(manyChanges, len(s.list)/2) {
		s.fold()
	}
	return true
}

// find returns the mutation of b as it blocks now, if it does.
func (s *stopped) find(b blocked) (blocked, bool) {
	if c, ok := s.changes[b.key]; ok {
		return c.blocked, c.unresolved
	}
	at, found := slices.BinarySearchFunc(s.list, b, byAge)
	if !found {
		return blocked{}, false
	}
	return s.list[at], true
}

// fold makes another list, of which the changes are a part.
func (s *stopped) fold() {
	if len(s.changes) == 0 {
		return
	}
	var added []blocked
	for _, c := range s.changes {
		if c.unresolved {
			added = append(added, c.blocked)
		}
	}
	slices.SortFunc(added, byAge)
	list := make([]blocked, 0, s.count)
	for _, b := range s.list {
		if _, changed := s.changes[b.key]; changed {
			continue
		}
		for len(added) > 0 && byAge(added[0], b) < 0 {
			list, added = append(list, added[0]), added[1:]
		}
		list = append(list, b)
	}
	list = append(list, added...)
	s.list, s.changes = list, nil
}

// sorted returns what blocks, by age; it must not be changed.
func (s *stopped) sorted() []blocked {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fold()
	return s.list
}

// standstill returns what blocks as requests ask for it.
func (s *stopped) standstill() standstill {
	if s == nil {
		return standstill{}
	}
	if made := s.made.Load(); made != nil {
		return *made
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if made := s.made.Load(); made != nil {
		return *made
	}
	s.fold()
	made := standstillOf(s.list)
	s.made.Store(&made)
	return made
}

// standstill is what blocks a workflow. Its lists are shared, and never changed.
type standstill struct {
	all []ledger.Blocker
	// items are those that stop an item alone, if none stops the workflow.
	items map[string][]ledger.Blocker
}

// standstillOf parts a workflow's blockers by what they stop.
func standstillOf(list []blocked) standstill {
	s := standstill{all: plain(list)}
	items := map[string][]ledger.Blocker{}
	for _, b := range s.all {
		switch b.Scope {
		case ledger.BlockMutation:
		case ledger.BlockItem:
			items[b.Item] = append(items[b.Item], b)
		case ledger.BlockWorkflow:
			return s
		default: // What this version doesn't know stops the workflow.
			return s
		}
	}
	s.items = items
	return s
}

// of are the blockers that may stop a run: a thousand items that stand still are not
// looked through for each request of another.
func (s standstill) of(r *ledger.Run) []ledger.Blocker {
	if s.items == nil || r.Many() {
		return s.all
	}
	return s.items[r.Item]
}
