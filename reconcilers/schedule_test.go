package reconcilers

import (
	"testing"
	"time"

	"keep-proxy/ledger"
)

func TestNextTry(t *testing.T) {
	t.Parallel()
	now := ledger.Stamp{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Mono: time.Hour, Boot: time.Hour, BootID: "b"}
	after := func(d time.Duration) time.Time { return now.Wall.Add(d) }
	for name, tc := range map[string]struct {
		o    outlook
		want time.Duration
	}{
		"the first wait is base":                                 {outlook{}, 10 * time.Second},
		"each wait doubles":                                      {outlook{elapsed: 70 * time.Second}, 80 * time.Second},
		"the cap holds":                                          {outlook{elapsed: 20 * time.Minute}, 10 * time.Minute},
		"the cap holds however long it takes":                    {outlook{elapsed: 1 << 62}, 10 * time.Minute},
		"a clock that went back counts as none":                  {outlook{elapsed: -time.Hour}, 10 * time.Second},
		"long before the end of settle backoff rules":            {outlook{elapsed: 10 * time.Second, settling: true, settle: 5 * time.Minute}, 20 * time.Second},
		"no try is wasted shortly before the end of settle":      {outlook{elapsed: 10 * time.Second, settling: true, settle: 25 * time.Second}, 25 * time.Second},
		"a try after the end of settle is made at its end":       {outlook{elapsed: 20 * time.Minute, settling: true, settle: 90 * time.Second}, 90 * time.Second},
		"settle that is over changes nothing":                    {outlook{elapsed: 30 * time.Second, settling: true}, 40 * time.Second},
		"settle that has not begun changes nothing":              {outlook{elapsed: 30 * time.Second, settle: time.Second}, 40 * time.Second},
		"a confirmation comes as soon as its spacing allows":     {outlook{elapsed: 20 * time.Minute, confirming: true, confirm: 10 * time.Second}, 10 * time.Second},
		"a confirmation that is overdue comes at once":           {outlook{elapsed: 20 * time.Minute, confirming: true, confirm: -time.Second}, 0},
		"the last try comes at the end of MaxAge":                {outlook{elapsed: 24*time.Hour - time.Minute}, time.Minute},
		"Retry-After puts a try off":                             {outlook{notBefore: after(time.Hour)}, time.Hour},
		"Retry-After puts a confirmation off":                    {outlook{confirming: true, confirm: time.Second, notBefore: after(time.Minute)}, time.Minute},
		"a short Retry-After does not hasten":                    {outlook{elapsed: 70 * time.Second, notBefore: after(time.Second)}, 80 * time.Second},
		"a Retry-After of years is obeyed for as long as MaxAge": {outlook{notBefore: after(10000 * time.Hour)}, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.o.now, tc.o.random = now, 0.5
			if got := DefaultSettings().next(tc.o).Sub(now.Wall); got != tc.want {
				t.Errorf("next try in %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBackoffIsSpread(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	for name, tc := range map[string]struct {
		random float64
		want   time.Duration
	}{
		"lowest":  {0, 32 * time.Second},
		"middle":  {0.5, 40 * time.Second},
		"highest": {1, 48 * time.Second},
	} {
		if got := s.backoff(30*time.Second, tc.random); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
