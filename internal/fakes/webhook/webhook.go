// Package webhook is a sink: it takes whatever is posted, and nothing of it can
// be asked for afterwards.
//
//	POST, PUT, PATCH, DELETE /hook/{name…}
//	    any body → 200 text/plain "ok"
//
// Other paths are 404, other methods 405. Identity in the log: hook:NAME.
package webhook

import (
	"context"
	"net/http"
	"strings"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

// Webhook is the fake. Its only memory is the log.
type Webhook struct{}

// New returns the API.
func New() *Webhook { return &Webhook{} }

// Delivery is the effect of one request.
type Delivery struct {
	Method string `json:"method"`
	Digest string `json:"digest"`
	Length int    `json:"length"`
}

// Name returns "webhook".
func (*Webhook) Name() string { return "webhook" }

// Identity names the hook.
func (*Webhook) Identity(r *server.Request) string {
	name, ok := strings.CutPrefix(r.Path, "/hook/")
	switch {
	case !takes(r.Method):
		return ""
	case !ok || name == "":
		return r.Method + " " + r.Path
	}
	return "hook:" + name
}

func takes(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// Restore has nothing to restore.
func (*Webhook) Restore([]oracle.Event) error { return nil }

// Serve takes in a delivery.
func (w *Webhook) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	name, ok := strings.CutPrefix(c.Path, "/hook/")
	if !ok || name == "" {
		return text(http.StatusNotFound, "no such hook\n"), nil
	}
	if !takes(c.Method) {
		a := text(http.StatusMethodNotAllowed, "a hook can't be read\n")
		a.Header.Set("Allow", "POST, PUT, PATCH, DELETE")
		return a, nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	delivery := Delivery{Method: c.Method, Digest: c.Digest, Length: len(c.Body)}
	if err := c.Commit(w.Identity(c.Request), delivery, nil); err != nil {
		return nil, err
	}
	if c.Own != nil {
		return c.Own, nil
	}
	return text(http.StatusOK, "ok\n"), nil
}

func text(status int, body string) *server.Answer {
	return &server.Answer{Status: status, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: []byte(body)}
}
