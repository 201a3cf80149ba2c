package client

import (
	"context"
	"net/http"
	"net/url"

	"keep-proxy/admin/wire"
)

// OpenRun opens a managed run. A repeated call with the same key, which may be
// empty, gets the run that the first one opened.
func (c *Client) OpenRun(ctx context.Context, r wire.OpenRun, idempotencyKey string) (*wire.OpenedRun, error) {
	return call[wire.OpenedRun](ctx, c, request{
		method: http.MethodPost, path: "/v1/runs", body: r, idempotencyKey: idempotencyKey,
	})
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, f RunFilter) (*wire.List[wire.Run], error) {
	return call[wire.List[wire.Run]](ctx, c, request{method: http.MethodGet, path: "/v1/runs", query: f.values()})
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, id string) (*wire.Run, error) {
	return call[wire.Run](ctx, c, request{method: http.MethodGet, path: runPath(id, "")})
}

// Heartbeat keeps a run from expiring for TTL from now.
func (c *Client) Heartbeat(ctx context.Context, id string, h wire.Heartbeat) (*wire.Run, error) {
	return call[wire.Run](ctx, c, request{method: http.MethodPost, path: runPath(id, "/heartbeat"), body: h})
}

// FinishRun ends a run with its script's outcome; it waits for what is being
// sent. `run-unfinished` if the run can't be done.
func (c *Client) FinishRun(ctx context.Context, id string, f wire.FinishRun) (*wire.Run, error) {
	return call[wire.Run](ctx, c, request{method: http.MethodPost, path: runPath(id, "/finish"), body: f})
}

// EndRun aborts a run. One that has ended is returned as it is.
func (c *Client) EndRun(ctx context.Context, id string, e wire.EndRun) (*wire.Run, error) {
	return call[wire.Run](ctx, c, request{method: http.MethodPost, path: runPath(id, "/end"), body: e})
}

// Environment gives the proxy's address and variables without a run.
func (c *Client) Environment(ctx context.Context) (*wire.Environment, error) {
	return call[wire.Environment](ctx, c, request{method: http.MethodGet, path: "/v1/environment"})
}

// runPath is the path of a run, whatever characters its id holds.
func runPath(id, rest string) string { return "/v1/runs/" + url.PathEscape(id) + rest }
