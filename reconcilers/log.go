package reconcilers

import (
	"time"

	"github.com/rs/zerolog"
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
	line.Str("mutation", m.ID).Str("connector", m.Connector).Str("operation", m.Operation).
		Str("strategy", e.name()).Bool("inline", e.inline).
		Str("seen", e.seen).Str("reason", e.reason).Dur("took_ms", e.took)
	if now := e.moved.Mutation; now != nil {
		line.Str("state", string(now.State)).Int("tries", now.Tries)
		if !now.NextTryAt.IsZero() {
			line.Time("next_try_at", now.NextTryAt)
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
