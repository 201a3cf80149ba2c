package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
	"keep-proxy/proxy"
	"keep-proxy/rules"
)

// explainer answers in the words of the rules. It implements admin.Explainer.
type explainer struct{ app *App }

// ManualCheck implements admin.Explainer by the record's pinned rule.
func (e *explainer) ManualCheck(ctx context.Context, m *ledger.Mutation) (admin.ManualCheck, error) {
	if m.Undo != nil {
		return e.app.checkUndo(ctx, m)
	}
	op, request, err := e.app.pinned(ctx, m)
	if err != nil {
		return admin.ManualCheck{}, err
	}
	out := admin.ManualCheck{Text: op.ManualCheckText(rules.Env{
		Request: request, Account: m.Account,
		Mutation: rules.Mutation{
			ID: m.ID, Marker: m.Marker, VendorKey: m.VendorKey, Generation: m.Generation, ClaimedAt: m.CreatedAt, Kept: m.Kept, Unmarked: m.Unmarked,
		},
	})}
	if op.Reconciles() {
		return out, nil
	}
	for _, s := range op.Strategies {
		if s.Kind == rules.StrategyNone {
			out.CannotVerify = s.Why
		}
	}
	return out, nil
}

// checkUndo says how a person finds out whether an effect was taken back.
func (a *App) checkUndo(ctx context.Context, m *ledger.Mutation) (admin.ManualCheck, error) {
	out := admin.ManualCheck{Text: fmt.Sprintf("Look in %s whether %s is still there: then it was not undone.", m.Connector, m.Undo.Object)}
	connector, err := a.versions.connector(ctx, m.ConnectorHash)
	if err != nil {
		return out, fmt.Errorf("rule of %s: %w", m.ID, err)
	}
	op := connector.Operation(m.Undo.Operation)
	if op == nil || op.Undo == nil || op.Undo.Operation.Reconciles() {
		return out, nil
	}
	for _, s := range op.Undo.Operation.Strategies {
		if s.Kind == rules.StrategyNone {
			out.CannotVerify = s.Why
		}
	}
	return out, nil
}

// pinned loads a record's operation from the content that it is pinned to, and the request as it was stored.
func (a *App) pinned(ctx context.Context, m *ledger.Mutation) (*rules.Operation, *rules.Request, error) {
	connector, err := a.versions.connector(ctx, m.ConnectorHash)
	if err != nil {
		return nil, nil, fmt.Errorf("rule of %s: %w", m.ID, err)
	}
	op := connector.Operation(m.Operation)
	if op == nil {
		return nil, nil, fmt.Errorf("rule of %s has no operation %q", m.ID, m.Operation)
	}
	body, err := a.storedBody(ctx, m.Request.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("request of %s: %w", m.ID, err)
	}
	request, refusal := rules.Rebuild(m.Request.Method, m.Request.URL, http.Header(m.Request.Header), body)
	if refusal != nil {
		return nil, nil, fmt.Errorf("request of %s: %w", m.ID, refusal)
	}
	return op, request, nil
}

func (a *App) storedBody(ctx context.Context, b ledger.Body) ([]byte, error) {
	if b.SHA256 == "" {
		return nil, nil
	}
	r, err := a.ledger.Body(ctx, b)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	return content, errors.Join(err, r.Close())
}

// Explain implements admin.Explainer by the rules in force and by what the ledger
// holds.
func (e *explainer) Explain(ctx context.Context, asked wire.Explain) (wire.Explanation, error) {
	raw, err := RawRequest(asked)
	if err != nil {
		return nil, admin.BadRequest("url", err.Error(), "write it whole, such as https://api.example/v1/things")
	}
	out := ExplainRequest(e.app.rules.Load(), raw, ScopeOf(asked, e.app.clock.Now()))
	if out.Key != "" {
		out, err = e.app.withStanding(ctx, raw, out)
		if err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	return jsontext.Value(text), nil
}

// RawRequest is a request that a person asks about, as the rules take it. A URL
// that isn't whole is an error.
func RawRequest(e wire.Explain) (rules.Raw, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return rules.Raw{}, fmt.Errorf("%q is no http or https URL", e.URL)
	}
	target := u.EscapedPath()
	if target == "" {
		target = "/"
	}
	if u.RawQuery != "" {
		target += "?" + u.RawQuery
	}
	method := e.Method
	if method == "" {
		method = http.MethodGet
	}
	header := http.Header{}
	for name, values := range e.Headers {
		for _, v := range values {
			header.Add(name, v)
		}
	}
	return rules.Raw{
		Method: method, Scheme: u.Scheme, Authority: u.Host, Target: target, Header: header,
		Body: e.Body.Content, HasBody: len(e.Body.Content) > 0,
	}, nil
}

// withStanding is x with what would happen to it now. What can't be sent is refused only where it
// would be sent.
func (a *App) withStanding(ctx context.Context, raw rules.Raw, x Explained) (Explained, error) {
	now, sent, err := a.standing(ctx, raw, x)
	switch {
	case err != nil:
		return Explained{}, err
	case x.Refused == "":
		x.Now = now
	case sent:
		x.Now = "It would be recorded as failed, and nothing sent."
	case now != "":
		x.Now, x.Effect, x.Refused, x.Detail = now, rules.EffectMutation.String(), "", ""
	}
	return x, nil
}

// standing says what would happen to an explained mutation now, and whether it might be sent.
func (a *App) standing(ctx context.Context, raw rules.Raw, x Explained) (now string, sent bool, err error) {
	request, op := a.explainedAs(raw, x)
	if op == nil {
		return "", false, nil
	}
	ahead, err := a.recordsOf(ctx, request, op, x)
	found := ahead.Records
	switch {
	case errors.Is(err, errUnasked):
		return "An earlier version of its rule asks the API whose data it changes, and explaining asks nobody: " +
			"whether it would meet a record of that version isn't known.", false, nil
	case errors.Is(err, errRuleLost):
		return "It would be refused as ambiguous-record: " + err.Error() + ".", false, nil
	case err != nil:
		return "", false, err
	case ahead.Doubted != nil:
		return "Mutation " + ahead.Doubted.ID + " of an earlier version may be this one: it would be refused as ambiguous-record. " + ahead.Why, false, nil
	case len(found) == 0:
		return "It would be claimed and sent.", true, nil
	case len(found) > 1:
		return "Two records fit since the rule was changed, " + found[0].ID + " and " + found[1].ID + ": it would be refused as ambiguous-record.", false, nil
	}
	m := found[0]
	covers, diff := m.Covers(x.PayloadDigest, x.SignificantDigest), ""
	if !covers {
		compared := proxy.ComparePayload(ctx, a.ledger, a.versions.connector, op, request, m)
		covers, diff = compared.Covers, compared.Diff.String()
	}
	return "Its record " + m.ID + " is " + string(m.State) + ": " + whatNow(m, op, covers, diff), m.State == ledger.Failed, nil
}

// explainedAs is the explained request and its operation; nil if there is none.
func (a *App) explainedAs(raw rules.Raw, x Explained) (*rules.Request, *rules.Operation) {
	request, refusal := rules.Normalise(raw)
	connector := a.rules.Load().Connector(x.Connector)
	if refusal != nil || connector == nil {
		return nil, nil
	}
	return request.WithBody(raw.Body), connector.Operation(x.Operation)
}

// recordsOf finds the records that an explained request would meet, under every
// version of its rule.
func (a *App) recordsOf(ctx context.Context, request *rules.Request, op *rules.Operation, x Explained) (ledger.Ahead, error) {
	q := ledger.Claim{Scope: x.Scope, Was: op.Was}
	if err := q.Key.UnmarshalText([]byte(x.Key)); err != nil {
		return ledger.Ahead{}, fmt.Errorf("explain: %w", err)
	}
	q.Record.Connector, q.Record.Operation = x.Connector, x.Operation
	q.Record.ConnectorHash, q.Record.ConnectorHosts = op.Connector.Hash, op.Connector.HostsInForce
	ahead, err := a.ledger.Ahead(ctx, &q)
	if err != nil || len(ahead.Rules) == 0 {
		return ahead, err
	}
	past := proxy.Past{Pinned: a.versions.connector, Accounts: unasked, Rules: a.rules.Load()}
	if x.AccountAsked != "" {
		past.Accounts = saidToBe(x.Account)
	}
	q.EarlierKeys, err = past.Keys(ctx, x.Scope, request, op, ahead.Rules)
	switch {
	case errors.Is(err, errUnasked):
		return ahead, err
	case err != nil:
		return ahead, fmt.Errorf("%w: %w", errRuleLost, err)
	}
	return a.ledger.Ahead(ctx, &q)
}

// whatNow is the table of docs/semantics.md, "Replaying", in words.
func whatNow(m *ledger.Mutation, op *rules.Operation, covers bool, diff string) string {
	if diff != "" {
		diff = " (" + diff + ")"
	}
	switch m.State {
	case ledger.Applied:
		switch {
		case !m.Forgotten.IsZero() && covers && op.StandsInForResult():
			return "its answer was dropped long ago, so the rule's on_no_result would be given."
		case !m.Forgotten.IsZero():
			return "its answer was dropped long ago, so it would be refused as forgotten."
		case !covers:
			return "the payload differs" + diff + ", so it would be refused as payload-mismatch."
		case m.ResultState != ledger.ResultKnown && op.StandsInForResult():
			return "it happened, but its answer is not known, so the rule's on_no_result would be given."
		case m.ResultState != ledger.ResultKnown:
			return "it happened, but its answer is not known, so it would be refused as no-result."
		}
		return "the stored answer would be replayed, and nothing sent."
	case ledger.Failed:
		if !covers && m.Policy.NativeKey {
			return "it would be claimed again and sent, unless a sending with the other payload" + diff +
				" may still be remembered under its vendor key: then it would be refused as payload-mismatch."
		}
		return "it would be claimed again and sent."
	case ledger.InFlight:
		return "it would wait for the dispatch that is under way."
	case ledger.NeedsReconcile, ledger.Indeterminate:
		return "it would be refused as blocked."
	case ledger.Skipped:
		if op.StandsInForSkipped() {
			return "the rule's on_skip would be given."
		}
		return "it would be refused as skipped."
	}
	return "it would be refused."
}

// Why an explained request can't be held against a stored version of its rule.
var (
	errUnasked  = errors.New("the API would have to be asked for the account, and explaining sends nothing")
	errRuleLost = errors.New("a rule under which this item has records can't be held against it")
)

// unasked is the account of an explained request: nothing is sent to explain it.
func unasked(context.Context, *rules.Connector, *rules.Request) (string, error) {
	return "", errUnasked
}

// saidToBe is the account that whoever asks gave in the place of the API.
func saidToBe(account string) proxy.AccountOf {
	return func(context.Context, *rules.Connector, *rules.Request) (string, error) { return account, nil }
}
