package bank

import (
	"context"
	"fmt"
	"net/http"

	"keep-proxy/internal/fakes/server"
)

// Notice is a message that the bank sends for a client. No endpoint shows it.
type Notice struct {
	ID        string `json:"id"`
	To        string `json:"to"`
	Text      string `json:"text"`
	Reference string `json:"reference"`
}

func (b *Bank) notice(ctx context.Context, c *server.Call) (*server.Answer, error) {
	var n Notice
	if err := decode(c.Body, &n); err != nil {
		return problem(http.StatusBadRequest, "invalid_json", err.Error()), nil
	}
	if n.To == "" || n.Text == "" || n.Reference == "" {
		return problem(http.StatusUnprocessableEntity, "invalid_notice", "to, text and reference are required"), nil
	}
	if err := c.Pause(ctx); err != nil {
		return nil, err
	}
	if c.NoEffect {
		return c.Own, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	n.ID = fmt.Sprintf("no_%06d", len(b.notices)+1)
	if err := c.Commit("notice:"+n.Reference, n, nil); err != nil {
		return nil, err
	}
	b.notices = append(b.notices, n)
	if c.Own != nil {
		return c.Own, nil
	}
	return server.JSON(http.StatusAccepted, map[string]string{"id": n.ID, "status": "queued"}), nil
}
