package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/hop"
	"keep-proxy/ledger"
)

// sourcePerson is the source of a result that a person gave.
const sourcePerson = "person"

// resolve answers POST /v1/mutations/{id}/resolve.
func resolve(s *Server, r *http.Request, q *wire.Resolve) (*wire.Mutation, error) {
	command := ledger.Resolve{
		Action: ledger.Trigger(q.Action), Reason: q.Reason, Actor: q.Actor, Version: q.Version,
		Force: q.Force, NewKey: q.NewKey, NoResult: q.NoResult,
	}
	if q.Result != nil {
		command.Result = &ledger.Result{Status: q.Result.Status, Header: canonicalHeader(q.Result.Headers), Source: sourcePerson}
	}
	if q.Compensate {
		command.Compensate = &ledger.Owed{Object: q.Object}
	}
	if err := s.checkResolve(&command, q); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	m, err := s.decidable(r.Context(), id)
	if err != nil {
		return nil, err
	}
	command.Key, command.Actor = m.Key, actorOf(r.Context(), q.Actor)
	if command.Action == ledger.OnCheckAgain {
		command.NextTryAt = s.config.Now().Wall
	}
	if q.Result != nil {
		// The ledger names a body that is part of the command; a longer one is written first.
		if command.Body = q.Result.Body.Content; len(command.Body) > ledger.InlineBody {
			command.Result.Body, err = s.config.Ledger.WriteBody(r.Context(), bytes.NewReader(command.Body))
			if command.Body = nil; err != nil {
				return nil, err
			}
		}
	}
	if q.Compensate {
		if command.Compensate, err = s.planUndo(r.Context(), m, q.Object); err != nil {
			return nil, err
		}
	}
	finished, err := s.config.Ledger.Resolve(r.Context(), command)
	if err != nil {
		return nil, s.explainRefusal(r.Context(), m.ID, q, err)
	}
	return s.decided(r.Context(), finished.Mutation), nil
}

// decidable finds the record that a decision is about. Versions are small numbers: one that
// was seen on another record may fit, so that the id must be whole.
func (s *Server) decidable(ctx context.Context, id string) (*ledger.Mutation, error) {
	m, err := s.mutation(ctx, id)
	if err == nil && m.ID != id {
		return nil, refuse("not-found", "A decision needs the whole id; %q is the beginning of %s.", id, m.ID)
	}
	return m, err
}

// planUndo asks the rule how the object is taken back.
func (s *Server) planUndo(ctx context.Context, m *ledger.Mutation, object string) (*ledger.Owed, error) {
	owed, err := s.config.PlanUndo(ctx, m, object)
	if err != nil {
		return nil, BadRequest("/compensate", "it can't be undone by its rule: "+err.Error(), "undo it by hand, and leave compensate out")
	}
	return &owed, nil
}

// decided shows the record after a decision that is durable. What can't be read now is left out: an
// error would look like a decision not taken.
func (s *Server) decided(ctx context.Context, m *ledger.Mutation) *wire.Mutation {
	shown, err := s.shown(ctx, m)
	if err != nil {
		s.config.Log.Error().Err(err).Str("mutation", m.ID).Msg("admin: decided, but not shown whole")
		return new(mutationOf(m))
	}
	return shown
}

// explainRefusal adds to a refused decision what the record says now.
func (s *Server) explainRefusal(ctx context.Context, id string, q *wire.Resolve, refusal error) error {
	if !errors.Is(refusal, ledger.ErrVersion) && !errors.Is(refusal, ledger.ErrNotAllowed) {
		return refusal
	}
	m, err := s.config.Ledger.MutationByID(ctx, id)
	if err != nil {
		return refusal
	}
	p := problemOf(refusal)
	p.Mutation, p.Run, p.Item, p.Actions = new(as[wire.MutationRef](m)), m.Run, m.Item, s.actions(m)
	names := each(p.Actions, func(a wire.Action) string { return a.Action })
	switch {
	case errors.Is(refusal, ledger.ErrVersion):
		p.Detail = fmt.Sprintf("Mutation %s is %s at version %d now, not %d; read it again and decide on what it says now.",
			m.ID, m.State, m.Version, q.Version)
	case len(names) == 0:
		p.Detail += " Nothing is left to decide on it."
	default:
		p.Detail += " Open now: " + strings.Join(names, ", ") + "."
	}
	return p
}

// checkResolve refuses a decision that isn't one, whatever the record says.
func (s *Server) checkResolve(command *ledger.Resolve, q *wire.Resolve) error {
	var faults faults
	faults.decision(command.Check())
	if q.Object != "" && !q.Compensate {
		faults.add("/object", "goes with compensate only", "leave it out")
	}
	if q.Result != nil {
		faults.answer("/result", q.Result, s.config.MaxBody)
	}
	return faults.err()
}

// answer wants an answer that can be replayed.
func (f *faults) answer(where string, a *wire.Result, limit int64) {
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		values := a.Headers[name]
		place := where + "/headers/" + name
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			f.add(where+"/headers", fmt.Sprintf("%q is no field name", name), "see RFC 9110 §5.1")
		case hop.Is(http.CanonicalHeaderKey(name)), strings.EqualFold(name, "Content-Length"):
			f.add(place, "belongs to the connection, not to the answer", "leave it out")
		case slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
			f.add(place, "no field value", "see RFC 9110 §5.5")
		case strings.EqualFold(name, "Content-Encoding") && isCoded(values) && isText(a.Body.Content):
			f.add(place, "the body is plain text, and no client could read it as "+strings.Join(values, ", "),
				`leave the field out, or give the encoded bytes as {"base64": "…"}`)
		}
	}
	switch {
	case a.Source != "":
		f.add(where+"/source", "is set by keep-proxy", "leave it out")
	case len(a.Trailers) > 0:
		f.add(where+"/trailers", "come from the API alone", "leave them out")
	case a.Body.Missing != "":
		f.add(where+"/body", "no content", `give a string or {"base64": "…"}`)
	case int64(len(a.Body.Content)) > limit:
		f.add(where+"/body", fmt.Sprintf("longer than %d bytes", limit), "give no_result instead")
	}
}

// isCoded reports whether a Content-Encoding says that the content is another than it is
// (RFC 9110 §8.4). Who copies the fields of an answer that was shown decoded copies it, too.
func isCoded(values []string) bool {
	coding := strings.TrimSpace(strings.Join(values, ","))
	return coding != "" && !strings.EqualFold(coding, "identity")
}

// isText reports whether content is some text, which no content coding makes.
func isText(content []byte) bool { return len(content) > 0 && utf8.Valid(content) }

// canonicalHeader writes field names as a server does. So a replay sets no field beside the one that a
// person gave in lower case.
func canonicalHeader(h wire.Header) ledger.Header {
	out := make(ledger.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		out[name] = append(out[name], values...)
	}
	return out
}
