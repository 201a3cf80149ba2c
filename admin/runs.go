package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// listRuns answers GET /v1/runs.
func listRuns(s *Server, r *http.Request) (*wire.List[wire.Run], error) {
	q := s.query(r)
	return listing(r, q, q.filter(), s.config.Ledger.Runs, runOf)
}

// showRun answers GET /v1/runs/{id}.
func showRun(s *Server, r *http.Request) (*wire.Run, error) {
	run, err := s.run(r, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out := runOf(run)
	if out.Retry == retryYes && run.Cause != "" {
		// When the API wants to be asked again helps; without it the answer is whole.
		if m, err := s.config.Ledger.MutationByID(r.Context(), run.Cause); err == nil {
			if out.RetryAfter = m.RetryAfter; out.RetryAfter.IsZero() {
				out.RetryAfter = m.NextTryAt
			}
		}
	}
	return &out, nil
}

// Words of retry.
const (
	retryYes = "yes"
	retryNo  = "no"
)

// retryOf says whether a run that is over makes sense again:
//
//  1. Finished, or waiting for a person: no.
//  2. Stopped on an unknown outcome: yes. It is refused until that is known.
//  3. Reported as failed by its host: the host knows.
//  4. Aborted: what is transient passes, everything else has to be repaired.
func retryOf(r *ledger.Run) string {
	switch {
	case !r.State.Ended():
		return ""
	case r.State == ledger.RunPausedReconciliation:
		return retryYes
	case r.State == ledger.RunAborted && r.Reason == ledger.FinishedAsFailed:
		return ""
	case r.State == ledger.RunAborted && r.Class == verdict.Transient:
		return retryYes
	}
	return retryNo
}

// run reads a run.
func (s *Server) run(r *http.Request, id string) (*ledger.Run, error) {
	var run *ledger.Run
	err := s.config.Ledger.View(r.Context(), func(v ledger.View) (err error) {
		run, err = v.Run(id)
		return err
	})
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, refuse("not-found", "There is no run %q in this ledger; see GET /v1/runs.", id)
	}
	return run, err
}

// heartbeat answers POST /v1/runs/{id}/heartbeat.
func heartbeat(s *Server, r *http.Request, q *wire.Heartbeat) (*wire.Run, error) {
	var faults faults
	faults.ttl("/ttl", q.TTL)
	if err := faults.err(); err != nil {
		return nil, err
	}
	run, err := s.config.Ledger.Heartbeat(r.Context(), r.PathValue("id"), s.ttl(q.TTL))
	return shownRun(run, err)
}

// ttl is the time limit asked for, or the configured one.
func (s *Server) ttl(asked wire.Duration) time.Duration {
	if asked == 0 {
		return s.config.RunTTL
	}
	return time.Duration(asked)
}

// finishRun answers POST /v1/runs/{id}/finish.
func finishRun(s *Server, r *http.Request, q *wire.FinishRun) (*wire.Run, error) {
	var faults faults
	faults.word("FinishRun.outcome", q.Outcome)
	if q.KeepOpen && q.Outcome == "failed" {
		faults.add("/keep_open", "an item of a failed run is not closed", "leave it out")
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	if q.Outcome == ledger.OutcomeDone {
		if err := s.awaitDispatches(r.Context(), id); err != nil {
			return nil, err
		}
	}
	run, err := s.config.Ledger.FinishRun(r.Context(), id, q.Outcome, q.KeepOpen)
	return shownRun(run, err)
}

// settlePoll is how often a finishing run's sendings are looked at.
const settlePoll = 100 * time.Millisecond

// awaitDispatches waits until nothing of the run is being sent, the caller goes, or the server stops.
// Each sending has a deadline.
func (s *Server) awaitDispatches(ctx context.Context, id string) error {
	ctx, cancel := s.untilShutdown(ctx)
	defer cancel()
	for {
		sending := false
		err := s.config.Ledger.View(ctx, func(v ledger.View) (err error) {
			sending, err = isSending(v, id)
			return err
		})
		if err != nil || !sending {
			return err
		}
		select {
		case <-ctx.Done():
			return refuse("run-unfinished", "A mutation of run %s is still being sent; try again.", id)
		case <-s.config.After(settlePoll):
		}
	}
}

// isSending reports whether a mutation of the run is in flight and its outcome
// may still be learned by waiting.
func isSending(v ledger.View, id string) (bool, error) {
	keys, err := v.RunMutations(id)
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		m, err := v.Mutation(key)
		if err != nil {
			return false, err
		}
		if m.State == ledger.InFlight && !m.Unresolved() {
			return true, nil
		}
	}
	return false, nil
}

// endRun answers POST /v1/runs/{id}/end.
func endRun(s *Server, r *http.Request, q *wire.EndRun) (*wire.Run, error) {
	if err := ledger.CheckDecision(q.Actor, q.Reason); err != nil {
		return nil, err
	}
	run, err := s.config.Ledger.EndRun(r.Context(), r.PathValue("id"), verdict.Transient,
		q.Reason, ledger.PersonActor(actorOf(r.Context(), q.Actor)))
	return shownRun(run, err)
}

// shownRun is a command's answer.
func shownRun(run *ledger.Run, err error) (*wire.Run, error) {
	if err != nil {
		return nil, err
	}
	return new(runOf(run)), nil
}
