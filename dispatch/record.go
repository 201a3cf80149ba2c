package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/internal/background"
	"keep-proxy/ledger"
)

// Waits between two tries to record something, the first and the longest.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 5 * time.Second
)

// Command records what is known of a sending.
type Command func(context.Context) (ledger.Moved, error)

// Outcome is what the ledger must take of one sending.
type Outcome struct {
	Mutation *ledger.Mutation
	Record   Command
	// Park follows where the record is in flight still. Nil for a Record that leaves none so.
	Park Command
	// Content is that of the answer; a record that is to name it must find it.
	Content *Content
	// Run was told that the outcome is unknown, and is over by that; empty for none.
	Run string
	// Taken is called once the ledger has it.
	Taken func()
}

// Recorder records until the ledger takes it. Until then it stops what depends on the
// mutation, since the ledger can't.
type Recorder struct {
	Ledger interface {
		View(ctx context.Context, fn func(ledger.View) error) error
		Unrecorded() *ledger.Unrecorded
	}
	// Count adds to the number of outcomes that the ledger did not take yet.
	Count func(delta int)
	Log   zerolog.Logger
	// Life ends all tries. What wasn't taken by then stays in flight, and recovery finds it.
	Life context.Context //nolint:containedctx // It is the process's.
	// Background counts the work, for who waits for it.
	Background *background.Group
}

// GoOn tries until the ledger has taken the outcome and the record is out of flight. A run
// that was told of an unknown outcome stays over, whatever the outcome turns out to be.
func (r *Recorder) GoOn(o *Outcome) {
	content := o.Content.Taken()
	r.Ledger.Unrecorded().Add(o.Mutation, o.Run, NotRecorded(o.Mutation.ID))
	r.Count(1)
	r.Background.Go(func() {
		defer r.Count(-1)
		if !r.Again(func() bool { return r.once(o) }) {
			return
		}
		content.Close()
		r.Ledger.Unrecorded().Recorded(o.Mutation.Key)
		o.Taken()
	})
}

// NotRecorded is why a run is over that was told of the unknown outcome of a mutation.
func NotRecorded(id string) ledger.Over {
	return ledger.Over{Cause: id, Why: "the outcome of " + id + " could not be recorded"}
}

// Again tries until done reports true, with growing waits. It reports false if the
// process ends before that.
func (r *Recorder) Again(done func() bool) bool {
	for wait := firstWait; !done(); wait = min(wait*2, lastWait) {
		select {
		case <-r.Life.Done():
			return false
		case <-time.After(wait):
		}
	}
	return true
}

// once tries to record an outcome and reports whether that is over. A record that stays in
// flight, since an inline try was to follow, is parked next.
func (r *Recorder) once(o *Outcome) bool {
	_, err := o.Record(r.Life)
	switch {
	case err == nil:
	case Permanent(err):
		r.Log.Error().Err(err).Str("mutation", o.Mutation.ID).Msg("outcome refused by the ledger")
	default:
		return false
	}
	if o.Park == nil || !r.inFlight(o.Mutation.Key) {
		return true
	}
	o.Record = o.Park
	return false
}

// inFlight reports whether a record is in flight, or can't be read.
func (r *Recorder) inFlight(k ledger.Key) bool {
	state := ledger.InFlight
	_ = r.Ledger.View(r.Life, func(v ledger.View) error {
		m, err := v.Mutation(k)
		if err == nil {
			state = m.State
		}
		return err
	})
	return state == ledger.InFlight
}

// Permanent reports whether trying again can't help: the record has moved on.
func Permanent(err error) bool {
	return errors.Is(err, ledger.ErrNotAllowed) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrVersion)
}
