package admin

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// listEscalations answers GET /v1/escalations.
func listEscalations(s *Server, r *http.Request) (*wire.List[wire.Escalation], error) {
	q := s.query(r)
	f := q.filter()
	f.Escalated = true
	page, err := listing(r, q, f, s.config.Ledger.Mutations, func(m *ledger.Mutation) *ledger.Mutation { return m })
	if err != nil {
		return nil, err
	}
	list := &wire.List[wire.Escalation]{Items: []wire.Escalation{}, Next: page.Next}
	for _, m := range page.Items {
		// A question may be answered between the index and the record.
		if !m.Escalated() {
			continue
		}
		e, err := s.escalation(r.Context(), m)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, e)
	}
	return list, nil
}

// escalation gathers what a person needs to decide on m, whose question is open.
func (s *Server) escalation(ctx context.Context, m *ledger.Mutation) (wire.Escalation, error) {
	hint, err := s.resumeHint(ctx, m.Run)
	if err != nil {
		return wire.Escalation{}, err
	}
	check, asked := s.ManualCheck(ctx, m), m.Escalation
	out := as[wire.Escalation](m)
	out.ID, out.Mutation, out.Kind, out.OpenedAt, out.Asked = asked.ID, m.ID, asked.Kind, asked.OpenedAt, asked.Why
	out.Waits = wire.Duration(s.config.Now().Wall.Sub(asked.OpenedAt).Round(time.Second))
	out.Attempted, out.WhyUnknown, out.Probed = attempted(m), whyUnknown(m), probed(m)
	out.CanVerify, out.CannotVerify, out.ManualCheck = m.Policy.Reconciler, check.CannotVerify, check.Text
	out.Actions, out.ResumeHint, out.Blocks = s.actions(m), hint, blocksOf(m)
	if asked.Kind != ledger.EscalationMismatch {
		// A difference that the question isn't about.
		out.Diff = nil
	}
	return out, nil
}

// resumeHint is what the run's host said about starting it again. It is empty for an unmanaged scope,
// or for a run that retention dropped.
func (s *Server) resumeHint(ctx context.Context, run string) (string, error) {
	if run == "" {
		return "", nil
	}
	var hint string
	err := s.config.Ledger.View(ctx, func(v ledger.View) error {
		r, err := v.Run(run)
		if err == nil {
			hint = r.ResumeHint
		}
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil
	}
	return hint, err
}

// ManualCheck asks the rules. Where they can't say, the person is told so: a question without an
// answer is better than none.
func (s *Server) ManualCheck(ctx context.Context, m *ledger.Mutation) ManualCheck {
	check, err := s.config.Explainer.ManualCheck(ctx, m)
	if err != nil {
		s.config.Log.Error().Err(err).Str("mutation", m.ID).Msg("admin: no manual check")
		check = ManualCheck{}
	}
	if check.Text == "" {
		check.Text = "The rule gives no manual check: look in " + cmp.Or(m.Connector, "the other system") +
			" whether this is there: " + targetOf(m) + "."
	}
	if check.CannotVerify == "" && !m.Policy.Reconciler {
		check.CannotVerify = "The rule knows no way to ask this API."
	}
	return check
}

// blocksOf says what m stops; nil if nothing.
func blocksOf(m *ledger.Mutation) *wire.Blocks {
	if b := m.Blocks(); b != nil {
		return &wire.Blocks{Scope: string(b.Scope), Name: b.Name}
	}
	return nil
}
