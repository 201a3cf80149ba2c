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

// obligation is the record that a person decides on.
func (s *Server) obligation(r *http.Request) (*ledger.Mutation, error) {
	m, err := s.decidable(r.Context(), r.PathValue("id"))
	if err == nil && m.Undo == nil {
		return nil, refuse("not-found", "Mutation %s is no obligation; see GET /v1/obligations.", m.ID)
	}
	return m, err
}

// runObligation answers POST /v1/obligations/{id}/run.
func runObligation(s *Server, r *http.Request, q *wire.DecideObligation) (*wire.Obligation, error) {
	m, err := s.obligation(r)
	if err != nil {
		return nil, err
	}
	run, err := s.config.Ledger.RunObligation(r.Context(), ledger.RunObligation{
		Key: m.Key, Version: q.Version, Actor: actorOf(r.Context(), q.Actor), Reason: q.Reason,
	})
	if err != nil {
		return nil, refusedObligation("run", err)
	}
	out := obligationOf(run)
	return &out, nil
}

// refusedObligation says why an obligation can't be run or waived. The ledger says it of the move that
// this would be, which has another name, and nobody asked for that.
func refusedObligation(decided string, err error) error {
	refusal, ok := errors.AsType[*ledger.NotAllowedError](err)
	if !ok {
		return err
	}
	p, why := notAllowedProblem(refusal), refusal.Reason
	switch refusal.State {
	case ledger.Applied:
		why = "it is done already"
	case ledger.Skipped:
		why = "it was waived already"
	case ledger.InFlight, ledger.Failed, ledger.NeedsReconcile, ledger.Indeterminate:
	}
	p.Detail = fmt.Sprintf("The obligation can't be %s: %s.", decided, why)
	return p
}

// waiveObligation answers POST /v1/obligations/{id}/waive.
func waiveObligation(s *Server, r *http.Request, q *wire.DecideObligation) (*wire.Obligation, error) {
	m, err := s.obligation(r)
	if err != nil {
		return nil, err
	}
	finished, err := s.config.Ledger.Resolve(r.Context(), ledger.Resolve{
		Key: m.Key, Action: ledger.OnSkip, Version: q.Version, Actor: actorOf(r.Context(), q.Actor), Reason: q.Reason,
	})
	if err != nil {
		return nil, refusedObligation("waived", err)
	}
	out := obligationOf(finished.Mutation)
	return &out, nil
}
