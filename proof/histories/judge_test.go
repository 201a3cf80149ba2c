package histories

import (
	"net/http"

	"keep-proxy/ledger"
)

// judge holds the records against the API's books, at rest.
func (h *history) judge() {
	if h.machine.up() == nil {
		h.wrongf("the machine is down at rest, so that nobody can look at its records")
	}
	h.judgeReferences()
	all := h.records()
	for _, m := range all {
		if m.Undo != nil {
			h.judgeUndo(m)
			continue
		}
		h.ends[m.State]++
		removed := h.removedAt(m.Key)
		made := h.api.madeSince(m.Marker, removed)
		switch {
		case m.State == ledger.Applied && made == 0 && removed.IsZero():
			h.wrongf("%s is recorded as applied, but never took effect", m.Operation)
		case m.State == ledger.Failed && made > 0:
			h.wrongf("%s is recorded as failed, but took effect", m.Operation)
		case isOpen(m):
			h.wrongf("%s never came to an end: %s", m.Operation, m.State)
		}
		if made > 1 && m.Request.Method != http.MethodPut {
			h.wrongf("%s took effect %d times", m.Operation, made)
		}
		if removed.IsZero() {
			h.judgeDuplicates(m)
		}
	}
}

// judgeReferences holds that nothing took effect more often than was wanted, whatever the
// ledger says of it: once for each subkey and each attempt that a person granted. And that
// there are as many effects as a script was told of.
func (h *history) judgeReferences() {
	for _, item := range h.plan.items {
		if item.runs != nil && item.runs[0].once {
			h.judgeOnce(item)
			continue
		}
		judged := map[string]bool{}
		for _, r := range item.runs {
			for _, s := range r.steps {
				if judged[s.reference] || s.operation == "placed" {
					continue
				}
				judged[s.reference] = true
				total := h.api.total(s.reference, h.window())
				if total > max(1, len(h.asked[s.reference]))*(1+h.attempts[item.name]) {
					h.wrongf("%s took effect %d times", s.operation, total)
				}
				if n := len(h.answered[s.reference]); s.operation == "split" && h.api.total(s.reference, 0) < n {
					h.wrongf("a script was told of %d intents, and %d took effect", n, h.api.total(s.reference, 0))
				}
				if len(h.answered[s.reference]) > 1 {
					h.counts.subkeys++
				}
			}
		}
	}
}

// judgeDuplicates holds that of what the API made twice, and the proxy saw, one is left.
func (h *history) judgeDuplicates(m *ledger.Mutation) {
	all := h.api.made(m.Marker)
	left, stays, twins := 0, 0, 0
	for _, o := range all {
		if o.twin {
			twins++
		}
		if o.gone {
			continue
		}
		if left++; h.waived[o.ID] {
			stays++
		}
	}
	h.counts.twins += twins
	if len(m.Obligations) > 0 && twins > 0 && left-stays > 1 {
		h.wrongf("%s was seen to be there %d times, and %d are left", m.Operation, len(all), left)
	}
}

// judgeUndo holds an obligation's end against the API's books.
func (h *history) judgeUndo(u *ledger.Mutation) {
	gone, _ := h.api.isGone(u.Undo.Object)
	switch {
	case u.State == ledger.Applied && !gone:
		h.wrongf("an obligation is recorded as met, but its object is there")
	case u.State == ledger.Failed && gone:
		h.wrongf("an obligation is recorded as failed, but its object is gone")
	case u.State != ledger.Applied && u.State != ledger.Skipped:
		h.wrongf("an obligation never came to an end: %s", u.State)
	}
}
