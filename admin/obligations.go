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
func listObligations(s *Server, r *http.Request) (any, error) {
	f, err := filterOf(r.URL.Query(), s.config.Now().Wall)
	if err != nil {
		return nil, err
	}
	all, ok := boolOf(r.URL.Query(), "all")
	if !ok {
		return nil, BadRequest("query:all", "neither true nor false", "write all=true, or leave it out")
	}
	f.Obligations = true
	if !all {
		f.States = openObligations
	}
	page, err := s.config.Ledger.Mutations(r.Context(), f)
	if err != nil {
		return nil, listingError(f, err)
	}
	return wire.List[wire.Obligation]{Items: each(page.Items, obligationOf), Next: page.Next}, nil
}

// obligationOf shows an obligation.
func obligationOf(m *ledger.Mutation) wire.Obligation {
	o := wire.Obligation{
		ID: m.ID, Version: m.Version, Standing: standingOf(m), State: string(m.State),
		Connector: m.Connector, Operation: m.Operation, Target: m.Target, Account: m.Account,
		Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt, Request: m.Request.Method + " " + m.Request.URL,
		Reason: m.Reason, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, NextTryAt: m.NextTryAt,
	}
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
func runObligation(s *Server, r *http.Request, q *wire.DecideObligation) (any, error) {
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
	return obligationOf(run), nil
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
func waiveObligation(s *Server, r *http.Request, q *wire.DecideObligation) (any, error) {
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
	return obligationOf(finished.Mutation), nil
}

// obligationIDs names obligations; nil for none.
func obligationIDs(keys []ledger.Key) []string {
	if len(keys) == 0 {
		return nil
	}
	return each(keys, ledger.Key.ID)
}

// undoOf shows what a mutation takes back; nil if nothing.
func undoOf(u *ledger.Undo) *wire.Undo {
	if u == nil {
		return nil
	}
	return &wire.Undo{Mutation: u.Of.ID(), Object: u.Object}
}
