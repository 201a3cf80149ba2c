package bank

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

// Statuses of a transfer. One that is cancelled isn't shown any more.
const (
	statusBooked    = "booked"
	statusReversed  = "reversed"
	statusCancelled = "cancelled"
)

// Prefixes of the identities of what takes a transfer back.
const (
	cancels  = "cancel:"
	reverses = "reversal:"
)

// undoing names what takes a transfer back; "" for another request.
func undoing(method, path string) string {
	id, single := strings.CutPrefix(path, "/transfers/")
	if id, reversal := strings.CutSuffix(id, "/reversals"); single && reversal && method == http.MethodPost {
		return reverses + id
	}
	if single && method == http.MethodDelete && !strings.Contains(id, "/") {
		return cancels + id
	}
	return ""
}

// undo cancels or reverses a transfer. A reversal that comes again pays the money back
// again: this bank knows no key for it.
func (b *Bank) undo(ctx context.Context, c *server.Call, identity string) (*server.Answer, error) {
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, id, _ := strings.Cut(identity, ":")
	if b.shown(id) == nil {
		return problem(http.StatusNotFound, "no_transfer", "there is no transfer "+id), nil
	}
	if err := c.Commit(identity, map[string]string{"id": id}, nil); err != nil {
		return nil, err
	}
	if err := b.took(identity); err != nil {
		return nil, err
	}
	switch {
	case c.Own != nil:
		return c.Own, nil
	case strings.HasPrefix(identity, cancels):
		return &server.Answer{Status: http.StatusNoContent, Header: http.Header{}}, nil
	}
	return server.JSON(http.StatusCreated, map[string]string{"transfer": id, "status": statusReversed}), nil
}

// took books that a transfer was taken back.
func (b *Bank) took(identity string) error {
	_, id, _ := strings.Cut(identity, ":")
	t := b.shown(id)
	switch {
	case t == nil:
		return fmt.Errorf("bank: %s is of no transfer", identity)
	case strings.HasPrefix(identity, cancels):
		t.Status = statusCancelled
	default:
		t.Status = statusReversed
		t.Reversals++
	}
	return nil
}

// shown is the transfer of this id, nil if there is none, or none any more.
func (b *Bank) shown(id string) *Transfer {
	i := slices.IndexFunc(b.booked, func(t Transfer) bool { return t.ID == id && t.Status != statusCancelled })
	if i < 0 {
		return nil
	}
	return &b.booked[i]
}

// isUndo reports whether the effect took a transfer back.
func isUndo(e oracle.Event) bool {
	return strings.HasPrefix(e.Identity, cancels) || strings.HasPrefix(e.Identity, reverses)
}

// moved is what a transfer moves in the end.
func (t *Transfer) moved() int64 {
	if t.Status == statusCancelled {
		return 0
	}
	return t.Amount * int64(1-t.Reversals)
}
