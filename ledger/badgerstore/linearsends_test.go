package badgerstore

import (
	"slices"
	"strings"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// What the model knows of mutations: the table of docs/semantics.md §3, and §§5 to 7.

func (m *record) current() *sending {
	if len(m.Dispatches) == 0 {
		return nil
	}
	return &m.Dispatches[len(m.Dispatches)-1]
}

func (m *record) at(dispatch string) int {
	return slices.IndexFunc(m.Dispatches, func(d sending) bool { return d.ID == dispatch })
}

// sendingFrom reports whether a dispatch from index i on is on its way.
func (m *record) sendingFrom(i int) bool {
	return slices.ContainsFunc(m.Dispatches[i:], func(d sending) bool { return d.Verdict == "" && !d.Gone })
}

// over reports whether no dispatch can take effect any more.
func (m *record) over() bool {
	return len(m.Dispatches) > 0 && !m.sendingFrom(0)
}

func (m *record) earlierOpen(n int) bool {
	return slices.ContainsFunc(m.Dispatches[:n], func(d sending) bool { return !d.Resolved })
}

// unresolved is what stops the block scope.
func (m *record) unresolved() bool {
	switch m.State {
	case ledger.NeedsReconcile, ledger.Indeterminate:
		return true
	case ledger.InFlight:
		return slices.ContainsFunc(m.Dispatches, func(d sending) bool {
			return !d.Resolved && (d.Gone || d.Verdict == ledger.VerdictUncertain || d.Verdict == ledger.VerdictCommitted)
		})
	}
	return false
}

func (m *record) generationFailed() bool {
	sent := false
	for _, d := range m.Dispatches {
		if d.Generation == m.Generation {
			if sent = true; !d.Verdict.Failure() {
				return false
			}
		}
	}
	return sent
}

// carriesOther: with a native key one generation never carries two payloads.
func (m *record) carriesOther(r rules, payload string) bool {
	return r.native && !m.generationFailed() && slices.ContainsFunc(m.Dispatches, func(d sending) bool {
		return d.Generation == m.Generation && d.Payload != payload
	})
}

// ask: a question takes the place of the one that is open, which is asked again afterwards,
// unless both are about the outcome.
func (m *record) ask(kind string) {
	if kind == "" || m.Open && m.Question == kind {
		return
	}
	m.displace(func(k string) bool { return k == kind || aboutOutcome(k) && aboutOutcome(kind) })
	if m.Open && (!aboutOutcome(m.Question) || !aboutOutcome(kind)) {
		m.Displaced = strings.TrimSpace(m.Displaced + " " + m.Question)
	}
	m.Question, m.Open = kind, true
}

func aboutOutcome(kind string) bool {
	return !slices.Contains([]string{
		ledger.EscalationMismatch, ledger.EscalationVerify, ledger.EscalationDuplicate, ledger.EscalationDrift, ledger.EscalationAmbiguous,
	}, kind)
}

// displace drops displaced questions.
func (m *record) displace(drop func(string) bool) {
	m.Displaced = strings.Join(slices.DeleteFunc(strings.Fields(m.Displaced), drop), " ")
}

// answer closes the questions that fit.
func (m *record) answer(fits func(string) bool) {
	m.displace(fits)
	if !m.Open || !fits(m.Question) {
		return
	}
	m.Open = false
	if all := strings.Fields(m.Displaced); len(all) > 0 {
		last := len(all) - 1
		m.Question, m.Open, m.Displaced = all[last], true, strings.Join(all[:last], " ")
	}
}

// answerShown closes the question that is shown.
func (m *record) answerShown() {
	shown := m.Question
	m.answer(func(kind string) bool { return m.Open && kind == shown })
}

// asks reports whether one of these questions is open.
func (m *record) asks(kinds ...string) bool {
	return m.Open && slices.Contains(kinds, m.Question) ||
		slices.ContainsFunc(strings.Fields(m.Displaced), func(kind string) bool { return slices.Contains(kinds, kind) })
}

// to moves the record; every move takes it out of the queue.
func (m *record) to(s ledger.State, question string) {
	if s == ledger.NeedsReconcile && m.State != s {
		m.Tries = 0
	}
	switch s {
	case ledger.Applied, ledger.Skipped:
		m.Class = ""
	case ledger.NeedsReconcile, ledger.Indeterminate:
		m.Class = verdict.Indeterminate
	}
	m.State, m.Queued = s, false
	m.ask(question)
}

func (m *record) resolveAll() {
	for i := range m.Dispatches {
		m.Dispatches[i].Resolved = true
	}
}

// happened ends it as applied, with the answer at hand or without one.
func (m *record) happened(result string) {
	m.Committed = true
	m.answer(aboutOutcome)
	m.Known, m.Lost, m.Result = true, false, result
	m.resolveAll()
	m.to(ledger.Applied, "")
}

func (m *record) happenedSomehow(question string) {
	m.Committed, m.Known, m.Lost, m.Result = true, false, true, ""
	m.resolveAll()
	m.to(ledger.Applied, question)
}

// unknown is any end without a whole success.
func (m *record) unknown(r rules, inline bool) {
	switch {
	case r.reconciler && inline:
	case r.reconciler:
		m.to(ledger.NeedsReconcile, "")
	case m.Committed:
		m.happenedSomehow(ledger.EscalationNoResult)
	default:
		m.to(ledger.Indeterminate, ledger.EscalationIndeterminate)
	}
}

// redispatchOpen: at most max_dispatches sendings, resends apart.
func (m *record) redispatchOpen(r rules) bool {
	if m.Of != "" {
		return m.Sent < m.Allowed
	}
	sent := 0
	for _, d := range m.Dispatches {
		if !d.Resend {
			sent++
		}
	}
	return r.onAbsent == ledger.AbsentRedispatch && sent < r.limit
}

// undoFailed queues what is owed again, or asks.
func (m *record) undoFailed(r rules) {
	if m.Of == "" || m.State != ledger.Failed {
		return
	}
	if m.Queued = m.Class == verdict.Transient && m.redispatchOpen(r); !m.Queued {
		m.ask(ledger.EscalationUndo)
	}
}

func (m *record) send(d sending) {
	d.Generation = m.Generation
	m.Dispatches = append(m.Dispatches, d)
	m.Absences = 0
}

// stops names a mutation that stops the item, other than this one.
func (w *world) stops(item, but string) bool {
	for key, m := range w.Records {
		if key != but && m.unresolved() && rulesOf(item, key).scope != ledger.BlockMutation {
			return true
		}
	}
	return false
}

// after does to a run what a record's new state means for it.
func (w *world) after(q *asked, m *record, run string) {
	switch m.State {
	case ledger.Applied:
		w.succeeds(run, q.Key)
	case ledger.Failed:
		w.fails(run, q.Key, m.Payload, m.Class)
	case ledger.NeedsReconcile, ledger.Indeterminate:
		w.ends(run, ledger.RunPausedReconciliation, "", false)
	}
}

// tell is the answer of a command that is about a record.
func (w *world) tell(m *record, run string) answered {
	a := answered{Got: string(m.State), Version: m.Version}
	if r := w.Runs[run]; r != nil {
		a.Run = string(r.State)
	}
	return a
}

// claim decides whether a mutation may be sent.
func (w *world) claim(q *asked) answered {
	answer := func(got string) answered {
		a := answered{Got: got}
		if m := w.Records[q.Key]; m != nil {
			a.Version = m.Version
		}
		if r := w.Runs[q.Run]; r != nil {
			a.Run = string(r.State)
		}
		return a
	}
	if why := w.whoAsks(q); why != "" {
		return answer(why)
	}
	if w.stops(q.Item, q.Key) {
		return answer(w.blocked(q))
	}
	m := w.Records[q.Key]
	if m == nil {
		return answer(w.sends(q))
	}
	switch m.State {
	case ledger.Applied:
		got := w.ofApplied(q, m)
		a := answer(got)
		if got == "replay" {
			a.Result = m.Result
		}
		return a
	case ledger.Failed:
		if m.carriesOther(rulesOf(q.Item, q.Key), q.payload()) {
			return answer(w.mismatch(q, m))
		}
		return answer(w.sends(q))
	case ledger.InFlight:
		if w.repeated(q, m) {
			return answer("repeated")
		}
		w.uses(q, false)
		return answer("join")
	case ledger.Skipped:
		if w.repeated(q, m) {
			return answer("repeated")
		}
		w.uses(q, false)
		return answer("skipped")
	}
	return answer(w.blocked(q))
}

// join decides whether a request may have the answer of another's sending.
func (w *world) join(q *asked) answered {
	got := w.whoAsks(q)
	m := w.Records[q.Key]
	switch {
	case got != "":
	case m == nil:
		return answered{Got: wrong}
	case (m.State == ledger.Applied || m.State == ledger.Skipped) && w.repeated(q, m):
		got = "repeated"
	default:
		w.uses(q, false)
		got = "join"
	}
	a := answered{Got: got}
	if m != nil {
		a.Version = m.Version
	}
	if r := w.Runs[q.Run]; r != nil {
		a.Run = string(r.State)
	}
	return a
}

// repeated: a run asks a second time for what it was answered, or is being answered.
func (w *world) repeated(q *asked, m *record) bool {
	d := m.current()
	if w.Runs[q.Run] == nil {
		return false
	}
	if had, ok := w.Delivered[q.Run+" "+q.Key]; ok && d != nil && had == (delivered{string(m.State), d.ID}) {
		return true
	}
	return !q.is("redelivery") && d != nil && d.Run == q.Run
}

func (w *world) ofApplied(q *asked, m *record) string {
	switch {
	case w.repeated(q, m):
		return "repeated"
	case m.Forgotten:
		w.endsByLogic(q.Run)
		return "forgotten"
	case q.payload() != m.Payload && !strings.Contains(m.Accepted, q.payload()+";"):
		return w.mismatch(q, m)
	case !m.Known:
		if !m.Open && m.Question != ledger.EscalationNoResult {
			m.ask(ledger.EscalationNoResult)
			m.Version++
		}
		w.uses(q, false)
		return "no-result"
	}
	w.uses(q, false)
	return "replay"
}

// mismatch: the item needs attention, the run is paused, nothing is sent.
func (w *world) mismatch(q *asked, m *record) string {
	m.Disputed = q.payload()
	m.ask(ledger.EscalationMismatch)
	m.Version++
	w.ends(q.Run, ledger.RunPausedAttention, q.Key, false)
	w.needsAttention(q.Key)
	return "mismatch"
}

// needsAttention lets the item wait for a person because of a mutation of its attempt, unless it is over or
// waits already.
func (w *world) needsAttention(key string) {
	of := key
	if m := w.Records[key]; m != nil && m.Of != "" {
		of = m.Of
	}
	if attemptOf(of) == w.Item.Attempt && (w.Item.State == ledger.ItemOpen || w.Item.State == ledger.ItemFailed) {
		w.Item.State, w.Item.Cause = ledger.ItemNeedsAttention, key
	}
}

func (w *world) sends(q *asked) string {
	m := w.Records[q.Key]
	if m == nil {
		m = &record{flat: flat{Generation: 1}}
		w.Records[q.Key] = m
		if w.Item.State == "" {
			w.Item.State, w.Item.Attempt = ledger.ItemOpen, 1
		}
	} else if m.generationFailed() {
		m.Generation++
	}
	m.Run, m.Payload, m.Class, m.Forgotten = q.Run, q.payload(), "", false
	m.Resends, m.ResendsClosed = 0, false
	m.to(ledger.InFlight, "")
	m.send(sending{ID: q.Dispatch, Run: q.Run, Payload: q.payload()})
	m.Version++
	w.uses(q, true)
	return "dispatch"
}

// fenced is the dispatch that this process sends, or why it isn't one.
func (w *world) fenced(q *asked) (m *record, at int, why string) {
	if m = w.Records[q.Key]; m == nil {
		return nil, 0, nothing
	}
	switch at = m.at(q.Dispatch); {
	case at < 0:
		return nil, 0, wrong
	case m.Dispatches[at].Gone:
		return nil, 0, refused
	}
	return m, at, ""
}
