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
func resolve(s *Server, r *http.Request, q *wire.Resolve) (any, error) {
	if err := s.checkResolve(q); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	m, err := s.mutation(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if m.ID != id {
		// Versions are small numbers: one that was seen on another record may fit.
		return nil, refuse("not-found", "A decision needs the whole id; %q is the beginning of %s.", id, m.ID)
	}
	command := ledger.Resolve{
		Key:      m.Key,
		Action:   ledger.Trigger(q.Action),
		Actor:    actorOf(r.Context(), q.Actor),
		Reason:   q.Reason,
		Version:  q.Version,
		Force:    q.Force,
		NewKey:   q.NewKey,
		NoResult: q.NoResult,
	}
	if command.Action == ledger.OnCheckAgain {
		command.NextTryAt = s.config.Now().Wall
	}
	if q.Result != nil {
		if command.Result, command.Body, err = s.keepResult(r.Context(), q.Result); err != nil {
			return nil, err
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

// planUndo asks the rule how the object is taken back.
func (s *Server) planUndo(ctx context.Context, m *ledger.Mutation, object string) (*ledger.Owed, error) {
	if s.config.PlanUndo == nil {
		return nil, refuse("not-yet", "Compensating: this program doesn't do it.")
	}
	owed, err := s.config.PlanUndo(ctx, m, object)
	if err != nil {
		return nil, BadRequest("/compensate", "it can't be undone by its rule: "+err.Error(), "undo it by hand, and leave compensate out")
	}
	return &owed, nil
}

// decided shows the record after a decision that is durable: what can't be read
// now is left out, since an error would look like a decision not taken.
func (s *Server) decided(ctx context.Context, m *ledger.Mutation) *wire.Mutation {
	shown, err := s.shown(ctx, m)
	if err != nil {
		s.config.Log.Error().Err(err).Str("mutation", m.ID).Msg("admin: decided, but not shown whole")
		bare := mutationOf(m)
		return &bare
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
	ref := mutationRef(m)
	p.Mutation, p.Run, p.Item = &ref, m.Run, m.Item
	p.Actions = s.actions(m)
	if errors.Is(refusal, ledger.ErrVersion) {
		p.Detail = fmt.Sprintf("Mutation %s is %s at version %d now, not %d; read it again and decide on what it says now.",
			m.ID, m.State, m.Version, q.Version)
		return p
	}
	p.Detail += " " + openSentence(p.Actions)
	return p
}

// openSentence names the actions that are open.
func openSentence(actions []wire.Action) string {
	if len(actions) == 0 {
		return "Nothing is left to decide on it."
	}
	names := make([]string, 0, len(actions))
	for _, a := range actions {
		names = append(names, a.Action)
	}
	return "Open now: " + strings.Join(names, ", ") + "."
}

// checkResolve refuses a decision that isn't one, whatever the record says.
func (s *Server) checkResolve(q *wire.Resolve) error {
	var faults faults
	faults.oneOf("/action", q.Action, wire.ActionNames()...)
	faults.sentence("/reason", q.Reason)
	faults.name("/actor", q.Actor)
	if q.Version < 1 {
		faults.add("/version", "missing", "give the version of the record that you saw")
	}
	if q.Force && q.Action != wire.ActionDidNotHappen {
		faults.add("/force", "goes with did_not_happen only", "leave it out")
	}
	if q.NewKey && q.Action != wire.ActionDidNotHappen && q.Action != wire.ActionNewKey {
		faults.add("/new_key", "goes with did_not_happen only", "leave it out")
	}
	faults.compensate(q)
	faults.result(q)
	if q.Result != nil {
		faults.answer("/result", q.Result, s.config.MaxBody)
	}
	return faults.err()
}

// maxObject is the longest id of what is to be undone, in bytes.
const maxObject = 1 << 10

// compensate wants the object that is to be undone, with happened alone.
func (f *faults) compensate(q *wire.Resolve) {
	switch {
	case q.Compensate && q.Action != wire.ActionHappened:
		f.add("/compensate", "goes with happened only", "leave it out")
	case q.Compensate && q.Object == "":
		f.add("/object", "missing", "give the API's own id of what is to be undone")
	case !q.Compensate && q.Object != "":
		f.add("/object", "goes with compensate only", "leave it out")
	case len(q.Object) > maxObject:
		f.add("/object", fmt.Sprintf("longer than %d bytes", maxObject), "give the API's own id")
	}
}

// result wants a result or the word that there is none, with happened alone.
func (f *faults) result(q *wire.Resolve) {
	switch given := q.Result != nil || q.NoResult; {
	case q.Action == wire.ActionHappened && q.Result != nil && q.NoResult:
		f.add("/no_result", "given together with result", "give one of them")
	case q.Action == wire.ActionHappened && !given:
		f.add("/result", "missing", "give what the script shall get, or no_result: true")
	case q.Action != wire.ActionHappened && given:
		f.add("/result", "goes with happened only", "leave it out")
	}
}

// answer wants an answer that can be replayed.
func (f *faults) answer(where string, a *wire.Result, limit int64) {
	if a.Status < 200 || a.Status > 599 {
		f.add(where+"/status", "no final HTTP status", "give one from 200 to 599")
	}
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

// canonicalHeader writes field names as a server does, so that a replay doesn't
// set a field beside the one that a person gave in lower case.
func canonicalHeader(h wire.Header) ledger.Header {
	out := make(ledger.Header, len(h))
	for name, values := range h {
		name = http.CanonicalHeaderKey(name)
		out[name] = append(out[name], values...)
	}
	return out
}

// keepResult turns a person's answer into a result, whose body is written first if
// it is too long to travel with the command.
func (s *Server) keepResult(ctx context.Context, a *wire.Result) (*ledger.Result, []byte, error) {
	result := &ledger.Result{Status: a.Status, Header: canonicalHeader(a.Headers), Source: sourcePerson}
	if len(a.Body.Content) <= ledger.InlineBody {
		return result, a.Body.Content, nil // The ledger names it.
	}
	var err error
	result.Body, err = s.config.Ledger.WriteBody(ctx, bytes.NewReader(a.Body.Content))
	return result, nil, err
}
