package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin/wire"
)

// Status counts what is unknown, escalated and stopped.
func (c *Client) Status(ctx context.Context) (*wire.Status, error) {
	return call[wire.Status](ctx, c, request{method: http.MethodGet, path: "/v1/status"})
}

// ConfirmGap says that a person knows what happened while the ledger knew nothing.
func (c *Client) ConfirmGap(ctx context.Context, q wire.ConfirmGap) (*wire.GapConfirmed, error) {
	return call[wire.GapConfirmed](ctx, c, request{method: http.MethodPost, path: "/v1/ledger/confirm", body: q})
}

// Healthz returns nil while the process answers. It needs no token.
func (c *Client) Healthz(ctx context.Context) error { return c.probe(ctx, "/healthz") }

// Readyz returns nil while mutations would be carried. It needs no token.
func (c *Client) Readyz(ctx context.Context) error { return c.probe(ctx, "/readyz") }

func (c *Client) probe(ctx context.Context, path string) error {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// VerifyLedger checks the whole ledger. progress, which may be nil, is called
// as it goes on.
func (c *Client) VerifyLedger(ctx context.Context, progress func(wire.Progress)) (*wire.VerifyReport, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/ledger/verify"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var p wire.Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("admin API: verification: %w", err)
		}
		switch {
		case p.Problem != nil:
			return nil, p.Problem
		case p.Report != nil:
			return p.Report, nil
		case progress != nil:
			progress(p)
		}
	}
	return nil, fmt.Errorf("admin API: the verification ended without a report: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// BackupLedger writes a consistent copy of the ledger to w and returns its
// length. With an error, what was written is no backup.
func (c *Client) BackupLedger(ctx context.Context, w io.Writer) (int64, error) {
	content, err := c.content(ctx, "/v1/ledger/backup")
	if err != nil {
		return 0, err
	}
	defer func() { _ = content.Close() }()
	n, err := io.Copy(w, content)
	if err != nil {
		return n, fmt.Errorf("admin API: backup cut after %d bytes: %w", n, err)
	}
	return n, nil
}

// Audit calls each for every line of the history, or of one run's with its records, and
// returns the last line, which counts them. io.ErrUnexpectedEOF: it was cut.
func (c *Client) Audit(ctx context.Context, run string, each func(line []byte) error) (*wire.AuditEnd, error) {
	q := request{method: http.MethodGet, path: "/v1/audit"}
	if run != "" {
		q.query = url.Values{"run": {run}}
	}
	var end *wire.AuditEnd
	err := c.follow(ctx, q, "export", func(line []byte) error {
		var l wire.AuditLine
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("admin API: export: %w", err)
		}
		if l.End != nil {
			end = l.End
		}
		return each(line)
	})
	if end != nil && errors.Is(err, io.ErrUnexpectedEOF) {
		return end, nil
	}
	return nil, err
}

// Events calls each for every event after the one with this number (0 for all
// that are kept), and goes on as new ones come, until ctx ends, the server stops
// (io.ErrUnexpectedEOF), or each returns an error, which is returned.
func (c *Client) Events(ctx context.Context, after uint64, each func(wire.Event) error) error {
	q := request{method: http.MethodGet, path: "/v1/events"}
	if after > 0 {
		q.lastEventID = fmt.Sprint(after)
	}
	return c.follow(ctx, q, "events", func(line []byte) error {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			return nil
		}
		var e wire.Event
		if err := json.Unmarshal(data, &e); err != nil {
			return fmt.Errorf("admin API: event: %w", err)
		}
		return each(e)
	})
}

// follow calls each for every line of a stream that goes on until ctx ends, the server
// stops, or each fails.
func (c *Client) follow(ctx context.Context, q request, what string, each func(line []byte) error) error {
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("admin API: the %s ended: %w", what, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

// Requests calls each for every request that fits the filter, a value for each named
// parameter of GET /v1/requests, from now on, until ctx ends, the server stops
// (io.ErrUnexpectedEOF), or each returns an error, which is returned. begun, if not
// nil, is called when nothing is missed any more.
func (c *Client) Requests(ctx context.Context, filter map[string]string, begun func(), each func(wire.Served) error) error {
	query := url.Values{}
	for name, value := range filter {
		query.Set(name, value)
	}
	return c.follow(ctx, request{method: http.MethodGet, path: "/v1/requests", query: query}, "requests", func(line []byte) error {
		if len(line) == 0 {
			if begun != nil {
				begun()
			}
			return nil
		}
		var q wire.Served
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("admin API: request: %w", err)
		}
		return each(q)
	})
}
