package ledger

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
)

// Clone returns a copy of m that shares nothing with it. A nil record is nil.
func (m *Mutation) Clone() *Mutation { return m.CloneAfter(nil) }

// CloneAfter is Clone for the next version of old (or nil). It shares with old what is the same of identity and
// fields, which nobody may change.
func (m *Mutation) CloneAfter(old *Mutation) *Mutation {
	c := m.Draft()
	if c == nil {
		return nil
	}
	if old != nil && (same(old.Identity, m.Identity) || maps.Equal(old.Identity, m.Identity)) {
		c.Identity = old.Identity
	} else {
		c.Identity = maps.Clone(m.Identity)
	}
	if old == nil {
		old = new(Mutation)
	}
	c.Request.Header = m.Request.Header.cloneAfter(old.Request.Header)
	if c.Result != nil {
		var was Result
		if old.Result != nil {
			was = *old.Result
		}
		c.Result.Header, c.Result.Trailer = m.Result.Header.cloneAfter(was.Header), m.Result.Trailer.cloneAfter(was.Trailer)
	}
	return c
}

// Draft returns a copy of m for a command. It shares with m what no command changes in place: identity and
// fields. A nil record is nil.
func (m *Mutation) Draft() *Mutation {
	if m == nil {
		return nil
	}
	c := *m
	c.Kept = maps.Clone(m.Kept)
	c.Accepted = slices.Clone(m.Accepted)
	c.Dispatches = slices.Clone(m.Dispatches)
	c.Observations = slices.Clone(m.Observations)
	for i := range c.Observations {
		c.Observations[i].Objects = slices.Clone(c.Observations[i].Objects)
	}
	c.Result = copied(m.Result)
	c.Escalation, c.Displaced = copied(m.Escalation), slices.Clone(m.Displaced)
	c.Verification = copied(m.Verification)
	c.Diff = m.Diff.clone()
	c.Undo, c.Obligations = copied(m.Undo), slices.Clone(m.Obligations)
	return &c
}

// same reports whether two maps are one.
func same[M ~map[K]V, K comparable, V any](a, b M) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer()
}

// cloneAfter is old where that is the same as h, and else a copy of h.
func (h Header) cloneAfter(old Header) Header {
	if h != nil && old != nil && (same(old, h) || maps.EqualFunc(old, h, slices.Equal)) {
		return old
	}
	return h.Clone()
}

// Clone returns a copy of h that shares nothing with it.
func (h Header) Clone() Header {
	return Header(http.Header(h).Clone())
}

// Clone returns a copy of r that shares nothing with it. A nil run is nil.
func (r *Run) Clone() *Run {
	if r == nil {
		return nil
	}
	c := *r
	c.Labels = maps.Clone(r.Labels)
	c.Only, c.FailingMore = copied(r.Only), slices.Clone(r.FailingMore)
	c.Steady, c.Refused, c.Tolerate = slices.Clone(r.Steady), slices.Clone(r.Refused), slices.Clone(r.Tolerate)
	return &c
}

// Draft is [Mutation.Draft] for a run. What is appended to a list of it makes a new one.
func (r *Run) Draft() *Run {
	c := copied(r)
	if c != nil {
		c.Steady, c.Refused = slices.Clip(r.Steady), slices.Clip(r.Refused)
	}
	return c
}

// Draft is [Mutation.Draft] for an item. What is appended to a list of it makes a new one.
func (i *Item) Draft() *Item {
	c := copied(i)
	if c != nil {
		c.Changes, c.Rules, c.Drifts = slices.Clip(i.Changes), slices.Clip(i.Rules), slices.Clip(i.Drifts)
	}
	return c
}

// Clone returns a copy of i that shares nothing with it. A nil item is nil.
func (i *Item) Clone() *Item {
	c := copied(i)
	if c != nil {
		c.Changes, c.Rules, c.Drifts, c.Redirected = slices.Clone(i.Changes), slices.Clone(i.Rules), slices.Clone(i.Drifts), slices.Clone(i.Redirected)
	}
	return c
}

// copied returns a pointer to a copy of what p points at.
func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
