package badgerstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// linearTTL is so long that no run ends by it.
const linearTTL = 1000 * time.Hour

func (l *linearized) open(q *asked) (answered, error) {
	o := ledger.OpenRun{Workflow: q.Item, Item: "i", TokenSHA256: q.Run, Title: q.Run, TTL: linearTTL, Takeover: q.is("takeover")}
	if q.is("return") {
		o.OnFailure = ledger.FailureReturn
	}
	if q.is("if_done") {
		o.IfDone = ledger.IfDoneRead
	}
	for _, m := range []ledger.Mutations{ledger.MutationsOne, ledger.MutationsNone} {
		if q.is(string(m)) {
			o.Mutations = m
		}
	}
	r, err := l.OpenRun(context.Background(), o)
	if err != nil {
		return answered{}, err
	}
	return answered{Got: string(r.State)}, nil
}

// onRun is any command on a run that there is.
func (l *linearized) onRun(q *asked) (answered, error) {
	ctx := context.Background()
	id, err := l.run(q.Run)
	if err != nil {
		return answered{}, err
	}
	var r *ledger.Run
	switch q.Do {
	case "finish_run":
		outcome := ledger.OutcomeFailed
		if q.is("done") {
			outcome = ledger.OutcomeDone
		}
		r, err = l.FinishRun(ctx, id, outcome, q.is("keep_open"))
	case "end_run":
		r, err = l.EndRun(ctx, id, verdict.Transient, "a host ended it", ledger.ActorProxy)
	case "refuse_run":
		r, err = l.RefuseRun(ctx, id, "its scope was stopped", "")
	case "fail_run":
		class := verdict.Transient
		if q.is("logic") {
			class = verdict.Logic
		}
		r, err = l.FailRun(ctx, id, ledger.Failure{Key: l.key(q), Digest: q.payload(), Class: class, Reason: "another run's sending failed"})
	case "heartbeat":
		ttl := linearTTL
		if q.is("short") {
			ttl = 1
		}
		if r, err = l.Heartbeat(ctx, id, ttl); errors.Is(err, ledger.ErrRunEnded) {
			err = nil
		}
	}
	if err != nil {
		return answered{}, err
	}
	return answered{Got: string(r.State)}, nil
}

func (l *linearized) decide(q *asked) (answered, error) {
	d := ledger.DecideItem{Workflow: q.Item, Item: "i", Actor: "ada", Reason: "looked"}
	for _, action := range []ledger.ItemAction{ledger.ItemClose, ledger.ItemSkip, ledger.ItemReopen, ledger.ItemNewAttempt} {
		if q.is(string(action)) {
			d.Action = action
		}
	}
	if d.Action == ledger.ItemNewAttempt {
		d.Attempt = int(q.Version)
	}
	i, err := l.DecideItem(context.Background(), d)
	if err != nil {
		return answered{}, err
	}
	return answered{Got: string(i.State), Version: int64(i.Attempt)}, nil
}

func (l *linearized) gate(q *asked) (answered, error) {
	var a ledger.Admission
	switch q.Do {
	case "gate":
		id, _ := l.run(q.Run) // There is no run of that id.
		a = l.Gate(id)
	case "gate_token":
		a = l.GateToken(q.Run, "")
	default:
		a = l.GateUnmanaged(q.Item, "i")
	}
	switch {
	case a.Open:
		return answered{Got: "open"}, nil
	case a.Hold:
		return answered{Got: "hold"}, nil
	}
	return answered{Got: a.Problem}, nil
}

// notes don't wait.
func (l *linearized) notes(q *asked) (answered, error) {
	m := &ledger.Mutation{
		Intent:  ledger.Intent{Key: l.key(q), ID: l.key(q).ID()},
		Outcome: ledger.Outcome{State: ledger.State(q.State), Dispatches: []ledger.Dispatch{{ID: q.Dispatch}}},
	}
	run, err := l.run(q.Run)
	if err != nil {
		return answered{}, err
	}
	switch q.Do {
	case "deliver":
		l.Deliver(run, m, "")
	case "replayed":
		l.Replayed(run, m, "", true)
	case "undelivered":
		l.Undelivered(run, m.Key)
	case "answering":
		l.Answering(run, m.Key)
	default:
		l.Refuse(ledger.Event{What: "refused", Run: run, Workflow: q.Item, Item: "i"})
	}
	return answered{Got: asItWas}, nil
}

// read is what the ledger holds of a mutation, look what it holds of an item.
func (l *linearized) read(q *asked) (answered, error) {
	var m *ledger.Mutation
	err := l.View(context.Background(), func(v ledger.View) (err error) {
		m, err = v.Mutation(l.key(q))
		return err
	})
	a, err := told(m, nil, err)
	if err == nil && m.State == ledger.Applied {
		a.Result = resultOf(m)
	}
	return a, err
}

func (l *linearized) look(q *asked) (answered, error) {
	var a answered
	err := l.View(context.Background(), func(v ledger.View) error {
		i, err := v.Item(q.Item, "i")
		if err != nil {
			return err
		}
		a = answered{Got: string(i.State), Version: int64(i.Attempt)}
		if i.ActiveRun == "" {
			return nil
		}
		r, err := v.Run(i.ActiveRun)
		if err == nil {
			a.Run = r.Title
		}
		return err
	})
	return a, err
}

// mutations are the item's records by the model's names, with what is owed.
func (l *linearized) mutations(item string) (i *ledger.Item, records map[string]*ledger.Mutation, err error) {
	records = map[string]*ledger.Mutation{}
	err = l.View(context.Background(), func(v ledger.View) error {
		if i, err = v.Item(item, "i"); errors.Is(err, ledger.ErrNotFound) {
			i = &ledger.Item{Attempt: 1}
		} else if err != nil {
			return err
		}
		keys, err := v.ItemMutations(item, "i")
		if err != nil {
			return err
		}
		for _, key := range keys {
			m, err := v.Mutation(key)
			if err != nil {
				return err
			}
			name := m.Target
			if m.Undo != nil {
				name = undoOf(m.Undo.Object)
				l.owed.Store(name, key)
			}
			records[name] = m
		}
		return nil
	})
	return i, records, err
}

// words are the commands that callers draw.
func words() []string {
	all := slices.Sorted(maps.Keys(calls))
	return slices.DeleteFunc(all, func(word string) bool { return word == "recover" })
}
