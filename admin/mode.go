package admin

import (
	"context"
	"net/http"
	"strings"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// Modes pauses, drains and resumes the program.
type Modes interface {
	// Mode is how it stands.
	Mode() wire.Mode
	// SetMode makes it so, to one of the modes of package wire.
	SetMode(ctx context.Context, mode string, q wire.SetMode) (wire.Mode, error)
}

// setMode answers POST /v1/{pause,drain,resume}.
func setMode(mode string) func(*Server, *http.Request, *wire.SetMode) (*wire.Mode, error) {
	return func(s *Server, r *http.Request, q *wire.SetMode) (*wire.Mode, error) {
		if err := ledger.CheckDecision(q.Actor, q.Reason); err != nil {
			return nil, err
		}
		told := *q
		told.Actor = actorOf(r.Context(), q.Actor)
		// A caller that goes away doesn't leave it half done.
		out, err := s.config.Modes.SetMode(context.WithoutCancel(r.Context()), mode, told)
		return &out, err
	}
}

// admitting refuses while an operator keeps work back.
func (s *Server) admitting() error {
	m := s.config.Modes.Mode()
	if m.Mode == wire.ModeServing {
		return nil
	}
	return refuse("draining", "An operator has told keep-proxy to take no work (%s since %s: %s). No run was opened; try again later.",
		m.Mode, m.Since.UTC().Format("2006-01-02 15:04:05Z"), m.Reason)
}

// reload answers POST /v1/reload.
func reload(s *Server, r *http.Request) (*wire.Reloaded, error) {
	// The request says no name of its own: it is by whose token it was.
	out, err := s.config.Reload(r.Context(), ledger.PersonActor(callerOf(r.Context()).name))
	if err != nil {
		return nil, refuse("reload-failed", "Nothing was changed: what was in force before stays in force. %s.", strings.TrimSuffix(err.Error(), "."))
	}
	return &out, nil
}
