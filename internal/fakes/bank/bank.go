package bank

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
	"keep-proxy/internal/fakes/vendorkey"
)

// Bank is the fake. Its books are what its log says.
type Bank struct {
	keys *vendorkey.Keys

	mu       sync.Mutex
	settings Settings
	booked   []Transfer
	notices  []Notice
}

// New returns a bank with these settings.
func New(settings Settings) *Bank {
	return &Bank{settings: settings, keys: vendorkey.New(settings.KeyWindow.Std())}
}

// Name returns "bank".
func (b *Bank) Name() string { return "bank" }

// Identity names a transfer or a notice by its reference.
func (b *Bank) Identity(r *server.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	if undo := undoing(r.Method, r.Path); undo != "" {
		return undo
	}
	var body struct {
		Reference string `json:"reference"`
	}
	kind, known := map[string]string{"/transfers": "transfer", "/notices": "notice"}[r.Path]
	if !known || decode(r.Body, &body) != nil || body.Reference == "" {
		return r.Method + " " + r.Path
	}
	return kind + ":" + body.Reference
}

// Serve answers a request.
func (b *Bank) Serve(ctx context.Context, c *server.Call) (*server.Answer, error) {
	id, single := strings.CutPrefix(c.Path, "/transfers/")
	if undo := undoing(c.Method, c.Path); undo != "" {
		return b.undo(ctx, c, undo)
	}
	switch {
	case c.Path == "/transfers" && c.Method == http.MethodPost:
		return b.transfer(ctx, c)
	case c.Path == "/notices" && c.Method == http.MethodPost:
		return b.notice(ctx, c)
	case c.Path == "/notices":
		return methodNotAllowed("POST"), nil
	case c.Path != "/transfers" && c.Path != "/balance" && !single:
		return problem(http.StatusNotFound, "no_endpoint", "there is nothing at "+c.Path), nil
	case c.Method != http.MethodGet && c.Method != http.MethodHead:
		return methodNotAllowed("GET"), nil
	case c.Path == "/balance":
		return b.balance(c), nil
	case single:
		return b.find(id), nil
	}
	return b.list(c), nil
}

func problem(status int, code, message string) *server.Answer {
	return server.JSON(status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func methodNotAllowed(allow string) *server.Answer {
	a := problem(http.StatusMethodNotAllowed, "method_not_allowed", "allowed: "+allow)
	a.Header.Set("Allow", allow)
	return a
}

// Restore books again what the log says was booked.
func (b *Bank) Restore(events []oracle.Event) error {
	b.keys.Restore(events)
	for _, e := range events {
		if e.Kind != oracle.KindEffect {
			continue
		}
		var err error
		switch {
		case isUndo(e):
			err = b.took(e.Identity)
		case strings.HasPrefix(e.Identity, "notice:"):
			err = restore(e, &b.notices)
		default:
			err = restore(e, &b.booked)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func restore[T any](e oracle.Event, into *[]T) error {
	var one T
	if err := decode(e.Details, &one); err != nil {
		return fmt.Errorf("bank: effect in line %d: %w", e.Seq, err)
	}
	*into = append(*into, one)
	return nil
}

// stamp is the form of the bank's times.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
