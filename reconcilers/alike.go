package reconcilers

import (
	"context"
	"errors"
	"slices"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// foreign says which other mutation may have made the one object that was found by a weak tie; ""
// if none may. Where contents are equal the objects look the same. Another mutation's
// object, taken for this one's, would hide that this one's effect is missing.
func (p probe) foreign(ctx context.Context, t *try, asking *rules.Asking, o *rules.Observation) (string, error) {
	if !o.Tie.Weak() || o.Seen != rules.SeenApplied {
		return "", nil
	}
	owner, err := p.ownerOf(ctx, t.mutation, o.ObjectIDs[0])
	if err != nil || t.mutation.Owns(owner, o.ObjectIDs[0]) {
		return "", err
	}
	return p.ledger.SentAlike(ctx, t.mutation, func(other *ledger.Mutation) bool {
		version := other.ConnectorHash != t.mutation.ConnectorHash || other.ConnectorHosts != t.mutation.ConnectorHosts
		if version && other.Operation != t.mutation.Operation && !p.sameOperation(ctx, t, other) || !version && other.Account != t.mutation.Account {
			return false
		}
		of := &try{mutation: other}
		if _, err := p.understand(ctx, of); err != nil {
			return true
		}
		if m := t.connector.Match(of.request); version && (m.Refusal != nil || m.Operation != t.operation ||
			other.ConnectorHosts != t.mutation.ConnectorHosts || other.Undo != nil) {
			return true // To this version's words it is something else.
		}
		env, _ := of.envByClock(p.now())
		return asking.MayBeOf(of.operation, env, o.ObjectIDs[0])
	})
}

// sameOperation reports whether another mutation, whose operation's name and version differ, may be
// of this try's operation. It may be if either's operation was the other's before. It also may be if either
// version may match the other's request to its own operation.
func (p probe) sameOperation(ctx context.Context, t *try, other *ledger.Mutation) bool {
	ours, err := p.pinned.set(ctx, t.mutation)
	theirs, unread := p.pinned.set(ctx, other)
	if err != nil || unread != nil ||
		wasOf(ours.Connector(t.mutation.Connector), t.mutation, other) ||
		wasOf(theirs.Connector(other.Connector), other, t.mutation) {
		return true
	}
	if same, elsewhere := p.takes(ctx, ours, t.mutation.Operation, other); same || elsewhere {
		return true // Of another host this version says nothing, though it is the same API.
	}
	same, _ := p.takes(ctx, theirs, other.Operation, t.mutation)
	return same
}

// takes reports whether a version may take m's request for this operation. elsewhere says that it
// doesn't know the host.
func (p probe) takes(ctx context.Context, version *rules.Set, operation string, m *ledger.Mutation) (may, elsewhere bool) {
	request, _, err := stored(ctx, p.ledger, m)
	if err != nil {
		return true, false
	}
	match := version.Match(request)
	if match.Operation != nil {
		return match.Operation.Name == operation, false
	}
	// What a version knows of no operation isn't of this one; what it can't tell may be.
	return match.Refusal != nil && match.Refusal.Problem != rules.ProblemUnmatched, match.Unmatched
}

// wasOf reports whether the operation of m, of a connector as it was then, is what the other's was before.
func wasOf(c *rules.Connector, m, other *ledger.Mutation) bool {
	op := c.Operation(m.Operation)
	return op != nil && slices.Contains(op.Was, other.Operation)
}

// otherOwner names the other mutation whose evidence an upstream object is; empty for none. That may
// be one of the same key that retention removed.
func (r *Reconciler) otherOwner(ctx context.Context, m *ledger.Mutation, object string) (string, error) {
	owner, err := r.ownerOf(ctx, m, object)
	if owner == (ledger.Key{}) || m.Owns(owner, object) {
		return "", err
	}
	return owner.ID(), err
}

// ownerOf is the mutation whose evidence an upstream object is, among ids of m's connector and
// account. It is the zero key for none.
func (r *Reconciler) ownerOf(ctx context.Context, m *ledger.Mutation, object string) (owner ledger.Key, err error) {
	err = r.ledger.View(ctx, func(v ledger.View) error {
		owner, err = v.EvidenceOf(m.Connector, m.Account, object)
		if errors.Is(err, ledger.ErrNotFound) {
			owner, err = ledger.Key{}, nil
		}
		return err
	})
	return owner, err
}
