package admin

import (
	"net/http"
	"strings"
)

// reload answers POST /v1/reload.
func reload(s *Server, r *http.Request) (any, error) {
	if s.config.Reload == nil {
		return nil, refuse("not-yet", "Reloading: this program doesn't do it.")
	}
	out, err := s.config.Reload(r.Context(), "operator")
	if err != nil {
		return nil, refuse("reload-failed", "Nothing was changed: what was in force before stays in force. %s.", strings.TrimSuffix(err.Error(), "."))
	}
	return out, nil
}
