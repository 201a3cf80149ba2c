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
	fieldTook      = "took_ms"
)

// entry is what the line says.
type entry struct {
	*try
	outcome
	took time.Duration
}

// MarshalZerologObject adds the fields.
func (e entry) MarshalZerologObject(line *zerolog.Event) {
	m := e.mutation
	line.Str(fieldMutation, m.ID).Str(fieldConnector, m.Connector).Str(fieldOperation, m.Operation).
		Str(fieldStrategy, e.name()).Bool(fieldInline, e.inline).
		Str(fieldSeen, e.seen).Str(fieldReason, e.reason).Dur(fieldTook, e.took)
	if now := e.finished.Mutation; now != nil {
		line.Str(fieldState, string(now.State)).Int(fieldTries, now.Tries)
		if !now.NextTryAt.IsZero() {
			line.Time(fieldNext, now.NextTryAt)
		}
	}
	if e.stack != nil {
		line.Bytes(zerolog.ErrorStackFieldName, e.stack)
	}
	if e.err != nil {
		line.AnErr(zerolog.ErrorFieldName, e.err)
	}
}

// logTry writes the line. A try that the ledger could not take is a warning, one in
// which the program broke an error.
func (r *Reconciler) logTry(t *try, out outcome, took time.Duration) {
	level := zerolog.InfoLevel
	if out.seen == "error" {
		level = zerolog.WarnLevel
	}
	if t.stack != nil {
		level = zerolog.ErrorLevel
	}
	r.log.WithLevel(level).EmbedObject(entry{t, out, took}).Msg("reconcile")
}
