package admin

import (
	"context"
	"net/http"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// openGaps lists the gaps that aren't closed.
func (s *Server) openGaps(ctx context.Context) (open []wire.Gap, err error) {
	err = s.config.Ledger.View(ctx, func(v ledger.View) error {
		gaps, err := v.Gaps()
		for i := range gaps {
			if gaps[i].Open() {
				open = append(open, as[wire.Gap](gaps[i]))
			}
		}
		return err
	})
	return open, err
}

// confirmGap answers POST /v1/ledger/confirm.
func confirmGap(s *Server, r *http.Request, q *wire.ConfirmGap) (*wire.GapConfirmed, error) {
	var faults faults
	switch {
	case q.All && q.Workflow != "":
		faults.add("/all", "given with a workflow", "give one of them")
	case !q.All && q.Workflow == "":
		faults.add("/workflow", "missing", "name the workflow, or say all: true")
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	items, err := s.config.Ledger.ConfirmGaps(r.Context(), ledger.ConfirmGap{
		Workflow: q.Workflow, Item: q.Item, Actor: actorOf(r.Context(), q.Actor), Reason: q.Reason,
	})
	if err != nil {
		return nil, err
	}
	open, err := s.openGaps(r.Context())
	if err != nil {
		return nil, err
	}
	if open == nil {
		open = []wire.Gap{}
	}
	return &wire.GapConfirmed{Items: items, Gaps: open}, nil
}
