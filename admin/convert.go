package admin

import (
	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// mutationOf shows a record without its events, its open actions, and the
// content of its bodies.
func mutationOf(m *ledger.Mutation) wire.Mutation {
	return wire.Mutation{
		ID: m.ID, Version: m.Version, Key: m.Key.String(), State: string(m.State),
		Committed: m.Committed, Watching: m.Watching, ResultState: string(m.ResultState),
		Connector: m.Connector, ConnectorVersion: m.ConnectorVersion, ConnectorHash: m.ConnectorHash,
		Operation: m.Operation, Target: m.Target, Account: m.Account,
		Identity: identityOf(m.Identity), Subkey: m.Subkey,
		Workflow: m.Workflow, Item: m.Item, Attempt: m.Attempt, Run: m.Run,
		VendorKey: m.VendorKey, Marker: m.Marker, Generation: m.Generation,
		Class: string(m.Class), Reason: m.Reason,
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt, NextTryAt: m.NextTryAt, RetryAfter: m.RetryAfter,
		Tries: m.Tries,
		Request: wire.Request{
			Method: m.Request.Method, URL: m.Request.URL,
			Headers: wire.Header(m.Request.Header), Body: bodyReference(m.Request.Body),
		},
		Result:       resultOf(m.Result),
		Dispatches:   each(m.Dispatches, dispatchOf),
		Observations: each(m.Observations, observationOf),
		Escalation:   escalationRef(m.Escalation),
		Diff:         diffOf(m.Diff),
		Verification: verificationOf(m.Verification),
		Obligations:  obligationIDs(m.Obligations),
		Undo:         undoOf(m.Undo),
	}
}

// outlineOf shows what became of a record, and not what was sent or answered: no header
// fields, of which one may open a session, no values in which payloads differ, and not
// what the API was asked.
func outlineOf(m *ledger.Mutation) wire.Mutation {
	out := mutationOf(m)
	out.Request.Headers = wire.Header{}
	if out.Result != nil {
		out.Result.Headers, out.Result.Trailers = wire.Header{}, nil
	}
	if out.Diff != nil {
		for i := range out.Diff.Changes {
			out.Diff.Changes[i].Stored, out.Diff.Changes[i].Asked = "", ""
		}
	}
	if out.Verification != nil {
		out.Verification.Evidence = ""
	}
	for i := range out.Observations {
		out.Observations[i].Evidence = ""
	}
	return out
}

func verificationOf(v *ledger.Verification) *wire.Verification {
	if v == nil {
		return nil
	}
	return &wire.Verification{
		At: v.At, Said: string(v.Said), Reason: v.Reason, Evidence: v.Evidence, Count: v.Count, Acknowledged: v.Acknowledged,
	}
}

// each converts a list; the result is never nil.
func each[A, B any](list []A, convert func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, convert(a))
	}
	return out
}

// identityOf shows canonical JSON as it is, and anything else as a string: a
// record must be shown whatever it holds.
func identityOf(identity map[string]string) map[string]jsontext.Value {
	out := make(map[string]jsontext.Value, len(identity))
	for name, text := range identity {
		value := jsontext.Value(text)
		if !value.IsValid() {
			value, _ = jsontext.AppendQuote(nil, text)
		}
		out[name] = value
	}
	return out
}

// bodyReference names stored content without showing it. An empty body is shown.
func bodyReference(b ledger.Body) wire.Body {
	switch {
	case b.Dropped:
		return wire.Body{Missing: wire.MissingDropped, SHA256: b.SHA256, Size: b.Size}
	case b.Size == 0:
		return wire.Body{}
	default:
		return wire.Body{Missing: wire.MissingOmitted, SHA256: b.SHA256, Size: b.Size}
	}
}

func resultOf(r *ledger.Result) *wire.Result {
	if r == nil {
		return nil
	}
	return &wire.Result{
		Status: r.Status, Headers: wire.Header(r.Header), Body: bodyReference(r.Body), Source: r.Source, Trailers: wire.Header(r.Trailer),
	}
}

func dispatchOf(d ledger.Dispatch) wire.Dispatch {
	return wire.Dispatch{
		ID: d.ID, Run: d.Run, Generation: d.Generation, Resend: d.Resend,
		StartedAt: d.Started.Wall, EndedAt: d.Ended.Wall, Lost: d.Lost,
		Wire:    wire.Wire(d.Wire),
		Verdict: string(d.Verdict), Class: string(d.Class), Reason: d.Reason, Resolved: d.Resolved,
	}
}

func observationOf(o ledger.Observation) wire.Observation {
	return wire.Observation{
		At: o.At.Wall, Strategy: o.Strategy, Seen: string(o.Seen), Reason: o.Reason,
		Evidence: o.Evidence, Objects: o.Objects, Counted: o.Counted, Voided: o.Voided,
	}
}

func escalationRef(e *ledger.Escalation) *wire.EscalationRef {
	if e == nil {
		return nil
	}
	return &wire.EscalationRef{
		ID: e.ID, Kind: e.Kind, Why: e.Why, OpenedAt: e.OpenedAt, ClosedAt: e.ClosedAt, ClosedBy: e.ClosedBy,
	}
}

func diffOf(d *ledger.Diff) *wire.Diff {
	if d == nil {
		return nil
	}
	return &wire.Diff{
		At: d.At, Run: d.Run, Payload: d.Payload, Why: d.Why, More: d.More,
		Changes: each(d.Changes, func(c ledger.Change) wire.Change { return wire.Change(c) }),
	}
}

func eventOf(e ledger.Event) wire.Event {
	return wire.Event{
		Seq: e.Seq, At: e.At, Actor: e.Actor, What: e.What, Why: e.Why,
		Mutation: e.Mutation, Dispatch: e.Dispatch, Run: e.Run, Workflow: e.Workflow, Item: e.Item,
		From: string(e.From), To: string(e.To), Evidence: e.Evidence,
	}
}

func runOf(r *ledger.Run) wire.Run {
	return wire.Run{
		ID: r.ID, Version: r.Version, Workflow: r.Workflow, Item: r.Item, Attempt: r.Attempt, Once: r.Once, ItemDone: r.ItemDone, Items: string(r.Items),
		State: string(r.State), Class: string(r.Class), Reason: r.Reason, Cause: r.Cause,
		Mutations: string(r.Mutations), OnFailure: string(r.OnFailure), BlockScope: string(r.BlockScope),
		Title: r.Title, Labels: shownLabels(r.Labels),
		OpenedAt: r.OpenedAt, EndedAt: r.EndedAt, ExpiresAt: r.ExpiresAt, ResumeHint: r.ResumeHint, Retry: retryOf(r),
	}
}

func itemOf(i *ledger.Item) wire.Item {
	return wire.Item{
		ID: i.ID, Version: i.Version, Workflow: i.Workflow, Item: i.Item, State: string(i.State),
		Attempt: i.Attempt, Title: i.Title, Reason: i.Reason, Cause: i.Cause, ActiveRun: i.ActiveRun,
		OpenedAt: i.OpenedAt, UpdatedAt: i.UpdatedAt,
		Changes: each(i.Changes, itemChange),
	}
}

func itemChange(c ledger.ItemChange) wire.ItemChange {
	return wire.ItemChange{
		At: c.At, Actor: c.Actor, What: c.What, Why: c.Why, Attempt: c.Attempt, From: string(c.From), To: string(c.To),
	}
}
