package ledger

import (
	"slices"
	"time"
)

// Defaults of a policy whose number is missing.
const (
	DefaultSettle        = 5 * time.Minute
	DefaultConfirmations = 2
	DefaultSpacing       = 10 * time.Second
)

// bounds returns the numbers for believing absence, or their defaults.
func (p Policy) bounds() (settle time.Duration, confirmations int, spacing time.Duration) {
	settle, confirmations, spacing = p.Settle, p.Confirmations, p.Spacing
	if settle <= 0 {
		settle = DefaultSettle
	}
	if confirmations <= 0 {
		confirmations = DefaultConfirmations
	}
	if spacing <= 0 {
		spacing = DefaultSpacing
	}
	return settle, confirmations, spacing
}

// Settled reports whether every dispatch of m ended at least settle ago, so that none takes effect any more:
//
//  1. A recorded end counts on the monotonic clock. An end of another boot counts from this process's start.
//  2. A dispatch without an end counts from this process's start if its owner is gone.
//  3. A dispatch that this process may still be sending has not ended.
//
// Without dispatches, or with a time that can't be compared, it is not settled. Nobody else may have the
// ledger open.
func Settled(m *Mutation, now Stamp, process Process) bool {
	settle, _, _ := m.Policy.bounds()
	for i := range m.Dispatches {
		since, ok := quietSince(&m.Dispatches[i], now, process)
		if !ok {
			return false
		}
		if quiet, sameBoot := now.MonoSince(since); !sameBoot || quiet < settle {
			return false
		}
	}
	return len(m.Dispatches) > 0
}

// quietSince returns from when the dispatch counts as ended, and whether it has.
func quietSince(d *Dispatch, now Stamp, process Process) (Stamp, bool) {
	switch {
	case d.Ended != (Stamp{}) && d.Ended.BootID != "" && d.Ended.BootID == now.BootID:
		return d.Ended, true
	case d.Ended != (Stamp{}), gone(d, process):
		return process.Started, true
	}
	return Stamp{}, false
}

// gone reports whether the dispatch's owner is known not to send any more.
func gone(d *Dispatch, process Process) bool {
	return process.ID != "" && d.Owner != process.ID
}

// Deniable reports whether a person may say that m did not happen: once settle is over, or with force.
func Deniable(m *Mutation, now Stamp, process Process, force bool) bool {
	if force {
		return true
	}
	return Settled(m, now, process)
}

// deniableFrom returns the time in whole seconds from which Deniable needs no force, if that can be told.
func deniableFrom(m *Mutation, now Stamp, process Process) (time.Time, bool) {
	settle, _, _ := m.Policy.bounds()
	var left time.Duration
	for i := range m.Dispatches {
		since, ended := quietSince(&m.Dispatches[i], now, process)
		quiet, sameBoot := now.MonoSince(since)
		if !ended || !sameBoot {
			return time.Time{}, false
		}
		left = max(left, settle-quiet)
	}
	return now.Wall.Add(left + time.Second - 1).UTC().Truncate(time.Second), len(m.Dispatches) > 0
}

// stillPossible says until when a sending of m may still take effect, so that a person can wait.
func stillPossible(m *Mutation, now Stamp, process Process) string {
	words := "a sending of it may still take effect"
	if at, known := deniableFrom(m, now, process); known {
		return words + " until " + at.Format(time.RFC3339) + "; before that it needs force"
	}
	return words + "; it needs force"
}

// maxObservations is how many observations a record lists; older ones are in the events.
const maxObservations = 64

// countsAsAbsence reports whether the observation confirms an absence, else why not (docs/semantics.md §6).
func (c *command) countsAsAbsence(m *Mutation, o *Observation, proof bool) (bool, string) {
	switch {
	case m.Committed:
		return false, "the mutation is known to have happened"
	case !proof:
		return false, "the rule doesn't take absence as proof"
	case !Settled(m, o.At, c.Process()) || !Settled(m, c.now, c.Process()):
		return false, "settle was not over when the asking started"
	}
	if _, ok := c.now.MonoSince(o.At); !ok {
		return false, "the time of asking can't be compared with now"
	}
	_, _, spacing := m.Policy.bounds()
	if last := m.lastConfirmation(o.At); last != nil {
		if gap, _ := o.At.MonoSince(last.At); gap < spacing {
			return false, "it came too soon after the confirmation before it"
		}
	}
	return true, ""
}

// confirmations counts the valid confirmations of absence of the same boot.
func (m *Mutation) confirmations(now Stamp) int {
	n := 0
	for i := range m.Observations {
		o := &m.Observations[i]
		if _, sameBoot := now.MonoSince(o.At); o.Seen == SeenAbsent && o.Counted && !o.Voided && sameBoot {
			n++
		}
	}
	return n
}

// recount takes back what was counted by shorter bounds than those of now: it was asked too early.
func (c *command) recount(m *Mutation, was Policy) {
	before, _, between := was.bounds()
	settle, _, spacing := m.Policy.bounds()
	if settle <= before && spacing <= between {
		return
	}
	var last *Observation
	for i := range m.Observations {
		o := &m.Observations[i]
		if !o.Counted || o.Voided {
			continue
		}
		if last != nil && o.At.BootID == last.At.BootID {
			gap, _ := o.At.MonoSince(last.At)
			o.Counted = gap >= spacing
		}
		if o.Counted = o.Counted && Settled(m, o.At, c.Process()); !o.Counted {
			o.Reason = join(o.Reason, "it was asked too early for the settings of now")
			continue
		}
		last = o
	}
}

// lastConfirmation is the newest valid confirmation of the same boot as now.
func (m *Mutation) lastConfirmation(now Stamp) *Observation {
	for i := len(m.Observations) - 1; i >= 0; i-- {
		if o := &m.Observations[i]; o.Counted && !o.Voided && o.At.BootID == now.BootID {
			return o
		}
	}
	return nil
}

// addObservation appends o, and drops the oldest that counts for nothing if there are too many.
func (m *Mutation) addObservation(o Observation) {
	m.Observations = append(m.Observations, o)
	if len(m.Observations) <= maxObservations {
		return
	}
	for i := range m.Observations {
		if old := &m.Observations[i]; old.Voided || !old.Counted {
			m.Observations = append(m.Observations[:i], m.Observations[i+1:]...)
			m.Dropped++
			return
		}
	}
}

// Caution is what is asked for before an absence is believed. A zero field asks for nothing.
type Caution struct {
	Settle, Spacing time.Duration
	Confirmations   int
	OnAbsent        OnAbsent
}

// careful are what an absence may lead to, the most careful last.
var careful = []OnAbsent{AbsentRedispatch, AbsentFail, AbsentEscalate}

// Heeding is p as careful as c, and nowhere less careful. What was sent under long bounds is not judged by short
// ones.
func (p Policy) Heeding(c Caution) Policy {
	settle, confirmations, spacing := p.bounds()
	if c.Settle > settle {
		p.Settle = c.Settle
	}
	if c.Confirmations > confirmations {
		p.Confirmations = c.Confirmations
	}
	if c.Spacing > spacing {
		p.Spacing = c.Spacing
	}
	if slices.Index(careful, c.OnAbsent) > slices.Index(careful, p.OnAbsent) && p.OnAbsent != "" {
		p.OnAbsent = c.OnAbsent
	}
	return p
}
