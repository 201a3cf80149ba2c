package dispatch

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"keep-proxy/ledger"
)

// viewed is a ledger whose one record has moved on, if it can be read.
type viewed struct{ fails error }

func (v viewed) View(context.Context, func(ledger.View) error) error { return v.fails }

func (viewed) Unrecorded() *ledger.Unrecorded { return nil }

// Trying again helps where the ledger fails, and not where the record has moved on. One that
// can't be read may be in flight.
func TestWhenRecordingIsOver(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		ledger.ErrNotAllowed: true, ledger.ErrNotFound: true, ledger.ErrVersion: true,
		ledger.ErrUnavailable: false, errors.New("trouble"): false, context.Canceled: false,
	} {
		if got := Permanent(fmt.Errorf("finish: %w", err)); got != want {
			t.Errorf("%v is permanent: %t", err, got)
		}
		r := &Recorder{Ledger: viewed{errors.New("can't be read")}, Life: t.Context()}
		o := &Outcome{Mutation: &ledger.Mutation{Intent: ledger.Intent{ID: "m"}}, Record: func(context.Context) (ledger.Moved, error) { return ledger.Moved{}, err }}
		if got := r.once(o); got != want {
			t.Errorf("after %v it is over: %t", err, got)
		}
		parked := false
		o.Park = func(context.Context) (ledger.Moved, error) { parked = true; return ledger.Moved{}, nil }
		if got := r.once(o); got {
			t.Errorf("after %v it is over, though the record may be in flight", err)
		}
		if r.once(o); parked != want {
			t.Errorf("after %v it is parked: %t", err, parked)
		}
	}
}
