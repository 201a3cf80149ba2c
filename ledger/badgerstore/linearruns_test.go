package badgerstore

import (
	"slices"
	"strconv"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// What the model knows of runs and items: docs/semantics.md §8.

func attemptOf(key string) int {
	n, err := strconv.Atoi(key[1:])
	if err != nil {
		return 0
	}
	return n
}

func (r *execution) over() bool { return r.State.Ended() }

// ends ends a run that has not ended; the item fails if that is after a definite failure.
func (w *world) ends(token string, state ledger.RunState, cause string, failed bool) {
	r := w.Runs[token]
	if r == nil || r.over() {
		return
	}
	failed = state == ledger.RunAborted && (failed || r.State == ledger.RunFailing)
	r.State, r.Overdue = state, false
	if w.Item.Active != token {
		return
	}
	w.Item.Active = ""
	if failed && w.Item.State == ledger.ItemOpen {
		w.Item.State, w.Item.Cause = ledger.ItemFailed, cause
	}
}

// expires ends a run whose time limit, or grace, is over.
func (w *world) expires(token string) { w.ends(token, ledger.RunAborted, "", false) }

func (w *world) endsByLogic(token string) {
	if r := w.Runs[token]; r != nil && r.OnFailure != ledger.FailureReturn {
		w.ends(token, ledger.RunAborted, "", false)
	}
}

// blocked refuses; a managed run that was refused because of a stop is over.
func (w *world) blocked(q *asked) string {
	if !q.is("hold") {
		w.ends(q.Run, ledger.RunAborted, "", false)
	}
	return "blocked"
}

// whoAsks refuses because of run, item and what the run may do.
func (w *world) whoAsks(q *asked) string {
	r := w.Runs[q.Run]
	if r != nil {
		if !r.over() && r.Overdue {
			w.expires(q.Run)
		}
		if r.over() {
			return "run-aborted"
		}
	}
	current := 1
	switch w.Item.State {
	case "":
	case ledger.ItemOpen, ledger.ItemFailed:
		current = w.Item.Attempt
	case ledger.ItemNeedsAttention:
		w.ends(q.Run, ledger.RunPausedAttention, "", false)
		return "item-attention"
	default:
		w.endsByLogic(q.Run)
		return "item-done"
	}
	if attemptOf(q.Key) != current {
		w.endsByLogic(q.Run)
		return "attempt"
	}
	switch {
	case r == nil:
	case r.Mutations == ledger.MutationsOne && r.Only != "" && r.Only != q.Key:
		w.endsByLogic(q.Run)
		return "one-mutation"
	case r.Mutations == ledger.MutationsNone:
		w.endsByLogic(q.Run)
		return "read-only-run"
	case r.State == ledger.RunFailing && (r.failing(q.Key).Key != q.Key || r.failing(q.Key).Payload != q.payload()):
		return "run-failing"
	}
	return ""
}

// uses is what a claim means for its run.
func (w *world) uses(q *asked, sent bool) {
	r, m := w.Runs[q.Run], w.Records[q.Key]
	if r == nil {
		return
	}
	if r.Mutations == ledger.MutationsOne && r.Only == "" {
		r.Only = q.Key
	}
	if f := r.failing(q.Key); f.Key == q.Key && sent {
		f.Tries++
	}
	if m.State == ledger.Applied {
		r.healed(q.Key)
	}
}

// fails is a definite failure, as a run meets it.
func (w *world) fails(token, key, payload string, class verdict.Class) {
	r := w.Runs[token]
	switch {
	case r == nil || r.over() || r.OnFailure == ledger.FailureReturn:
	case class != verdict.Transient, r.failing(key).Tries >= triesOfGrace:
		w.ends(token, ledger.RunAborted, key, true)
	case r.failing(key).Key == "":
		r.State, *r.failing(key) = ledger.RunFailing, retrying{Key: key, Payload: payload}
	}
}

func (w *world) succeeds(token, key string) {
	if r := w.Runs[token]; r != nil && r.State == ledger.RunFailing {
		r.healed(key)
	}
}

// standing is the answer about a run.
func (w *world) standing(token string) answered {
	return answered{Got: string(w.Runs[token].State)}
}

// open opens a run, and its item.
func (w *world) open(q *asked) answered {
	if w.Item.State == "" {
		w.Item.Attempt = 1
	}
	over := w.Item.State == ledger.ItemDone || w.Item.State == ledger.ItemSkipped
	why := ""
	switch active := w.Runs[w.Item.Active]; {
	case over && !q.is("if_done"):
		why = "item-done"
	case w.Item.State == ledger.ItemNeedsAttention:
		why = "item-attention"
	case w.stops(q.Item, ""):
		why = "blocked"
	case over || active == nil || active.over() || active.Overdue || q.is("takeover"):
	default:
		why = "busy"
	}
	if why != "" {
		if w.Item.State == "" {
			w.Item.Attempt = 0
		}
		return answered{Got: why}
	}
	r := &execution{State: ledger.RunRunning, OnFailure: ledger.FailureAbort, Mutations: ledger.MutationsMany, Attempt: w.Item.Attempt}
	if q.is("return") {
		r.OnFailure = ledger.FailureReturn
	}
	for _, m := range []ledger.Mutations{ledger.MutationsOne, ledger.MutationsNone} {
		if q.is(string(m)) {
			r.Mutations = m
		}
	}
	w.Runs[q.Run] = r
	if over {
		r.Mutations, r.Reads = ledger.MutationsNone, true
		return w.standing(q.Run)
	}
	w.ends(w.Item.Active, ledger.RunAborted, "", false)
	w.Item.State, w.Item.Cause, w.Item.Active = ledger.ItemOpen, "", q.Run
	return w.standing(q.Run)
}

// finishRun ends a run as its host reports it.
func (w *world) finishRun(q *asked) answered {
	r := w.Runs[q.Run]
	switch done := q.is("done"); {
	case r == nil:
		return answered{Got: nothing}
	case r.State == ledger.RunFinished && done, r.State == ledger.RunAborted && !done && (r.ByHost || r.Failing[0].Key != ""):
		return w.standing(q.Run)
	case r.over() && !done:
		return answered{Got: "ended"}
	case !done:
		r.ByHost = r.State != ledger.RunFailing
		w.ends(q.Run, ledger.RunAborted, "", true)
		return w.standing(q.Run)
	case r.State != ledger.RunRunning:
		return answered{Got: "unfinished"}
	}
	for key, m := range w.Records {
		if (m.of(q.Run) || w.given(q.Run, key)) && !w.lets(q.Run, key, m) {
			return answered{Got: "unfinished"}
		}
	}
	keep := q.is("keep_open") || r.Reads
	if !keep && w.unsettled() {
		return answered{Got: "unfinished"}
	}
	w.ends(q.Run, ledger.RunFinished, "", false)
	// An item that waits for a person goes on waiting.
	if !keep && w.Item.State == ledger.ItemOpen {
		w.Item.State, w.Item.Cause = ledger.ItemDone, ""
	}
	return w.standing(q.Run)
}

// of reports whether the run made the mutation, or sent it.
func (m *record) of(run string) bool {
	if m.Run == run {
		return true
	}
	for _, d := range m.Dispatches {
		if d.Run == run {
			return true
		}
	}
	return false
}

// given reports whether the run asked for the mutation and was answered, whole or not.
func (w *world) given(run, key string) bool {
	_, ok := w.Delivered[run+" "+key]
	return ok
}

// lets reports whether the mutation lets its run finish.
func (w *world) lets(token, key string, m *record) bool {
	switch m.State {
	case ledger.Applied, ledger.Skipped:
		return true
	case ledger.Failed:
		had, ok := w.Delivered[token+" "+key]
		d := m.current()
		return w.Runs[token].OnFailure == ledger.FailureReturn && ok && d != nil && had == delivered{string(m.State), d.ID}
	}
	return false
}

// unsettled: a mutation of the item is unresolved or in flight.
func (w *world) unsettled() bool {
	for _, m := range w.Records {
		if m.State == ledger.InFlight || m.unresolved() {
			return true
		}
	}
	return false
}

// endRun ends a run from outside, or because one of its requests was refused.
func (w *world) endRun(q *asked) answered {
	if w.Runs[q.Run] == nil {
		return answered{Got: nothing}
	}
	w.ends(q.Run, ledger.RunAborted, "", false)
	return w.standing(q.Run)
}

// failRun is a run's share of a failure that another one met.
func (w *world) failRun(q *asked) answered {
	if w.Runs[q.Run] == nil {
		return answered{Got: nothing}
	}
	class := verdict.Transient
	if q.is("logic") {
		class = verdict.Logic
	}
	w.fails(q.Run, q.Key, q.payload(), class)
	return w.standing(q.Run)
}

func (w *world) heartbeat(q *asked) answered {
	r := w.Runs[q.Run]
	switch {
	case r == nil:
		return answered{Got: nothing}
	case r.Overdue && !r.over():
		w.expires(q.Run)
	case !r.over():
		r.Overdue = q.is("short")
	}
	return w.standing(q.Run)
}

func (w *world) expireRuns(*asked) answered {
	for token, r := range w.Runs {
		if r.Overdue && !r.over() {
			w.expires(token)
		}
	}
	return answered{Got: asItWas}
}

// decide is a decision on the item.
func (w *world) decide(q *asked) answered {
	if w.Item.State == "" {
		return answered{Got: nothing}
	}
	before := w.clone()
	if active := w.Runs[w.Item.Active]; active != nil && !active.over() {
		if !active.Overdue {
			return answered{Got: "busy"}
		}
		w.expires(w.Item.Active)
	}
	s, to := w.Item.State, ledger.ItemOpen
	allowed := true
	switch {
	case q.is("done"):
		to, allowed = ledger.ItemDone, s == ledger.ItemOpen || s == ledger.ItemFailed
	case q.is("skip"):
		to, allowed = ledger.ItemSkipped, s != ledger.ItemDone
	case q.is("new_attempt") && q.Version != int64(w.Item.Attempt):
		return w.notDecided(before, "attempt")
	}
	switch {
	case !q.is("new_attempt") && s == to:
		return w.decided()
	case !allowed:
		return w.notDecided(before, refused)
	case w.unsettled():
		return w.notDecided(before, "unsettled")
	}
	closes := []string{ledger.EscalationMismatch}
	if q.is("skip") || q.is("new_attempt") {
		closes = append(closes, ledger.EscalationDrift, ledger.EscalationVerify)
	}
	if m := w.Records[w.Item.Cause]; s == ledger.ItemNeedsAttention && m != nil && (m.asks(closes...) || m.Disputed != "") {
		m.answer(func(kind string) bool { return slices.Contains(closes, kind) })
		m.Disputed = ""
		m.Version++
	}
	if q.is("new_attempt") {
		w.Item.Attempt++
	}
	w.Item.State, w.Item.Cause, w.Item.Active = to, "", ""
	return w.decided()
}

func (w *world) decided() answered {
	return answered{Got: string(w.Item.State), Version: int64(w.Item.Attempt)}
}

// notDecided leaves all as it was: also a run that was overdue.
func (w *world) notDecided(before *world, why string) answered {
	*w = *before
	return answered{Got: why}
}

// gate is what a request of a run is told.
func (w *world) gate(q *asked) answered {
	switch r := w.Runs[q.Run]; {
	case r == nil:
		return answered{Got: "credentials"}
	case r.over():
		return answered{Got: "run-aborted"}
	}
	return w.gateUnmanaged(q)
}

// gateUnmanaged is what any request is told. It may wait while an inline try is at work on
// all that stops it.
func (w *world) gateUnmanaged(q *asked) answered {
	got := "open"
	for key, m := range w.Records {
		if !m.unresolved() || rulesOf(q.Item, key).scope == ledger.BlockMutation {
			continue
		}
		if m.State != ledger.InFlight {
			return answered{Got: "blocked"}
		}
		got = "hold"
	}
	return answered{Got: got}
}
