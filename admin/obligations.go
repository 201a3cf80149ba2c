package admin

import (
	"errors"
	"fmt"
	"net/http"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// openObligations are the states in which an obligation is neither met nor waived.
var openObligations = []ledger.State{ledger.Failed, ledger.InFlight, ledger.NeedsReconcile, ledger.Indeterminate}

// listObligations answers GET /v1/obligations.
func listObligations(s *Server, r *http.Request) (*wire.List[wire.Obligation], error) {
	q := s.query(r)
	f := q.filter()
	f.Obligations = true
	if !q.flag("all") {
		f.States = openObligations
	}
	return listing(r, q, f, s.config.Ledger.Mutations, obligationOf)
}

// obligationOf shows an obligation.
func obligationOf(m *ledger.Mutation) wire.Obligation {
	o := as[wire.Obligation](m)
	o.Standing, o.Request = standingOf(m), m.Request.Method+" "+m.Request.URL
	if u := m.Undo; u != nil {
		o.Mutation, o.Object, o.Order, o.Auto, o.Sent = u.Of.ID(), u.Object, u.Order, u.Auto, u.Sent
	}
	return o
}

// standingOf is where an obligation stands, in its own words.
func standingOf(m *ledger.Mutation) string {
	switch m.State {
	case ledger.Applied:
		return wire.StandingDone
	case ledger.Skipped:
		return wire.StandingWaived
	case ledger.Failed:
		switch {
		case m.Queued():
			return wire.StandingQueued
		case m.Escalated():
			return wire.StandingGivenUp
		}
		return wire.StandingOwed
	case ledger.InFlight:
		if !m.Unresolved() {
			return wire.StandingSending
		}
	case ledger.NeedsReconcile, ledger.Indeterminate:
	}
	return wire.StandingUnknown
}

// runObligation answers POST /v1/obligations/{id}/run.
func runObligation(s *Server, r *http.Request, q *wire.DecideObligation) (*wire.Obligation, error) {
	return s.decideObligation(r, "run", func(k ledger.Key) (*ledger.Mutation, error) {
		return s.config.Ledger.RunObligation(r.Context(), ledger.RunObligation{
			Key: k, Version: q.Version, Actor: actorOf(r.Context(), q.Actor), Reason: q.Reason,
		})
	})
}

// waiveObligation answers POST /v1/obligations/{id}/waive.
func waiveObligation(s *Server, r *http.Request, q *wire.DecideObligation) (*wire.Obligation, error) {
	return s.decideObligation(r, "waived", func(k ledger.Key) (*ledger.Mutation, error) {
		finished, err := s.config.Ledger.Resolve(r.Context(), ledger.Resolve{
			Key: k, Action: ledger.OnSkip, Version: q.Version, Actor: actorOf(r.Context(), q.Actor), Reason: q.Reason,
		})
		return finished.Mutation, err
	})
}

// decideObligation decides on an obligation. The ledger says of a move why it is refused, which has
// another name there, and nobody asked for that.
func (s *Server) decideObligation(r *http.Request, decided string, decide func(ledger.Key) (*ledger.Mutation, error)) (*wire.Obligation, error) {
	m, err := s.decidable(r.Context(), r.PathValue("id"))
	if err == nil && m.Undo == nil {
		err = refuse("not-found", "Mutation %s is no obligation; see GET /v1/obligations.", m.ID)
	}
	if err != nil {
		return nil, err
	}
	m, err = decide(m.Key)
	if refusal, ok := errors.AsType[*ledger.NotAllowedError](err); ok {
		p, why := notAllowedProblem(refusal), refusal.Reason
		switch refusal.State { //nolint:exhaustive // The other states have no words of their own.
		case ledger.Applied:
			why = "it is done already"
		case ledger.Skipped:
			why = "it was waived already"
		}
		p.Detail = fmt.Sprintf("The obligation can't be %s: %s.", decided, why)
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	return new(obligationOf(m)), nil
}
