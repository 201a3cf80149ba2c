package reconcilers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

var errNoUndo = errors.New("the rule has no compensate, so it says no way to undo this")

// undone loads the mutation whose effect an obligation takes back, and the request planned when it
// became owed.
func (r *Reconciler) undone(ctx context.Context, t *try) (*ledger.Mutation, error) {
	of, err := r.read(ctx, t.mutation.Undo.Of)
	if err != nil {
		return nil, fmt.Errorf("the mutation that is undone: %w", err)
	}
	t.undone = of
	if t.outgoing, _, err = stored(ctx, r.ledger, t.mutation); err != nil {
		return nil, err
	}
	return of, nil
}

// addressUndo gives the request of an obligation the credential of now, and what else
// tells the account. With a credential nothing of the script's own is missing.
func (r *Reconciler) addressUndo(ctx context.Context, t *try) error {
	if t.credential.name != "" {
		t.missing = nil
	}
	outgoing, err := authorised(t.outgoing, t.credential.name, t.credential.value)
	if err != nil {
		return err
	}
	header := outgoing.Header.Clone()
	if err := r.underAccount(ctx, t, header); err != nil {
		return err
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", userAgent)
	}
	with, refusal := rules.Rebuild(outgoing.Method, outgoing.URL(), header, outgoing.Body())
	if refusal != nil {
		return refusal
	}
	t.outgoing = with
	return nil
}

// owed plans the undoing of each object but the oldest. Where the rule knows no way there is none. A person is told of
// the objects, and why nothing undoes them.
func (t *try) owed(s *sighting) (list []ledger.Owed) {
	if s.seen != ledger.SeenDuplicate || !s.strong || t.operation.Undo == nil || len(s.objects) < 2 {
		return nil
	}
	for _, object := range s.objects[1:] {
		one, err := t.plan(object)
		if err != nil {
			s.reason += "; how to undo the newer ones can't be told: " + err.Error()
			return nil
		}
		list = append(list, one)
	}
	return list
}

// PlanUndo is the obligation to take back an object that the mutation made, by the record's pinned
// rule.
func (r *Reconciler) PlanUndo(ctx context.Context, m *ledger.Mutation, object string) (ledger.Owed, error) {
	t := &try{mutation: m, at: r.now()}
	if _, err := r.understand(ctx, t); err != nil {
		return ledger.Owed{}, err
	}
	if t.operation.Undo == nil {
		return ledger.Owed{}, errNoUndo
	}
	return t.plan(object)
}

// plan makes the request that takes the object back. It is kept with the obligation, so
// that it reads what is stored alone: no credential.
func (t *try) plan(object string) (ledger.Owed, error) {
	undo := t.operation.Undo
	told := t.known()
	told.Object = object
	request, err := undo.Request(rules.Env{Request: t.bare, Mutation: told, Account: t.mutation.Account})
	if err != nil {
		return ledger.Owed{}, err
	}
	body := request.Body()
	if len(body) > ledger.InlineBody {
		return ledger.Owed{}, fmt.Errorf("the undo's body is longer than %d bytes", ledger.InlineBody)
	}
	owed := ledger.Owed{Object: object, Auto: undo.Auto, Body: body, Record: ledger.Mutation{
		Intent: ledger.Intent{Target: "Undo " + spelt(object) + " of: " + t.mutation.Target},
		Payload: ledger.Payload{
			Policy: undoPolicy(undo, t.mutation),
			Request: ledger.Request{
				Method: request.Method, URL: request.URL(), Header: ledger.Header(request.Header),
			},
		},
	}}
	sum := sha256.Sum256(append([]byte(request.Method+" "+request.URL()+"\n"), body...))
	owed.Record.PayloadDigest = hex.EncodeToString(sum[:])
	return owed, nil
}

// spelt shows an id that the API chose: quoted where it holds what can't be printed.
func spelt(object string) string {
	object = shorten(object)
	if quoted := strconv.Quote(object); quoted != `"`+object+`"` {
		return quoted
	}
	return object
}

// undoPolicy is what the rule says of an undo. While its outcome is unknown it stops
// what the mutation would.
func undoPolicy(undo *rules.Undo, of *ledger.Mutation) ledger.Policy {
	op := undo.Operation
	p := ledger.Policy{
		Reconciler: op.Reconciles(), OnAbsent: ledger.OnAbsent(op.OnAbsent), BlockScope: of.Policy.BlockScope,
		Settle: op.Settle, Confirmations: op.Confirmations, Spacing: op.Spacing,
		MaxDispatches: op.MaxDispatches, ResultLimit: op.MaxBody,
	}
	for _, s := range op.Strategies {
		p.Resend = p.Resend || s.Kind == rules.StrategyResend
	}
	p.Idempotent = p.Resend && undo.Idempotent
	if k := op.NativeKey; k != nil {
		p.NativeKey, p.KeyFormat, p.KeyMaxLength, p.KeyWindow = true, k.Format, k.MaxLength, k.Window
	}
	return p
}
