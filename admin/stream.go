package admin

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"keep-proxy/admin/wire"
)

// stream runs a handler whose answer may take long, until the server stops. Every write is flushed. An
// error after the first write cuts the connection, so that the caller can't take the part for the
// whole. An error before it is answered as any other.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, write func(context.Context, io.Writer) error) error {
	ctx, cancel := s.untilShutdown(r.Context())
	defer cancel()
	f := &flusher{w: w, control: http.NewResponseController(w)}
	err := write(ctx, f)
	if err == nil {
		return nil
	}
	if !f.begun {
		return err
	}
	s.config.Log.Error().Err(err).Str("path", r.URL.Path).Msg("admin: answer cut")
	panic(http.ErrAbortHandler)
}

// flusher hands every write on at once.
type flusher struct {
	w       io.Writer
	control *http.ResponseController
	begun   bool
}

// Write writes and flushes.
func (f *flusher) Write(p []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(p)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// verifyLedger answers GET /v1/ledger/verify with one JSON object a line while it works. The last
// holds the report or the problem.
func verifyLedger(s *Server, w http.ResponseWriter, r *http.Request) error {
	return s.stream(w, r, func(ctx context.Context, w io.Writer) error {
		report, err := s.config.Verify(ctx, func(p wire.Progress) {
			p.Report, p.Problem = nil, nil
			// A caller that has gone ends ctx, and with it the verification.
			_ = writeLine(w, p)
		})
		if err != nil {
			s.config.Log.Error().Err(err).Msg("admin: verification failed")
			return writeLine(w, wire.Progress{Problem: problemOf(err)})
		}
		return writeLine(w, wire.Progress{Report: &report})
	})
}

// writeLine writes v and a newline, in one piece.
func writeLine(w io.Writer, v any) error {
	line, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// backupLedger answers GET /v1/ledger/backup with a consistent copy. A copy
// that could not be finished ends in a cut connection, never in a shorter file.
func backupLedger(s *Server, w http.ResponseWriter, r *http.Request) error {
	name := fmt.Sprintf("keep-proxy-%s.tar", s.config.Now().Wall.UTC().Format("20060102T150405Z"))
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	return s.stream(w, r, s.config.Backup)
}

// untilShutdown ends a stream's context with the server as well.
func (s *Server) untilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(s.base, cancel)
	return ctx, func() { detach(); cancel() }
}
