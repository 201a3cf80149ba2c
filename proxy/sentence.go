package proxy

import (
	"strings"

	"keep-proxy/ledger"
)

// unsent makes the words of a refusal that comes from elsewhere a script's author's:
// whole sentences, which say that nothing was sent.
func unsent(detail string) string {
	detail = strings.TrimSuffix(detail, ".")
	if word, _, _ := strings.Cut(detail, " "); word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" {
		detail = strings.ToUpper(word[:1]) + detail[1:]
	}
	if strings.Contains(detail, "othing was sent") || strings.Contains(detail, "not sent") {
		return detail + "."
	}
	return detail + ". Nothing was sent."
}

// cutOff changes the words of a refusal for a request that was on its way already.
func (f *refusal) cutOff() *refusal {
	f.detail = strings.NewReplacer("nothing was sent", "the request was cut off", "Nothing was sent", "The request was cut off").Replace(f.detail)
	return f
}

// noResult refuses for want of an answer to what happened; words say why. Whether this
// request was what made it happen is known here alone.
func (s *reply) noResult(words string) *refusal {
	if s.decision != ledger.DecideDispatch {
		words += " Nothing was sent."
	}
	f := refuse(problemNoResult, words)
	if s.mutation.Result == nil {
		// Later ones are told by the ledger that a person can give it.
		f.advise(s.mutation)
	}
	return f
}

// unreadable refuses since an answer that is kept can't be read.
func (s *reply) unreadable(err error) *refusal {
	switch {
	case s.decision != ledger.DecideDispatch:
		return ledgerRefusal(err)
	case s.mutation.State == ledger.Applied:
		return s.noResult("It happened, but its answer can't be read now: " + err.Error() + ".")
	}
	return refuse(problemInternal, "It was answered, but the answer can't be read now: "+err.Error()+".")
}

// advice is what to do about a claim that the ledger refused, where its own words and
// the open question don't say.
var advice = map[problem]string{
	problemItemDone:      "If there is more to do for it, a person opens it again (keep-proxy items reopen) or begins it anew (items new-attempt).",
	problemItemAttention: "See keep-proxy resolve; where nothing is asked there, keep-proxy status and keep-proxy items show.",
	problemAttempt:       "Start the work again: it is then of that attempt.",
	problemReadOnlyRun:   "What is to change something is started as a run of its own, with mutations one or many.",
	problemSkipped:       "If it is to be made after all, a person begins the item anew: keep-proxy items new-attempt.",
	problemForgotten:     "If it is to be made once more, a person begins the item anew: keep-proxy items new-attempt.",
}

// advise adds what to do to a refused claim.
func (f *refusal) advise(m *ledger.Mutation) {
	if words := advice[f.problem]; words != "" {
		f.detail += " " + words
	}
	if m == nil || !m.Escalated() {
		return
	}
	resolve := "keep-proxy resolve " + m.ID
	if f.problem == problemNoResult {
		f.detail += " A person who knows it can give it: " + resolve + " --happened --result FILE."
	}
	f.actions = []string{resolve}
}
