package histories

import (
	"slices"
	"time"

	"keep-proxy/ledger"
)

// verified are the operations whose stored results are given only after asking, or with a note.
var verified = []string{"warned", "strict", "shown"}

// replays judges a stored answer that a script got: it was not dropped before, and where the rule
// wants the world asked first, the API showed the effect to somebody since the script asked, unless
// a person wanted the answer given all the same. What a script was told of may vanish.
func (h *history) replays(s step, m *ledger.Mutation, got reply, began time.Time) {
	if !got.replayed {
		h.vanishes(s, m.Marker)
		return
	}
	if at := h.forgottenAt(m.Key); !at.IsZero() && at.Before(began) {
		h.wrongf("a script was given the answer of %s, which was dropped", s.operation)
	}
	h.mu.Lock()
	wanted := h.acknowledged[m.ID]
	h.mu.Unlock()
	wanted = wanted || !h.removedAt(m.Key).Before(began) // It may have been wanted of the one that was there.
	if asks := s.operation == "strict" || s.operation == "shown"; !asks || wanted {
		return
	}
	switch at, there := h.api.lastShown(m.Marker, began); {
	case !there:
		h.wrongf("a script was given the answer of %s again, which is not there any more", s.operation)
	case at.Before(began):
		h.wrongf("a script was given the answer of %s again, and nobody asked whether it is there", s.operation)
	}
}

// unanswered judges that a script was refused what was applied.
func (c *caller) unanswered(got reply, began time.Time) {
	h := c.h
	if got.problem == "forgotten" {
		h.count(func(c *counts) { c.refused++ })
		return
	}
	c.run.stopped = c.token != ""
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.unverified++
	if at := h.since[got.mutation]; !at.IsZero() && at.Before(began) {
		h.wrongs = append(h.wrongs, "a script was refused what a person wanted replayed")
	}
}

// vanishes lets somebody else take back, now and then, what a script was told of.
func (h *history) vanishes(s step, marker string) {
	if !slices.Contains(verified, s.operation) {
		return
	}
	number := fateNumber("vanish "+s.reference, 0)
	r := drawn(h.plan.seed, "vanish "+s.reference, 0)
	if h.plan.leftOut(number) || r.IntN(2) == 0 {
		return
	}
	h.plan.mu.Lock()
	h.plan.drawn[number] = true
	h.plan.mu.Unlock()
	after := upTo(r, 100*time.Second)
	h.api.working.Go(func() {
		pause(after)
		if h.api.vanish(marker) {
			h.count(func(c *counts) { c.vanished++ })
		}
	})
}

// vanish takes the objects of a marker away, and reports whether there was one.
func (a *api) vanish(marker string) (one bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.objects {
		if o.KeepID == marker && !o.gone {
			o.gone, o.lost, one = true, time.Now(), true
		}
	}
	return one
}

// lastShown is when an object of a marker was last shown to a reader, and whether one was still
// there at a time.
func (a *api) lastShown(marker string, when time.Time) (at time.Time, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.objects {
		if o.KeepID == marker && (!o.gone || !o.lost.Before(when)) {
			there = true
		}
	}
	return a.showed[marker], there
}
