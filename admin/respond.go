package admin

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
)

// writeOptions sort members and escape what a browser would read as markup.
var writeOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(true))

// retryAfter is what a caller is asked to wait, in seconds, when the ledger
// takes no records.
const retryAfter = 5

// callerKey is the context key of who asks.
type callerKey struct{}

// withCaller keeps who asks for the handlers.
func withCaller(ctx context.Context, who caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// callerOf returns who asks; nobody for a route without a token.
func callerOf(ctx context.Context) caller {
	who, _ := ctx.Value(callerKey{}).(caller)
	return who
}

// marshal writes equal values as equal texts.
func marshal(v any) ([]byte, error) { return json.Marshal(v, writeOptions) }

// respond writes v as JSON.
func respond(w http.ResponseWriter, status int, v any) error {
	content, err := marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(status)
	// A caller that has gone misses its answer; nothing can be done about it.
	_, _ = w.Write(content)
	return nil
}

// refuse writes a problem.
func (s *Server) refuse(w http.ResponseWriter, p *wire.Problem) {
	content, err := marshal(p)
	if err != nil {
		s.config.Log.Error().Err(err).Msg("admin: a problem can't be written")
		content = []byte(`{}`)
	}
	h := w.Header()
	h.Del("Content-Disposition")
	h.Set("Content-Type", wire.ProblemContentType)
	h.Set("Content-Length", strconv.Itoa(len(content)))
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="keep-proxy"`)
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(retryAfter))
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(content) //nolint:gosec // problem+json under nosniff, with markup escaped: no browser reads it as a page
}

// fail answers an error; the log gets the cause of an internal one.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status == http.StatusInternalServerError && r.Context().Err() == nil {
		s.config.Log.Error().Err(err).Str("method", r.Method).Str("path", r.URL.Path).Msg("admin: internal error")
	}
	s.refuse(w, p)
}
