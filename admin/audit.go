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

// sendAudit answers GET /v1/audit with the history, one JSON object a line. Of one run, the run and its records come
// first. The last line counts what came. So a cut export can't pass for a whole one. Contents are named by their
// digests.
func sendAudit(s *Server, w http.ResponseWriter, r *http.Request) error {
	run := r.URL.Query().Get("run")
	records, mutations, err := s.runRecords(r.Context(), run)
	if err != nil {
		return err
	}
	return s.stream(w, r, func(ctx context.Context, w io.Writer) error {
		for _, line := range records {
			if err := writeLine(w, line); err != nil {
				return err
			}
		}
		end := wire.AuditEnd{Ledger: s.config.Ledger.ID(), Mutations: len(mutations)}
		// Up to the newest event that is durable now.
		for more := true; more; {
			events, err := s.config.Ledger.Events(ctx, "", end.Seq, eventBatch)
			if err != nil {
				return err
			}
			more = len(events) == eventBatch
			for _, e := range events {
				end.Seq = e.Seq
				if run != "" && e.Run != run && !mutations[e.Mutation] {
					continue
				}
				if err := writeLine(w, wire.AuditLine{Event: new(as[wire.Event](e))}); err != nil {
					return err
				}
				end.Events++
			}
		}
		end.At = s.config.Now().Wall
		return writeLine(w, wire.AuditLine{End: &end})
	})
}

// runRecords are the lines of one run and its mutations, and their ids; none for the whole ledger.
func (s *Server) runRecords(ctx context.Context, id string) (lines []wire.AuditLine, mutations map[string]bool, err error) {
	if id == "" {
		return nil, nil, nil
	}
	mutations = map[string]bool{}
	err = s.config.Ledger.View(ctx, func(v ledger.View) error {
		keys, err := v.RunMutations(id)
		if err != nil {
			return err
		}
		r, err := v.Run(id)
		switch {
		case err == nil:
			lines = append(lines, wire.AuditLine{Run: new(runOf(r))})
		case !errors.Is(err, ledger.ErrNotFound) || len(keys) == 0:
			return err
		}
		for _, k := range keys {
			m, err := v.Mutation(k)
			if err != nil {
				return err
			}
			lines = append(lines, wire.AuditLine{Mutation: new(mutationOf(m))})
			mutations[m.ID] = true
		}
		return nil
	})
	return lines, mutations, err
}
