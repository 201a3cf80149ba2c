package admin

import (
	"net/http"
	"strings"

	"keep-proxy/ledger"
)

// reload answers POST /v1/reload.
func reload(s *Server, r *http.Request) (any, error) {
	if s.config.Reload == nil {
		return nil, refuse("not-yet", "Reloading: this program doesn't do it.")
	}
	// The request says no name of its own: it is by whose token it was.
	out, err := s.config.Reload(r.Context(), ledger.PersonActor(callerOf(r.Context()).name))
	if err != nil {
		return nil, refuse("reload-failed", "Nothing was changed: what was in force before stays in force. %s.", strings.TrimSuffix(err.Error(), "."))
	}
	return out, nil
}
