package reconcilers

import (
	"time"

	"github.com/rs/zerolog"
)

// Names of the fields of the one line that each try logs.
const (
	fieldMutation  = "mutation"
	fieldConnector = "connector"
	fieldOperation = "operation"
	fieldStrategy  = "strategy"
	fieldInline    = "inline"
	fieldSeen      = "seen"
	fieldReason    = "reason"
	fieldState     = "state"
	fieldNext      = "next_try_at"
	fieldTries     = "tries"
	fieldTook      = "took"
)

// logTry writes the line. A try that the ledger could not take is a warning.
func (r *Reconciler) logTry(t *try, out outcome, took time.Duration) {
	level := zerolog.InfoLevel
	if out.seen == "error" {
		level = zerolog.WarnLevel
	}
	m := t.mutation
	line := r.log.WithLevel(level).
		Str(fieldMutation, m.ID).Str(fieldConnector, m.Connector).Str(fieldOperation, m.Operation).
		Str(fieldStrategy, t.name()).Bool(fieldInline, t.inline).
		Str(fieldSeen, out.seen).Str(fieldReason, out.reason).Dur(fieldTook, took)
	if now := out.finished.Mutation; now != nil {
		line = line.Str(fieldState, string(now.State)).Int(fieldTries, now.Tries)
		if !now.NextTryAt.IsZero() {
			line = line.Time(fieldNext, now.NextTryAt)
		}
	}
	line.AnErr(zerolog.ErrorFieldName, out.err).Msg("reconcile")
}
