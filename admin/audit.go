package admin

import (
	"context"
	"errors"
	"io"
	"net/http"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// auditParameters choose what is exported.
var auditParameters = []parameter{{"run", "only what this run did, with its records"}}

// sendAudit answers GET /v1/audit: the history, one JSON object a line, and, of one run,
// the run and its records first. The last line counts what came, so that an export which
// was cut doesn't pass for a whole one. Contents are named by their digests.
func sendAudit(s *Server, w http.ResponseWriter, r *http.Request) error {
	a := audit{server: s, run: r.URL.Query().Get("run"), mutations: map[string]bool{}}
	ctx, cancel := s.untilShutdown(r.Context())
	defer cancel()
	records, err := a.records(ctx)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/jsonl")
	return s.stream(w, r, func(w io.Writer) error {
		for _, line := range records {
			if err := writeLine(w, line); err != nil {
				return err
			}
		}
		return a.events(ctx, w)
	})
}

// audit is one export at work.
type audit struct {
	server *Server
	run    string
	// mutations are the ids of the run's.
	mutations map[string]bool
	end       wire.AuditEnd
}

// records are the lines of one run and its mutations; none for the whole ledger.
func (a *audit) records(ctx context.Context) (lines []wire.AuditLine, err error) {
	if a.run == "" {
		return nil, nil
	}
	err = a.server.config.Ledger.View(ctx, func(v ledger.View) error {
		keys, err := v.RunMutations(a.run)
		if err != nil {
			return err
		}
		r, err := v.Run(a.run)
		switch {
		case err == nil:
			run := runOf(r)
			lines = append(lines, wire.AuditLine{Run: &run})
		case !errors.Is(err, ledger.ErrNotFound) || len(keys) == 0:
			return err
		}
		for _, k := range keys {
			m, err := v.Mutation(k)
			if err != nil {
				return err
			}
			record := mutationOf(m)
			lines = append(lines, wire.AuditLine{Mutation: &record})
			a.mutations[m.ID] = true
		}
		return nil
	})
	a.end.Mutations = len(a.mutations)
	return lines, err
}

// events writes the events that belong, up to the newest that is durable now, and the
// last line.
func (a *audit) events(ctx context.Context, w io.Writer) error {
	for after := uint64(0); ; {
		events, err := a.server.config.Ledger.Events(ctx, "", after, eventBatch)
		if err != nil {
			return err
		}
		for _, e := range events {
			after = e.Seq
			if a.run != "" && e.Run != a.run && !a.mutations[e.Mutation] {
				continue
			}
			event := as[wire.Event](e)
			if err := writeLine(w, wire.AuditLine{Event: &event}); err != nil {
				return err
			}
			a.end.Events++
		}
		if len(events) < eventBatch {
			a.end.Ledger, a.end.Seq, a.end.At = a.server.config.Ledger.ID(), after, a.server.config.Now().Wall
			return writeLine(w, wire.AuditLine{End: &a.end})
		}
	}
}
