package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// Pinned gives a stored version of a connector by the hash of its file, as records
// name it.
type Pinned func(ctx context.Context, hash string) (*rules.Connector, error)

// Contents opens stored content. It is ledger.Ledger.
type Contents interface {
	Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error)
}

// ComparePayload compares a request with the one that is stored in m, of which op is
// the rule now. A difference is none where the rule of that time says so: otherwise
// the rule of now decides, so that one who corrects a rule frees what it held up.
// What can't be read covers nothing.
func ComparePayload(ctx context.Context, l Contents, pinned Pinned, op *rules.Operation, req *rules.Request, m *ledger.Mutation) ledger.Compared {
	out := ledger.Compared{Stored: m.PayloadDigest}
	if (m.ConnectorHash != op.Connector.Hash || m.ConnectorHosts != op.Connector.HostsInForce) && coveredThen(ctx, pinned, req, m) {
		out.Covers = true
		return out
	}
	stored, err := storedAgain(ctx, l, m)
	if err != nil {
		out.Diff.Why = "The stored request can't be compared with: " + err.Error()
		return out
	}
	c := op.Compare(stored, req)
	out.Covers = c.Likeness == rules.Equivalent || c.Likeness == rules.Minor
	out.Diff = ledger.Diff{Why: c.Why, More: c.More}
	for _, change := range c.Changes {
		out.Diff.Changes = append(out.Diff.Changes, ledger.Change{
			Place: change.Place, Kind: string(change.Kind), Stored: change.Stored, Asked: change.Asked, Weight: change.Likeness.String(),
		})
	}
	return out
}

// coveredThen reports whether the rule under which m was made would replay it.
func coveredThen(ctx context.Context, pinned Pinned, req *rules.Request, m *ledger.Mutation) bool {
	connector, err := pinned(ctx, m.ConnectorHash)
	if err != nil {
		return false
	}
	op := connector.Operation(m.Operation)
	if op == nil {
		return false
	}
	d, err := op.DeriveAlone(req, m.ConnectorHosts)
	return err == nil && d != nil && (d.PayloadDigest == m.PayloadDigest || d.SignificantDigest != "" && d.SignificantDigest == m.SignificantDigest)
}

// storedAgain is the request of a record as it was stored.
func storedAgain(ctx context.Context, l Contents, m *ledger.Mutation) (*rules.Request, error) {
	var body []byte
	if m.Request.Body.SHA256 != "" {
		r, err := l.Body(ctx, m.Request.Body)
		if err != nil {
			return nil, fmt.Errorf("its body: %w", err)
		}
		var content bytes.Buffer
		_, err = content.ReadFrom(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("its body: %w", err)
		}
		body = content.Bytes()
	}
	req, refusal := rules.Rebuild(m.Request.Method, m.Request.URL, http.Header(m.Request.Header), body)
	if refusal != nil {
		return nil, refusal
	}
	return req, nil
}
