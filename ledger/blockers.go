package ledger

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
	"unique"
)

// Blockers are the unresolved mutations of each workflow. Many may read at once, while nobody puts.
type Blockers struct {
	of map[string]*stopped
}

// stopped is what blocks one workflow. A nil one blocks nothing.
type stopped struct {
	mutations map[Key]blocked
	// made is the list of them, nil after a change until somebody asks.
	made atomic.Pointer[standstill]
}

// blocked is a blocker with its age, by which blockers are ordered.
type blocked struct {
	created int64
	Blocker
}

// blockedBy is m as it blocks. Its names are copied: those of a record that was read share one text.
func blockedBy(m *Mutation) blocked {
	b := blockerOf(m)
	for _, s := range []*string{&b.ID, &b.Workflow, &b.Item, &b.Run, (*string)(&b.Scope), (*string)(&b.State)} {
		*s = unique.Make(*s).Value()
	}
	return blocked{m.CreatedAt.UnixNano(), b}
}

func byAge(a, b blocked) int {
	return cmp.Or(cmp.Compare(a.created, b.created), bytes.Compare(a.Key[:], b.Key[:]))
}

// Put takes m as it is now, and reports whether that changes what blocks its workflow.
func (b *Blockers) Put(m *Mutation) bool {
	s := b.of[m.Workflow]
	if !m.Unresolved() {
		if !s.has(m.Key) {
			return false
		}
		delete(s.mutations, m.Key)
		s.made.Store(nil)
		if len(s.mutations) == 0 {
			delete(b.of, m.Workflow)
		}
		return true
	}
	is := blockedBy(m)
	if s.has(m.Key) && s.mutations[m.Key] == is {
		return false
	}
	if s == nil {
		s = &stopped{mutations: map[Key]blocked{}}
		if b.of == nil {
			b.of = map[string]*stopped{}
		}
		b.of[is.Workflow] = s
	}
	s.mutations[m.Key] = is
	s.made.Store(nil)
	return true
}

func (s *stopped) has(k Key) bool {
	if s == nil {
		return false
	}
	_, ok := s.mutations[k]
	return ok
}

// Of lists what blocks the workflow, the oldest first. The list must not be changed.
func (b *Blockers) Of(workflow string) []Blocker { return b.of[workflow].standstill().all }

// With lists what blocks the workflow once these mutations are put.
func (b *Blockers) With(workflow string, pending ...*Mutation) []Blocker {
	s := b.of[workflow]
	var after map[Key]blocked
	for _, m := range pending {
		if m.Workflow != workflow || !m.Unresolved() && !s.has(m.Key) {
			continue
		}
		if after == nil {
			after = map[Key]blocked{}
			if s != nil {
				maps.Copy(after, s.mutations)
			}
		}
		if delete(after, m.Key); m.Unresolved() {
			after[m.Key] = blockedBy(m)
		}
	}
	if after == nil {
		return b.Of(workflow)
	}
	return inOrder(after)
}

func inOrder(mutations map[Key]blocked) []Blocker {
	if len(mutations) == 0 {
		return nil
	}
	list := make([]Blocker, 0, len(mutations))
	for _, b := range slices.SortedFunc(maps.Values(mutations), byAge) {
		list = append(list, b.Blocker)
	}
	return list
}

// standstill is what blocks a workflow. Its lists are shared, and never changed.
type standstill struct {
	all []Blocker
	// items are those that stop an item alone, if none stops the workflow.
	items map[string][]Blocker
}

// standstill returns what blocks as requests ask for it.
func (s *stopped) standstill() standstill {
	if s == nil {
		return standstill{}
	}
	made := s.made.Load()
	if made == nil {
		made = standstillOf(inOrder(s.mutations))
		s.made.Store(made)
	}
	return *made
}

// standstillOf parts a workflow's blockers by what they stop.
func standstillOf(all []Blocker) *standstill {
	items := map[string][]Blocker{}
	for _, b := range all {
		switch b.Scope {
		case BlockMutation:
		case BlockItem:
			items[b.Item] = append(items[b.Item], b)
		case BlockWorkflow:
			return &standstill{all: all}
		default: // What this version doesn't know stops the workflow.
			return &standstill{all: all}
		}
	}
	return &standstill{all, items}
}

// forRun are the blockers that may stop a run, without those of other items where none stops more.
func (b *Blockers) forRun(r *Run) []Blocker {
	s := b.of[r.Workflow].standstill()
	if s.items == nil || r.Many() {
		return s.all
	}
	return s.items[r.Item]
}
