package reconcilers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// watch looks once at what an API accepted by a 202: whether it ended, and how. Whatever
// goes wrong is no end; after the rule's max the ledger asks a person.
func (r *Reconciler) watch(ctx context.Context, m *ledger.Mutation) outcome {
	t := &try{mutation: m, at: r.now()}
	return r.attempt(ctx, t, func() outcome {
		s, err := r.prepare(ctx, t)
		if err == nil {
			s = r.look(ctx, t)
		}
		return r.observe(ctx, t, s)
	})
}

// look asks once and lets the rule judge.
func (r *Reconciler) look(ctx context.Context, t *try) sighting {
	w := t.operation.Watch
	if w == nil {
		return sighting{reached: true, reason: "the rule file follows no 202"}
	}
	accepted, err := r.storedAnswer(ctx, t.mutation)
	if err != nil {
		return sighting{reached: true, reason: "the stored 202 can't be read"}
	}
	env, sameBoot := t.envByClock(r.now())
	ask, err := w.Ask(env, accepted)
	if err != nil {
		return sighting{reached: true, reason: err.Error()}
	}
	request, err := probe{r}.request(ctx, t, ask)
	if err != nil {
		return sighting{reason: err.Error()}
	}
	at := r.now()
	reply := r.wire.send(ctx, request, r.settings.MaxAnswer)
	var all asked
	all.note(1, ask, reply, at.Wall, r.clock.Now())
	s := sighting{reached: all.reached, notBefore: all.notBefore, evidence: all.evidence()}
	var answer *rules.Response
	if reply.complete() {
		answer = &rules.Response{Status: reply.status, Header: reply.header, Body: reply.body, Complete: true}
	}
	// A clock that was set during the look is as good as another one.
	now, _ := t.envByClock(r.now())
	all.clocks.SameBoot = sameBoot && now.Mutation.ClaimedAt.Sub(env.Mutation.ClaimedAt).Abs() <= time.Second
	switch seen, why := w.Judge(env, answer, all.clocks); seen {
	case rules.WatchDone:
		s.seen, s.reason = ledger.SeenApplied, why
	case rules.WatchFailed:
		s.seen, s.reason = ledger.SeenFailed, why
	default:
		s.seen, s.reason = ledger.SeenRetry, why
	}
	return t.asAuthorised(t.asLooked(s, all.ages, at), all.told)
}

// storedAnswer is the answer that the record keeps.
func (r *Reconciler) storedAnswer(ctx context.Context, m *ledger.Mutation) (*rules.Response, error) {
	if m.Result == nil {
		return nil, errors.New("there is none")
	}
	body, err := dispatch.StoredBody(ctx, r.ledger, m.Result.Body)
	if err != nil {
		return nil, err
	}
	return &rules.Response{Status: m.Result.Status, Header: http.Header(m.Result.Header), Body: body, Complete: true}, nil
}

// nextLook is when an accepted mutation is looked at again. It is after the rule's time and any
// Retry-After, of which at most MaxAge is obeyed.
func (s Settings) nextLook(m *ledger.Mutation, now, notBefore time.Time) time.Time {
	at := now.Add(positive(m.Policy.WatchEvery, s.Base))
	if latest := now.Add(s.MaxAge); notBefore.After(latest) {
		notBefore = latest
	}
	if notBefore.After(at) {
		return notBefore
	}
	return at
}
