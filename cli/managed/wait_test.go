package managed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
)

func TestARunWhoseOpeningIsNotAnsweredIsFound(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("admin API: %w", io.ErrUnexpectedEOF)
	away := fmt.Errorf("admin API: %w", client.ErrNotAsked)
	refusal := &client.Problem{Type: wire.ProblemPrefix + "item-busy", Detail: "A run of it goes on."}
	for name, c := range map[string]struct {
		answers []error // nil opens; the last one stays
		calls   int
		want    error
		waits   time.Duration
	}{
		"an answer at once":                                   {[]error{nil}, 1, nil, 0},
		"a refusal":                                           {[]error{refusal}, 1, refusal, 0},
		"a proxy that can't be reached":                       {[]error{away}, 1, client.ErrNotAsked, 0},
		"an answer that is lost":                              {[]error{lost, nil}, 2, nil, lostPoll},
		"a proxy that is started again at that moment":        {[]error{lost, away, away, nil}, 4, nil, 3 * lostPoll},
		"a refusal after an answer that was lost":             {[]error{lost, refusal}, 2, refusal, lostPoll},
		"a proxy that stays away after it may have been told": {[]error{lost, away}, 31, ErrOpenLost, lostPatience},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				calls, said, began := 0, 0, time.Now()
				opened, err := OpenSurely(t.Context(), func(context.Context) (*wire.OpenedRun, error) {
					err := c.answers[min(calls, len(c.answers)-1)]
					calls++
					if err != nil {
						return nil, err
					}
					return &wire.OpenedRun{ID: "r1"}, nil
				}, func(string, ...any) { said++ })
				if !errors.Is(err, c.want) || (err == nil) != (opened != nil) || calls > c.calls || calls < c.calls-1 {
					t.Errorf("%v, %v after %d calls; want %v after %d", opened, err, calls, c.want, c.calls)
				}
				if waited := time.Since(began); waited != c.waits || (said == 1) != (c.waits > 0) {
					t.Errorf("waited %s and said %d sentences, want %s", waited, said, c.waits)
				}
			})
		})
	}
}
