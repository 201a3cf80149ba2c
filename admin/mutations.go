package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// maxShown is the longest body, in bytes, that a shown record holds; a longer one
// is fetched by itself.
const maxShown = 1 << 20

// maxEvents is the longest history of one record that is shown. One half of it is from the beginning,
// the other from the end. Each replay is an event, so that what is asked for each minute has more
// within hours.
const maxEvents = 1000

// listMutations answers GET /v1/mutations.
func listMutations(s *Server, r *http.Request) (*wire.List[wire.Mutation], error) {
	q := s.query(r)
	f := q.filter()
	f.States = states(q, ledger.States())
	show := mutationOf
	if callerOf(r.Context()).role == RoleHost {
		show = outlineOf
	}
	return listing(r, q, f, s.config.Ledger.Mutations, show)
}

// showMutation answers GET /v1/mutations/{id}.
func showMutation(s *Server, r *http.Request) (*wire.Mutation, error) {
	m, err := s.mutation(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if callerOf(r.Context()).role == RoleHost {
		return new(outlineOf(m)), nil
	}
	return s.shown(r.Context(), m)
}

// mutation finds a record by its id, or by a prefix of it that fits one only.
func (s *Server) mutation(ctx context.Context, id string) (*ledger.Mutation, error) {
	m, err := s.config.Ledger.MutationByID(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, refuse("not-found", "There is no mutation %q in this ledger, or more than one begins so; see GET /v1/mutations.", id)
	}
	return m, err
}

// shown is a record with its bodies, history and open actions.
func (s *Server) shown(ctx context.Context, m *ledger.Mutation) (*wire.Mutation, error) {
	out := mutationOf(m)
	if err := s.showBody(ctx, m.Request.Body, &out.Request.Body); err != nil {
		return nil, err
	}
	if m.Result != nil {
		if err := s.showBody(ctx, m.Result.Body, &out.Result.Body); err != nil {
			return nil, err
		}
	}
	events, leftOut, err := s.historyOf(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	out.Events, out.EventsLeftOut = each(events, as[wire.Event, ledger.Event]), leftOut
	if out.Actions = s.actions(m); len(out.Actions) == 0 {
		return &out, nil
	}
	check := s.ManualCheck(ctx, m)
	out.CanVerify, out.CannotVerify, out.ManualCheck = &m.Policy.Reconciler, check.CannotVerify, check.Text
	out.Blocks = blocksOf(m)
	out.ResumeHint, err = s.resumeHint(ctx, m.Run)
	return &out, err
}

// historyOf is what happened to a record, and how many events are left out of the middle. It begins
// with the sending that everything is about, and ends with what was decided last.
func (s *Server) historyOf(ctx context.Context, id string) (events []ledger.Event, leftOut int, err error) {
	for after := uint64(0); ; {
		page, err := s.config.Ledger.Events(ctx, id, after, maxEvents)
		if err != nil {
			return nil, 0, err
		}
		events = append(events, page...)
		if over := len(events) - maxEvents; over > 0 {
			events, leftOut = slices.Delete(events, maxEvents/2, maxEvents/2+over), leftOut+over
		}
		if len(page) < maxEvents {
			return events, leftOut, nil
		}
		after = page[len(page)-1].Seq
	}
}

// showBody puts content in the place of its reference, unless it is too long, was dropped, or can't be
// read. Who decides on a record needs the rest of it all the same.
func (s *Server) showBody(ctx context.Context, stored ledger.Body, shown *wire.Body) error {
	if shown.Missing != wire.MissingOmitted || stored.Size > maxShown {
		return nil
	}
	content, err := s.contentOf(ctx, stored)
	switch {
	case err == nil:
		*shown = wire.Body{Content: content}
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, ledger.ErrBodyDropped):
		shown.Missing = wire.MissingDropped
		return nil
	case errors.Is(err, ledger.ErrDamaged):
		shown.Missing = wire.MissingDamaged
	}
	s.config.Log.Error().Err(err).Str("body", stored.SHA256).Msg("admin: a record is shown without its content")
	return nil
}

// contentOf reads stored content to its end, where it is found whole.
func (s *Server) contentOf(ctx context.Context, stored ledger.Body) ([]byte, error) {
	r, err := s.config.Ledger.Body(ctx, stored)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(r, maxShown+1))
	return content, errors.Join(err, r.Close())
}

// Parts of a record whose content can be fetched by itself.
const (
	partRequest = "request"
	partResult  = "result"
)

// sendBody answers GET /v1/mutations/{id}/{part}/body with the stored bytes as
// they are. They are given as an attachment without a type of their own, since
// a third party chose them.
func sendBody(s *Server, w http.ResponseWriter, r *http.Request) error {
	m, err := s.mutation(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	var stored ledger.Body
	switch part := r.PathValue("part"); {
	case part == partRequest:
		stored = m.Request.Body
	case part == partResult && m.Result != nil:
		stored = m.Result.Body
	case part == partResult:
		return refuse("not-found", "Mutation %s has no stored result.", m.ID)
	default:
		return refuse("not-found", "A mutation has a request and a result, no %q.", part)
	}
	w.Header().Set("Content-Disposition", "attachment")
	if stored.Size == 0 {
		return nil
	}
	content, err := s.config.Ledger.Body(r.Context(), stored)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return s.stream(w, r, func(_ context.Context, w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
}

// actions are the decisions that are open on m.
func (s *Server) actions(m *ledger.Mutation) []wire.Action {
	return each(s.config.Ledger.Actions(m, s.config.Now()), as[wire.Action, ledger.Action])
}
