package oracle

import (
	"context"
	"fmt"
	"time"
)

// pollEvery is how often Wait looks at the file again. The writer may be
// another process, so there is nobody to tell it of a change.
const pollEvery = 5 * time.Millisecond

// Wait reads the file at path until enough is true of it, and returns what it
// held then. It ends with the context's error, wrapped with a short account of
// what was there instead.
func Wait(ctx context.Context, path string, enough func(Tally) bool) (Tally, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	r := NewReader(path)
	for {
		t, err := r.Tally()
		if err != nil {
			return Tally{}, err
		}
		if enough(t) {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return t, fmt.Errorf("oracle: wait: %w with %d events of %v", ctx.Err(), len(t.Events), t.Identities())
		case <-tick.C:
		}
	}
}
