package badgerstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"keep-proxy/ledger"
)

// call draws commands: mostly such as the state of an item invites, and in between each
// that there is.
func (l *linearized) call(items []string) {
	for {
		item := items[rand.IntN(len(items))]
		i, records, err := l.mutations(item)
		if err != nil {
			return
		}
		q := asked{Item: item, Do: l.nextWord(), Dispatch: l.id()}
		names := []string{fmt.Sprintf("a%d", i.Attempt), fmt.Sprintf("b%d", i.Attempt)}
		for name := range records {
			if strings.HasPrefix(name, "undo") || rand.IntN(4) == 0 {
				names = append(names, name)
			}
		}
		q.Key = names[rand.IntN(len(names))]
		m := records[q.Key]
		if m != nil {
			q.Version, q.State = m.Version, string(m.State)
		}
		q.Run = l.drawRun(i)
		if q.Do == "" {
			q.Do = invited(q.Key, i, m)
		}
		if l.complete(&q, i, m) {
			l.tell(q)
		}
	}
}

// nextWord is each command in turn, at a third of the calls; else "".
func (l *linearized) nextWord() string {
	l.tours.Lock()
	defer l.tours.Unlock()
	if rand.IntN(3) > 0 {
		return ""
	}
	if len(l.tour) == 0 {
		l.tour = words()
		rand.Shuffle(len(l.tour), func(a, b int) { l.tour[a], l.tour[b] = l.tour[b], l.tour[a] })
	}
	word := l.tour[0]
	l.tour = l.tour[1:]
	return word
}

// drawRun is the token of a run of the item, mostly of that which works on it.
func (l *linearized) drawRun(i *ledger.Item) string {
	if i.ActiveRun != "" && rand.IntN(5) > 0 {
		var token string
		_ = l.View(l.ctx, func(v ledger.View) error {
			r, err := v.Run(i.ActiveRun)
			if err == nil {
				token = r.Title
			}
			return err
		})
		return token
	}
	known, _ := l.tokens.Load(i.Workflow)
	if token, ok := known.(string); ok && rand.IntN(2) == 0 {
		return token
	}
	return ""
}

func oneOf(all ...string) string { return all[rand.IntN(len(all))] }

// invited is a command that the state of the mutation, and of its item, invites.
func invited(key string, i *ledger.Item, m *ledger.Mutation) string {
	if i.State == ledger.ItemNeedsAttention || i.State != "" && i.State != ledger.ItemOpen && rand.IntN(2) == 0 {
		return oneOf("decide", "open", "resolve", "look")
	}
	if rand.IntN(8) == 0 || i.ActiveRun == "" && rand.IntN(3) == 0 {
		return oneOf("open", "open", "finish_run", "decide", "deliver")
	}
	undo := strings.HasPrefix(key, "undo")
	switch {
	case m == nil:
		return "claim"
	case m.State == ledger.InFlight:
		return oneOf("finish", "finish", "finish", "claim", "commit", "prepared", "observe", "park", "resend")
	case m.State == ledger.NeedsReconcile:
		return oneOf("observe", "observe", "observe", "resend", "finish", "resolve", "claim")
	case m.State == ledger.Indeterminate:
		return oneOf("resolve", "resolve", "claim", "finish")
	case m.State == ledger.Failed && !m.RedispatchSince.IsZero():
		return oneOf("redispatch", "redispatch", "call_off", "claim")
	case m.State == ledger.Failed && undo:
		return oneOf("run_obligation", "resolve", "redispatch")
	case m.State == ledger.Failed:
		return oneOf("claim", "claim", "resolve", "deliver")
	}
	return oneOf("claim", "verified", "forget", "finish_run", "finish", "deliver", "decide")
}

// complete draws the form of the command. It reports whether the command can be given.
func (l *linearized) complete(q *asked, i *ledger.Item, m *ledger.Mutation) bool {
	undo := strings.HasPrefix(q.Key, "undo")
	switch q.Do {
	case "claim", "join":
		q.How = oneOf("redelivery", "redelivery", "redelivery", "redelivery hold", "hold", "", "redelivery other")
		return !undo
	case "finish", "park", "commit", "prepared":
		if m != nil && len(m.Dispatches) > 0 {
			n := len(m.Dispatches)
			q.Dispatch = m.Dispatches[max(0, n-1-rand.IntN(2)*rand.IntN(2))].ID
		}
		q.How = oneOf("applied", "failed", "failed logic", "not_sent", "uncertain", "uncertain pending", "uncertain pending", "committed", "committed pending", "failed pending")
	case "observe":
		q.How = oneOf("applied", "absent", "absent", "absent", "absent early", "duplicate", "duplicate strong", "duplicate strong auto", "retry")
		if m != nil && m.State == ledger.InFlight {
			q.How += " inline"
		}
	case "call_off":
		q.How = oneOf("", "later")
	case "resolve":
		q.How = oneOf("check_again", "happened", "happened no_result", "happened compensate", "did_not_happen", "did_not_happen force",
			"new_key", "skip", "accept_payload", "acknowledge", "acknowledge")
	case "verified":
		q.How = oneOf("warn", "strict", "human") + " " + oneOf("agrees", "disagrees", "nothing")
	case "forget":
		q.How = oneOf("", "whole", "whole")
	case "open":
		q.Run = q.Dispatch
		q.How = oneOf("return", "return", "return takeover", "takeover", "", "one", "none", "if_done return")
	case "finish_run":
		q.How = oneOf("done", "done", "done keep_open", "failed")
	case "fail_run":
		q.How = oneOf("transient", "logic")
	case "heartbeat":
		q.How = oneOf("long", "short")
	case "decide":
		q.How = oneOf("done", "skip", "reopen", "reopen", "new_attempt")
		q.Version = int64(max(1, i.Attempt-rand.IntN(2)*rand.IntN(2)))
	case "deliver", "replayed":
		if m == nil || len(m.Dispatches) == 0 {
			return false
		}
		q.Dispatch = m.Current().ID
	}
	needsRun := []string{"finish_run", "end_run", "refuse_run", "fail_run", "heartbeat", "gate", "gate_token", "deliver", "replayed", "undelivered", "answering"}
	return q.Run != "" || !slices.Contains(needsRun, q.Do)
}
