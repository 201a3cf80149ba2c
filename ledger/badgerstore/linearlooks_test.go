package badgerstore

import (
	"slices"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// What the model knows of the runner and of a person: docs/semantics.md §§3, 6 and 9.

// seen is the record if it is as the caller saw it.
func (w *world) seen(q *asked) (m *record, why string) {
	switch m = w.Records[q.Key]; {
	case m == nil:
		return nil, nothing
	case m.Version != q.Version:
		return nil, stale
	}
	return m, ""
}

// observe carries out what a try saw.
func (w *world) observe(q *asked) answered {
	m, why := w.seen(q)
	switch {
	case why != "":
		return answered{Got: why}
	case q.is("inline") != (m.State == ledger.InFlight), m.State == ledger.InFlight && m.sendingFrom(0):
		return answered{Got: refused}
	case m.State != ledger.InFlight && m.State != ledger.NeedsReconcile:
		return answered{Got: refused}
	}
	r, saw := rulesOf(q.Item, q.Key), "retry"
	for _, s := range []string{"applied", "absent", "duplicate"} {
		if q.is(s) {
			saw = s
		}
	}
	if owner := w.Objects[q.object()]; saw == "applied" && owner != "" && owner != q.Key {
		saw = "retry"
	}
	settled := m.over() && !q.is("early")
	if settled {
		m.Tries++
	}
	switch {
	case saw == "applied":
		w.Objects[q.object()] = q.Key
		m.happened(q.Dispatch)
	case saw == "duplicate" && q.is("strong"):
		w.Objects[q.Dispatch+"-1"], w.Objects[q.Dispatch+"-2"] = q.Key, q.Key
		m.happened(q.Dispatch)
		m.ask(ledger.EscalationDuplicate)
		w.owe(q, m, q.Dispatch+"-2", q.is("auto"))
	case saw == "duplicate" && m.Committed:
		m.happenedSomehow(ledger.EscalationNoResult)
	case saw == "duplicate":
		m.to(ledger.Indeterminate, ledger.EscalationIndeterminate)
	case saw == "absent" && settled && !m.Committed && m.absent(r):
		// Believed.
	}
	if m.State == ledger.NeedsReconcile && m.Tries >= triesOfRunner {
		m.exhausted()
	}
	m.Version++
	if m.State != ledger.NeedsReconcile && m.State != ledger.InFlight {
		w.after(q, m, m.Run)
	}
	return w.tell(m, m.Run)
}

// object is what a try finds; mutations of one letter find the same.
func (q *asked) object() string { return "object-" + q.Key[:1] }

// absent counts an absence, and believes the second one.
func (m *record) absent(r rules) bool {
	if m.Absences++; m.Absences < ledger.DefaultConfirmations {
		return false
	}
	switch {
	case r.onAbsent == ledger.AbsentEscalate:
		m.to(ledger.Indeterminate, ledger.EscalationIndeterminate)
	case m.redispatchOpen(r):
		m.resolveAll()
		m.to(ledger.Failed, "")
		m.Class, m.Queued = verdict.Transient, true
		m.answer(aboutOutcome)
	default:
		m.resolveAll()
		m.to(ledger.Failed, "")
		m.Class = verdict.Transient
		if r.onAbsent == ledger.AbsentRedispatch {
			m.ask(ledger.EscalationAbsent)
		}
	}
	return true
}

func (m *record) exhausted() {
	if m.Committed {
		m.happenedSomehow(ledger.EscalationNoResult)
		return
	}
	m.to(ledger.Indeterminate, ledger.EscalationIndeterminate)
}

func (w *world) exhaust(q *asked) answered {
	m, why := w.seen(q)
	switch {
	case why != "":
		return answered{Got: why}
	case m.State != ledger.NeedsReconcile:
		return answered{Got: refused}
	}
	m.exhausted()
	m.Version++
	w.after(q, m, m.Run)
	return w.tell(m, m.Run)
}

// resend is allowed three times, after each dispatch was judged.
func (w *world) resend(q *asked) answered {
	m, why := w.seen(q)
	switch {
	case why != "":
		return answered{Got: why}
	case !rulesOf(q.Item, q.Key).native || m.ResendsClosed || m.Resends >= resendsAtMost || m.Committed || m.sendingFrom(0),
		m.State != ledger.InFlight && m.State != ledger.NeedsReconcile:
		return answered{Got: refused}
	}
	m.Resends++
	m.send(sending{ID: q.Dispatch, Run: m.Run, Payload: m.Payload, Resend: true})
	m.Version++
	return w.tell(m, "")
}

// waits is a record that is queued to be sent again.
func (w *world) waits(q *asked) (m *record, why string) {
	if m, why = w.seen(q); why == "" && (m.State != ledger.Failed || !m.Queued) {
		return nil, refused
	}
	return m, why
}

// redispatch sends again what a believed absence, or an obligation, queued.
func (w *world) redispatch(q *asked) answered {
	m, why := w.waits(q)
	if why != "" {
		return answered{Got: why}
	}
	m.Version++
	r := rulesOf(q.Item, q.Key)
	open := w.Item.State == ledger.ItemOpen || w.Item.State == ledger.ItemFailed
	switch {
	case m.Of == "" && (!open || attemptOf(q.Key) != w.Item.Attempt || m.carriesOther(r, m.Payload)):
		m.Queued = false
		return w.tell(m, "")
	case w.stops(q.Item, q.Key), w.newerOwed(m), m.Of != "" && !w.Records[m.Of].over():
		return w.tell(m, "")
	case !m.redispatchOpen(r):
		m.Version--
		return answered{Got: refused}
	}
	if m.Of != "" {
		m.Sent++
		if m.generationFailed() {
			m.Generation++
		}
	}
	m.to(ledger.InFlight, "")
	m.Class, m.Resends, m.ResendsClosed = "", 0, false
	m.send(sending{ID: q.Dispatch, Payload: m.Payload, Redispatch: true})
	return w.tell(m, "")
}

func (w *world) callOff(q *asked) answered {
	m, why := w.waits(q)
	if why != "" {
		return answered{Got: why}
	}
	m.Version++
	if !q.is("later") {
		m.Queued = false
		if m.Of != "" {
			m.ask(ledger.EscalationUndo)
		} else {
			m.ask(ledger.EscalationAbsent)
		}
	}
	return w.tell(m, "")
}

// undoOf is the name of what is owed for an object.
func undoOf(object string) string { return "undo " + object }

// owe records an obligation.
func (w *world) owe(q *asked, m *record, object string, queued bool) {
	u := &record{flat: flat{
		State: ledger.Failed, Version: 1, Generation: 1, Payload: "undo", Of: q.Key, Order: len(m.Obligations) + 1, Queued: queued,
	}}
	if queued {
		u.Allowed = sendings
	}
	w.Records[undoOf(object)] = u
	m.Obligations = append(m.Obligations, undoOf(object))
}

// newerOwed: the newest effect is undone first.
func (w *world) newerOwed(m *record) bool {
	of := w.Records[m.Of]
	return of != nil && slices.ContainsFunc(of.Obligations, func(key string) bool {
		o := w.Records[key]
		return o != nil && o.Order > m.Order && o.State != ledger.Applied && o.State != ledger.Skipped && (o.State != ledger.Failed || !o.Open)
	})
}

func (w *world) runObligation(q *asked) answered {
	if q.Version < 1 {
		return answered{Got: wrong}
	}
	m, why := w.seen(q)
	switch {
	case why != "":
		return answered{Got: why}
	case m.Of == "" || m.State != ledger.Failed || m.Committed || w.newerOwed(m):
		return answered{Got: refused}
	}
	m.Allowed, m.Queued = m.Sent+sendings, true
	m.answerShown()
	m.Version++
	return w.tell(m, "")
}

// resolve is a person's decision.
func (w *world) resolve(q *asked) answered {
	if q.Version < 1 {
		return answered{Got: wrong}
	}
	m, why := w.seen(q)
	if why != "" {
		return answered{Got: why}
	}
	verify := m.Question == ledger.EscalationVerify
	if !w.resolves(q, m) {
		return answered{Got: refused}
	}
	m.Version++
	attends := q.is("accept_payload") || q.is("new_key") || q.is("skip") || q.is("acknowledge") && verify
	attends = attends && !m.asks(ledger.EscalationMismatch, ledger.EscalationVerify)
	if attends && w.Item.State == ledger.ItemNeedsAttention && w.Item.Cause == q.Key {
		w.Item.State, w.Item.Cause = ledger.ItemOpen, ""
	}
	return w.tell(m, m.Run)
}

// resolves carries the decision out, if the table holds it.
func (w *world) resolves(q *asked, m *record) bool {
	r := rulesOf(q.Item, q.Key)
	unknown := m.State == ledger.NeedsReconcile || m.State == ledger.Indeterminate
	switch {
	case q.is("check_again"):
		if !unknown || !r.reconciler {
			return false
		}
		m.to(ledger.NeedsReconcile, "")
		m.Tries = 0
		m.answer(aboutOutcome)
	case q.is("happened") && m.State == ledger.Applied && !q.is("compensate") && !q.is("no_result") && !m.Known:
		m.happened(q.Dispatch)
	case q.is("happened"):
		if !unknown || q.is("compensate") && m.Of != "" {
			return false
		}
		if q.is("no_result") {
			m.happenedSomehow("")
			m.answer(aboutOutcome)
		} else {
			m.happened(q.Dispatch)
		}
		if q.is("compensate") {
			w.Objects[q.Dispatch+"-c"] = q.Key
			w.owe(q, m, q.Dispatch+"-c", true)
		}
	case q.is("did_not_happen"):
		if !unknown || m.Committed || !q.is("force") && !m.over() {
			return false
		}
		m.resolveAll()
		m.to(ledger.Failed, "")
		m.Class = verdict.Transient
		m.answer(aboutOutcome)
	case q.is("new_key"):
		if m.State != ledger.Failed || m.Committed || !r.native {
			return false
		}
		m.to(ledger.Failed, "")
		m.Generation++
		m.answer(func(kind string) bool { return aboutOutcome(kind) || kind == ledger.EscalationMismatch })
		m.Disputed = ""
	case q.is("skip"):
		if !unknown && m.State != ledger.Failed || m.Of != "" && m.State != ledger.Failed && !m.over() {
			return false
		}
		m.resolveAll()
		m.to(ledger.Skipped, "")
		m.answer(func(string) bool { return true })
		m.Disputed = ""
	case q.is("accept_payload"):
		if m.State != ledger.Applied || m.Disputed == "" || m.Open && m.Question != ledger.EscalationMismatch {
			return false
		}
		m.Accepted += m.Disputed + ";"
		m.Disputed = ""
		m.answerShown()
	case q.is("acknowledge"):
		if m.State != ledger.Applied && m.State != ledger.Failed || !m.Open {
			return false
		}
		if m.Question == ledger.EscalationVerify {
			m.Acknowledged = m.Disagreed
		}
		m.answerShown()
	}
	return true
}

// verified is what the world said before a replay.
func (w *world) verified(q *asked) answered {
	m := w.Records[q.Key]
	switch {
	case m == nil:
		return answered{Got: nothing}
	case m.State != ledger.Applied:
		return answered{Got: refused}
	case q.is("agrees") || m.Acknowledged:
		return answered{Got: "replay", Version: m.Version}
	}
	m.Disagreed, m.Acknowledged = true, false
	disagrees := q.is("disagrees")
	asks := q.is("human") && disagrees
	if asks {
		m.ask(ledger.EscalationVerify)
	}
	m.Version++
	if q.is("warn") {
		return answered{Got: "replay", Version: m.Version}
	}
	if asks {
		w.needsAttention(q.Key)
		w.ends(q.Run, ledger.RunPausedAttention, q.Key, false)
	} else {
		w.ends(q.Run, ledger.RunAborted, q.Key, disagrees)
	}
	return answered{Got: "no replay", Version: m.Version}
}

// forget lets go of a settled record: first of its contents, then of the rest. A record
// of an API that knows its vendor key for a day stays.
func (w *world) forget(q *asked) answered {
	m := w.Records[q.Key]
	if m == nil {
		return answered{Got: "kept"}
	}
	settled := m.State == ledger.Applied || m.State == ledger.Skipped || m.State == ledger.Failed && m.Of == ""
	switch {
	case !settled || m.Queued || m.Open || m.sendingFrom(0) || w.Item.Active != "" || w.owes(m):
		return answered{Got: "kept"}
	case !m.Forgotten:
		// An answer that comes later is kept, and isn't given all the same.
		m.Forgotten, m.Result = true, ""
		m.Version++
		return answered{Got: "dropped"}
	case !q.is("whole") || rulesOf(q.Item, q.Key).native:
		return answered{Got: "kept"}
	}
	delete(w.Records, q.Key)
	if len(w.Records) == 0 && (w.Item.State == ledger.ItemDone || w.Item.State == ledger.ItemSkipped) {
		w.Item = unit{}
	}
	return answered{Got: "removed"}
}

func (w *world) owes(m *record) bool {
	return slices.ContainsFunc(m.Obligations, func(key string) bool {
		o := w.Records[key]
		return o != nil && o.State != ledger.Applied && o.State != ledger.Skipped
	})
}
