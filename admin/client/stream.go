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

// Healthz returns nil while the process answers. It needs no token.
func (c *Client) Healthz(ctx context.Context) error { return c.probe(ctx, "/healthz") }

// Readyz returns nil while mutations would be carried. It needs no token.
func (c *Client) Readyz(ctx context.Context) error { return c.probe(ctx, "/readyz") }

func (c *Client) probe(ctx context.Context, path string) error {
	body, err := c.content(ctx, path)
	if err != nil {
		return err
	}
	return body.Close()
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

// VerifyLedger checks the whole ledger. progress, which may be nil, is called
// as it goes on.
func (c *Client) VerifyLedger(ctx context.Context, progress func(wire.Progress)) (report *wire.VerifyReport, err error) {
	err = c.follow(ctx, request{path: at("ledger", "verify")}, func(line []byte) error {
		return read(line, func(p wire.Progress) error {
			switch {
			case p.Problem != nil:
				return p.Problem
			case p.Report != nil:
				report = p.Report
				return errAll
			case progress != nil:
				progress(p)
			}
			return nil
		})
	})
	return report, err
}

// BackupLedger writes a consistent copy of the ledger to w and returns its
// length. With an error, what was written is no backup.
func (c *Client) BackupLedger(ctx context.Context, w io.Writer) (int64, error) {
	content, err := c.content(ctx, at("ledger", "backup"))
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

// Audit calls each for every line of the history, or of one run's with its records. It returns the
// last line, which counts them. It was cut if the error is io.ErrUnexpectedEOF.
func (c *Client) Audit(ctx context.Context, run string, each func(line []byte) error) (end *wire.AuditEnd, err error) {
	q := request{path: at("audit")}
	if run != "" {
		q.query = url.Values{"run": {run}}
	}
	err = c.follow(ctx, q, func(line []byte) error {
		if err := each(line); err != nil {
			return err
		}
		return read(line, func(l wire.AuditLine) error {
			if l.End == nil {
				return nil
			}
			end = l.End
			return errAll
		})
	})
	return end, err
}

// Events calls each for every event after the one with this number, and for new ones as they come. The number 0 is
// for all that are kept. It ends when ctx ends, the server stops (io.ErrUnexpectedEOF), or each returns an error.
func (c *Client) Events(ctx context.Context, after uint64, each func(wire.Event) error) error {
	q := request{path: at("events")}
	if after > 0 {
		q.lastEventID = fmt.Sprint(after)
	}
	return c.follow(ctx, q, func(line []byte) error {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			return nil
		}
		return read(data, each)
	})
}

// Requests calls each for every request from now on that fits the filter. That holds values of parameters of GET
// /v1/requests. It ends when ctx ends, the server stops (io.ErrUnexpectedEOF), or each returns an error. If begun
// isn't nil, it is called when nothing is missed any more.
func (c *Client) Requests(ctx context.Context, filter map[string]string, begun func(), each func(wire.Served) error) error {
	q := request{path: at("requests"), query: url.Values{}}
	for name, value := range filter {
		q.query.Set(name, value)
	}
	return c.follow(ctx, q, func(line []byte) error {
		if len(line) > 0 {
			return read(line, each)
		}
		if begun != nil {
			begun()
		}
		return nil
	})
}

// read hands a line of JSON to use.
func read[T any](line []byte, use func(T) error) error {
	var v T
	if err := json.Unmarshal(line, &v); err != nil {
		return fmt.Errorf("admin API: a line: %w", err)
	}
	return use(v)
}

// errAll says that nothing more is to be read of a stream.
var errAll = errors.New("all is read")

// follow calls each for every line of a stream. It ends when ctx ends, the server stops
// (io.ErrUnexpectedEOF), each fails, or has all.
func (c *Client) follow(ctx context.Context, q request, each func(line []byte) error) error {
	q.method = http.MethodGet
	answer, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		switch err := each(lines.Bytes()); {
		case errors.Is(err, errAll):
			return nil
		case err != nil:
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("admin API: %s ended: %w", q.path, errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}
