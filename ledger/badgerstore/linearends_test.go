package badgerstore

import (
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// What the model knows of how dispatches end: docs/semantics.md §§3, 5 and 9.

// finish judges the end of a dispatch.
func (w *world) finish(q *asked) answered {
	m, at, why := w.fenced(q)
	if why != "" {
		return answered{Got: why}
	}
	r, d := rulesOf(q.Item, q.Key), &m.Dispatches[at]
	judged, class := ledger.VerdictUncertain, verdict.Transient
	for _, v := range []ledger.Verdict{ledger.VerdictApplied, ledger.VerdictCommitted, ledger.VerdictFailed, ledger.VerdictNotSent} {
		if q.is(string(v)) {
			judged = v
		}
	}
	if q.is("logic") {
		class = verdict.Logic
	}
	if judged == ledger.VerdictUncertain && r.prepares && !d.Prepared {
		judged, class = ledger.VerdictNotSent, verdict.Transient
	}
	succeeds := judged == ledger.VerdictApplied && (d.Verdict == ledger.VerdictUncertain || d.Verdict == ledger.VerdictCommitted) ||
		judged == ledger.VerdictCommitted && d.Verdict == ledger.VerdictUncertain
	if d.Verdict != "" && !succeeds {
		return answered{Got: refused}
	}
	d.Verdict = judged
	d.Resolved = d.Resolved || judged == ledger.VerdictApplied || judged.Failure()
	newest, run := at == len(m.Dispatches)-1, d.Run
	m.Version++
	if m.final() || !w.moves(m, at, newest) {
		return w.tell(m, run)
	}
	if judged == ledger.VerdictCommitted {
		m.Committed = true
	}
	if d.Resend && judged == ledger.VerdictNotSent && m.Resends > 0 {
		m.Resends--
	}
	if d.Resend && judged == ledger.VerdictFailed || m.Resends >= resendsAtMost {
		m.ResendsClosed = true
	}
	w.judged(q, m, at, newest, class)
	w.after(q, m, run)
	m.undoFailed(r)
	if m.State == ledger.Failed && m.Of == "" && m.Dispatches[at].Redispatch {
		m.ask(ledger.EscalationAbsent)
	}
	return w.tell(m, run)
}

// final reports whether no end of a dispatch moves the record.
func (m *record) final() bool {
	return m.State == ledger.Skipped || m.State == ledger.Applied && (m.Known || len(m.Obligations) > 0)
}

// moves reports whether the dispatch's end moves the record: any late success does, and
// every other verdict only of the newest one.
func (w *world) moves(m *record, at int, newest bool) bool {
	switch m.Dispatches[at].Verdict {
	case ledger.VerdictApplied:
		return true
	case ledger.VerdictCommitted:
		return m.State != ledger.Applied
	}
	return newest && (m.State == ledger.InFlight || m.State == ledger.NeedsReconcile)
}

// judged carries a dispatch's end out.
func (w *world) judged(q *asked, m *record, at int, newest bool, class verdict.Class) {
	r, judged := rulesOf(q.Item, q.Key), m.Dispatches[at].Verdict
	inline := q.is("pending")
	switch {
	case judged == ledger.VerdictApplied && m.State == ledger.InFlight && m.sendingFrom(at+1):
		m.Committed, m.Known, m.Result = true, true, q.Dispatch
		m.Queued = false
	case judged == ledger.VerdictApplied:
		m.happened(q.Dispatch)
	case judged == ledger.VerdictCommitted && (!newest || m.State != ledger.InFlight):
		m.committed(r)
	case m.Committed && m.Known && m.sendingFrom(at+1):
	case m.Committed && m.Known:
		m.happened(m.Result)
	case m.State == ledger.NeedsReconcile:
		m.to(ledger.NeedsReconcile, "")
	case judged.Failure() && !m.Committed && !m.earlierOpen(at):
		m.to(ledger.Failed, "")
		m.Class = class
	default:
		m.unknown(r, inline)
	}
}

// committed: success is known, its answer isn't.
func (m *record) committed(r rules) {
	m.Committed = true
	switch {
	case m.State == ledger.InFlight:
	case m.State == ledger.NeedsReconcile:
	case r.reconciler:
		m.answer(aboutOutcome)
		m.to(ledger.NeedsReconcile, "")
	default:
		m.happenedSomehow(ledger.EscalationNoResult)
	}
}

// commit is a success that is known at the answer's head.
func (w *world) commit(q *asked) answered {
	m, at, why := w.fenced(q)
	if why != "" {
		return answered{Got: why}
	}
	if !m.Committed && m.State != ledger.Applied && m.State != ledger.Skipped {
		was := m.State
		m.committed(rulesOf(q.Item, q.Key))
		m.Version++
		if was != ledger.InFlight {
			w.after(q, m, m.Dispatches[at].Run)
		}
	}
	return w.tell(m, "")
}

// park ends the inline try.
func (w *world) park(q *asked) answered {
	m, at, why := w.fenced(q)
	switch {
	case why != "":
		return answered{Got: why}
	case m.State != ledger.InFlight:
	case m.sendingFrom(0) || at != len(m.Dispatches)-1:
		return answered{Got: refused}
	default:
		if m.Committed && m.Known {
			m.happened(m.Result)
		} else {
			m.unknown(rulesOf(q.Item, q.Key), false)
		}
		m.Version++
		w.after(q, m, m.Dispatches[at].Run)
	}
	return w.tell(m, m.Dispatches[at].Run)
}

// prepared keeps what step one gave.
func (w *world) prepared(q *asked) answered {
	m, at, why := w.fenced(q)
	if why != "" {
		return answered{Got: why}
	}
	d := &m.Dispatches[at]
	if m.State != ledger.InFlight || at != len(m.Dispatches)-1 || d.Verdict != "" || !rulesOf(q.Item, q.Key).prepares || d.Prepared {
		return answered{Got: refused}
	}
	d.Prepared = true
	m.Version++
	return w.tell(m, "")
}

// recover is the loss of every owner; all that the model asks of it is about one record.
func (w *world) recover(q *asked) answered {
	m, r := w.Records[q.Key], rulesOf(q.Item, q.Key)
	if m == nil {
		return answered{Got: asItWas}
	}
	lost := m.sendingFrom(0)
	for i := range m.Dispatches {
		m.Dispatches[i].Gone = true
	}
	if m.State == ledger.NeedsReconcile && lost {
		m.Version++
	}
	if m.State != ledger.InFlight {
		return answered{Got: asItWas}
	}
	m.Version++
	d := m.current()
	unsent := r.prepares && !d.Prepared && (d.Verdict == "" || d.Verdict.Failure()) && !m.earlierOpen(len(m.Dispatches)-1)
	switch {
	case unsent && !m.Committed:
		d.Verdict, d.Resolved = ledger.VerdictNotSent, true
		m.to(ledger.Failed, "")
		m.Class = verdict.Transient
	case m.Committed && m.Known:
		m.happened(m.Result)
	default:
		m.unknown(r, false)
	}
	w.after(q, m, m.Run)
	return answered{Got: asItWas}
}
