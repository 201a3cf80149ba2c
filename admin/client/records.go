package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"keep-proxy/admin/wire"
)

// Filter selects records. Zero fields don't. A listing refuses what it can't select by.
type Filter struct {
	Workflow, Item, Run, Connector, Operation string
	// Version is that of the connector's file.
	Version int
	States  []string
	// Since and Until are times (RFC 3339), or durations ago.
	Since, Until string
	// Running selects runs that have not ended.
	Running bool
	// Unresolved selects mutations whose outcome is unknown, Escalated those with an open
	// question to a person.
	Unresolved, Escalated bool
	// All selects obligations that are met or waived, too.
	All bool
	// Cursor is the Next of the page before.
	Cursor string
	// Limit is the longest page: 1 to 1000; 0 takes the listing's own.
	Limit int
}

func (f Filter) values() url.Values {
	q := url.Values{"state": f.States}
	for name, value := range map[string]string{
		"workflow": f.Workflow, "item": f.Item, "run": f.Run, "connector": f.Connector, "operation": f.Operation,
		"since": f.Since, "until": f.Until, "cursor": f.Cursor,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, value := range map[string]bool{"running": f.Running, "unresolved": f.Unresolved, "escalated": f.Escalated, "all": f.All} {
		if value {
			q.Set(name, "true")
		}
	}
	for name, value := range map[string]int{"version": f.Version, "limit": f.Limit} {
		if value != 0 {
			q.Set(name, strconv.Itoa(value))
		}
	}
	return q
}

// at is a path of the API, whatever characters its parts hold.
func at(parts ...string) string {
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return "/v1/" + strings.Join(parts, "/")
}

// list reads a page of a listing.
func list[T any](ctx context.Context, c *Client, name string, f Filter) (*wire.List[T], error) {
	return call[wire.List[T]](ctx, c, request{method: http.MethodGet, path: at(name), query: f.values()})
}

// get reads one record.
func get[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return call[T](ctx, c, request{method: http.MethodGet, path: path})
}

// post sends a command.
func post[T any](ctx context.Context, c *Client, path string, body any) (*T, error) {
	return call[T](ctx, c, request{method: http.MethodPost, path: path, body: body})
}

// Mutations lists mutations, newest first, without bodies and events.
func (c *Client) Mutations(ctx context.Context, f Filter) (*wire.List[wire.Mutation], error) {
	return list[wire.Mutation](ctx, c, "mutations", f)
}

// Mutation shows a mutation by its id, or by a prefix of it that fits one only.
func (c *Client) Mutation(ctx context.Context, id string) (*wire.Mutation, error) {
	return get[wire.Mutation](ctx, c, at("mutations", id))
}

// Body gives the stored body of a mutation's "request" or "result".
func (c *Client) Body(ctx context.Context, id, part string) (io.ReadCloser, error) {
	return c.content(ctx, at("mutations", id, part, "body"))
}

// Resolve records a person's decision; id is the whole one. Refused with `version` if the record has
// changed since the person saw it. Refused with `not-allowed` and the open actions if its state
// doesn't allow the decision.
func (c *Client) Resolve(ctx context.Context, id string, r wire.Resolve) (*wire.Mutation, error) {
	return post[wire.Mutation](ctx, c, at("mutations", id, "resolve"), r)
}

// Obligations lists what is owed; with All, what is met or waived too.
func (c *Client) Obligations(ctx context.Context, f Filter) (*wire.List[wire.Obligation], error) {
	return list[wire.Obligation](ctx, c, "obligations", f)
}

// RunObligation has an obligation met now. Refused with `version` if it has changed since the person
// saw it. Refused with `not-allowed` if there is nothing to send, or a newer one comes first.
func (c *Client) RunObligation(ctx context.Context, id string, d wire.DecideObligation) (*wire.Obligation, error) {
	return post[wire.Obligation](ctx, c, at("obligations", id, "run"), d)
}

// WaiveObligation lets what it would take back stay. Refused like RunObligation, and while a sending of it may still
// take effect.
func (c *Client) WaiveObligation(ctx context.Context, id string, d wire.DecideObligation) (*wire.Obligation, error) {
	return post[wire.Obligation](ctx, c, at("obligations", id, "waive"), d)
}

// Escalations lists open questions to people.
func (c *Client) Escalations(ctx context.Context, f Filter) (*wire.List[wire.Escalation], error) {
	return list[wire.Escalation](ctx, c, "escalations", f)
}

// Items lists items, newest first.
func (c *Client) Items(ctx context.Context, f Filter) (*wire.List[wire.Item], error) {
	return list[wire.Item](ctx, c, "items", f)
}

// Item shows an item with its runs and mutations.
func (c *Client) Item(ctx context.Context, id string) (*wire.Item, error) {
	return get[wire.Item](ctx, c, at("items", id))
}

// CloseItem makes an item done.
func (c *Client) CloseItem(ctx context.Context, id string, d wire.DecideItem) (*wire.Item, error) {
	return post[wire.Item](ctx, c, at("items", id, "done"), d)
}

// SkipItem leaves out what is left of an item.
func (c *Client) SkipItem(ctx context.Context, id string, d wire.SkipItem) (*wire.Item, error) {
	return post[wire.Item](ctx, c, at("items", id, "skip"), d)
}

// ReopenItem lets runs of an item in again.
func (c *Client) ReopenItem(ctx context.Context, id string, d wire.DecideItem) (*wire.Item, error) {
	return post[wire.Item](ctx, c, at("items", id, "reopen"), d)
}

// NewAttempt begins an item anew.
func (c *Client) NewAttempt(ctx context.Context, id string, d wire.NewAttempt) (*wire.Item, error) {
	return post[wire.Item](ctx, c, at("items", id, "new-attempt"), d)
}

// Explain says what would happen to a request. Nothing is sent.
func (c *Client) Explain(ctx context.Context, e wire.Explain) (wire.Explanation, error) {
	v, err := post[wire.Explanation](ctx, c, at("explain"), e)
	if err != nil {
		return nil, err
	}
	return *v, nil
}

// Impact lists every mutation that the filter selects, newest first. At least one field is
// needed, and Connector with Version.
func (c *Client) Impact(ctx context.Context, f Filter) ([]wire.Touched, error) {
	var all []wire.Touched
	for {
		page, err := list[wire.Touched](ctx, c, "impact", f)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if f.Cursor = page.Next; f.Cursor == "" {
			return all, nil
		}
	}
}

// OpenRun opens a managed run. A repeated call with the same key, which may be
// empty, gets the run that the first one opened.
func (c *Client) OpenRun(ctx context.Context, r wire.OpenRun, idempotencyKey string) (*wire.OpenedRun, error) {
	return call[wire.OpenedRun](ctx, c, request{method: http.MethodPost, path: at("runs"), body: r, idempotencyKey: idempotencyKey})
}

// Runs lists runs, newest first.
func (c *Client) Runs(ctx context.Context, f Filter) (*wire.List[wire.Run], error) {
	return list[wire.Run](ctx, c, "runs", f)
}

// Run shows a run.
func (c *Client) Run(ctx context.Context, id string) (*wire.Run, error) {
	return get[wire.Run](ctx, c, at("runs", id))
}

// Heartbeat keeps a run from expiring for TTL from now.
func (c *Client) Heartbeat(ctx context.Context, id string, h wire.Heartbeat) (*wire.Run, error) {
	return post[wire.Run](ctx, c, at("runs", id, "heartbeat"), h)
}

// FinishRun ends a run with its script's outcome. It waits for what is being sent. Refused with
// `run-unfinished` if the run can't be done.
func (c *Client) FinishRun(ctx context.Context, id string, f wire.FinishRun) (*wire.Run, error) {
	return post[wire.Run](ctx, c, at("runs", id, "finish"), f)
}

// EndRun aborts a run. One that has ended is returned as it is.
func (c *Client) EndRun(ctx context.Context, id string, e wire.EndRun) (*wire.Run, error) {
	return post[wire.Run](ctx, c, at("runs", id, "end"), e)
}

// Environment gives the proxy's address and variables without a run.
func (c *Client) Environment(ctx context.Context) (*wire.Environment, error) {
	return get[wire.Environment](ctx, c, at("environment"))
}

// Pause keeps mutations and questions about outcomes back.
func (c *Client) Pause(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return post[wire.Mode](ctx, c, at("pause"), q)
}

// Drain keeps every new request back.
func (c *Client) Drain(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return post[wire.Mode](ctx, c, at("drain"), q)
}

// Resume ends either.
func (c *Client) Resume(ctx context.Context, q wire.SetMode) (*wire.Mode, error) {
	return post[wire.Mode](ctx, c, at("resume"), q)
}

// Status counts what is unknown, escalated and stopped.
func (c *Client) Status(ctx context.Context) (*wire.Status, error) {
	return get[wire.Status](ctx, c, at("status"))
}

// ConfirmGap says that a person knows what happened while the ledger knew nothing.
func (c *Client) ConfirmGap(ctx context.Context, q wire.ConfirmGap) (*wire.GapConfirmed, error) {
	return post[wire.GapConfirmed](ctx, c, at("ledger", "confirm"), q)
}
