package client

import (
	"context"
	"net/http"

	"keep-proxy/admin/wire"
)

// Pause keeps mutations and questions about outcomes back.
func (c *Client) Pause(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return call[wire.Mode](ctx, c, request{method: http.MethodPost, path: "/v1/pause", body: q})
}

// Drain keeps every new request back.
func (c *Client) Drain(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return call[wire.Mode](ctx, c, request{method: http.MethodPost, path: "/v1/drain", body: q})
}

// Resume ends either.
func (c *Client) Resume(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return call[wire.Mode](ctx, c, request{method: http.MethodPost, path: "/v1/resume", body: q})
}
