package ledger

import (
	"maps"
	"slices"
)

// Clone returns a copy of m that shares nothing with it. A nil record is nil.
func (m *Mutation) Clone() *Mutation { return m.CloneAfter(nil) }

// CloneAfter is Clone for the next version of old, which may be nil. The copy shares with
// old, but not with m, the identity and the request's fields where both have the same: nobody
// may ever change those of either.
func (m *Mutation) CloneAfter(old *Mutation) *Mutation {
	if m == nil {
		return nil
	}
	c := *m
	if old != nil && maps.Equal(old.Identity, m.Identity) {
		c.Identity = old.Identity
	} else {
		c.Identity = maps.Clone(m.Identity)
	}
	if old != nil && maps.EqualFunc(old.Request.Header, m.Request.Header, slices.Equal) {
		c.Request.Header = old.Request.Header
	} else {
		c.Request.Header = m.Request.Header.Clone()
	}
	c.Kept = maps.Clone(m.Kept)
	c.Accepted = slices.Clone(m.Accepted)
	c.Dispatches = slices.Clone(m.Dispatches)
	c.Observations = slices.Clone(m.Observations)
	for i := range c.Observations {
		c.Observations[i].Objects = slices.Clone(c.Observations[i].Objects)
	}
	if m.Result != nil {
		r := *m.Result
		r.Header, r.Trailer = r.Header.Clone(), r.Trailer.Clone()
		c.Result = &r
	}
	c.Escalation = copied(m.Escalation)
	c.Verification = copied(m.Verification)
	c.Diff = m.Diff.clone()
	c.Undo, c.Obligations = copied(m.Undo), slices.Clone(m.Obligations)
	return &c
}

// Clone returns a copy of h that shares nothing with it.
func (h Header) Clone() Header {
	if h == nil {
		return nil
	}
	n := 0
	for _, values := range h {
		n += len(values)
	}
	// The values of all names lie in one array; none can grow into the next.
	all := make([]string, 0, n)
	c := make(Header, len(h))
	for name, values := range h {
		if values == nil {
			c[name] = nil
			continue
		}
		from := len(all)
		all = append(all, values...)
		c[name] = all[from:len(all):len(all)]
	}
	return c
}

// Clone returns a copy of r that shares nothing with it. A nil run is nil.
func (r *Run) Clone() *Run {
	if r == nil {
		return nil
	}
	c := *r
	c.Labels = maps.Clone(r.Labels)
	c.Only, c.FailingKey = copied(r.Only), copied(r.FailingKey)
	c.Steady = slices.Clone(r.Steady)
	return &c
}

// Clone returns a copy of i that shares nothing with it. A nil item is nil.
func (i *Item) Clone() *Item {
	c := copied(i)
	if c != nil {
		c.Changes, c.Rules, c.Drifts = slices.Clone(i.Changes), slices.Clone(i.Rules), slices.Clone(i.Drifts)
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
