package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"keep-proxy/admin/wire"
)

// Mutations lists mutations, newest first, without bodies and events.
func (c *Client) Mutations(ctx context.Context, f MutationFilter) (*wire.List[wire.Mutation], error) {
	return call[wire.List[wire.Mutation]](ctx, c, request{method: http.MethodGet, path: "/v1/mutations", query: f.values()})
}

// Mutation shows a mutation by its id, or by a prefix of it that fits one only.
func (c *Client) Mutation(ctx context.Context, id string) (*wire.Mutation, error) {
	return call[wire.Mutation](ctx, c, request{method: http.MethodGet, path: mutationPath(id, "")})
}

// RequestBody gives the stored body of a mutation's request.
func (c *Client) RequestBody(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.content(ctx, mutationPath(id, "/request/body"))
}

// ResultBody gives the stored body of a mutation's result.
func (c *Client) ResultBody(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.content(ctx, mutationPath(id, "/result/body"))
}

// Resolve records a person's decision; id is the whole one. `version` if the record has changed since
// the person saw it, `not-allowed`, with the open actions, if its state doesn't
// allow the decision.
func (c *Client) Resolve(ctx context.Context, id string, r wire.Resolve) (*wire.Mutation, error) {
	return call[wire.Mutation](ctx, c, request{method: http.MethodPost, path: mutationPath(id, "/resolve"), body: r})
}

// Obligations lists what is owed; with all, what is met or waived too.
func (c *Client) Obligations(ctx context.Context, f ObligationFilter) (*wire.List[wire.Obligation], error) {
	return call[wire.List[wire.Obligation]](ctx, c, request{method: http.MethodGet, path: "/v1/obligations", query: f.values()})
}

// RunObligation has an obligation met now. `version` if it has changed since the person saw it, `not-allowed` if
// there is nothing to send, or a newer one comes first.
func (c *Client) RunObligation(ctx context.Context, id string, d wire.DecideObligation) (*wire.Obligation, error) {
	return call[wire.Obligation](ctx, c, request{method: http.MethodPost, path: obligationPath(id, "/run"), body: d})
}

// WaiveObligation lets what it would take back stay. Refused like RunObligation, and while a sending of it may still
// take effect.
func (c *Client) WaiveObligation(ctx context.Context, id string, d wire.DecideObligation) (*wire.Obligation, error) {
	return call[wire.Obligation](ctx, c, request{method: http.MethodPost, path: obligationPath(id, "/waive"), body: d})
}

// obligationPath is the path of an obligation, whatever characters its id holds.
func obligationPath(id, rest string) string { return "/v1/obligations/" + url.PathEscape(id) + rest }

// Escalations lists open questions to people.
func (c *Client) Escalations(ctx context.Context, f Filter) (*wire.List[wire.Escalation], error) {
	return call[wire.List[wire.Escalation]](ctx, c, request{method: http.MethodGet, path: "/v1/escalations", query: f.values()})
}

// Items lists items, newest first.
func (c *Client) Items(ctx context.Context, f ItemFilter) (*wire.List[wire.Item], error) {
	return call[wire.List[wire.Item]](ctx, c, request{method: http.MethodGet, path: "/v1/items", query: f.values()})
}

// Item shows an item with its runs and mutations.
func (c *Client) Item(ctx context.Context, id string) (*wire.Item, error) {
	return call[wire.Item](ctx, c, request{method: http.MethodGet, path: itemPath(id, "")})
}

// CloseItem makes an item done.
func (c *Client) CloseItem(ctx context.Context, id string, d wire.DecideItem) (*wire.Item, error) {
	return call[wire.Item](ctx, c, request{method: http.MethodPost, path: itemPath(id, "/done"), body: d})
}

// SkipItem leaves out what is left of an item.
func (c *Client) SkipItem(ctx context.Context, id string, d wire.SkipItem) (*wire.Item, error) {
	return call[wire.Item](ctx, c, request{method: http.MethodPost, path: itemPath(id, "/skip"), body: d})
}

// ReopenItem lets runs of an item in again.
func (c *Client) ReopenItem(ctx context.Context, id string, d wire.DecideItem) (*wire.Item, error) {
	return call[wire.Item](ctx, c, request{method: http.MethodPost, path: itemPath(id, "/reopen"), body: d})
}

// NewAttempt begins an item anew.
func (c *Client) NewAttempt(ctx context.Context, id string, d wire.NewAttempt) (*wire.Item, error) {
	return call[wire.Item](ctx, c, request{method: http.MethodPost, path: itemPath(id, "/new-attempt"), body: d})
}

// itemPath is the path of an item, whatever characters its id holds.
func itemPath(id, rest string) string { return "/v1/items/" + url.PathEscape(id) + rest }

// Explain says what would happen to a request. Nothing is sent.
func (c *Client) Explain(ctx context.Context, e wire.Explain) (wire.Explanation, error) {
	v, err := call[wire.Explanation](ctx, c, request{method: http.MethodPost, path: "/v1/explain", body: e})
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// content gives an answer's bytes as they come; an answer that is cut ends in an
// error, never in io.EOF.
func (c *Client) content(ctx context.Context, path string) (io.ReadCloser, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// mutationPath is the path of a mutation, whatever characters its id holds.
func mutationPath(id, rest string) string { return "/v1/mutations/" + url.PathEscape(id) + rest }

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

// ImpactFilter selects what was touched. At least one field is needed, and Connector with
// Version.
type ImpactFilter struct {
	Connector string
	Version   int
	Run       string
	Workflow  string
	// Since and Until are times (RFC 3339), or durations ago.
	Since, Until string
}

// Impact lists every mutation that the filter selects, newest first.
func (c *Client) Impact(ctx context.Context, f ImpactFilter) ([]wire.Touched, error) {
	q := url.Values{}
	set(q, "connector", f.Connector)
	set(q, "run", f.Run)
	set(q, "workflow", f.Workflow)
	set(q, "since", f.Since)
	set(q, "until", f.Until)
	if f.Version != 0 {
		q.Set("version", strconv.Itoa(f.Version))
	}
	var all []wire.Touched
	for {
		page, err := call[wire.List[wire.Touched]](ctx, c, request{method: http.MethodGet, path: "/v1/impact", query: q})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == "" {
			return all, nil
		}
		q.Set("cursor", page.Next)
	}
}

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
