package upstream

import (
	"net/http"
	"testing"
	"time"
)

func TestMeasureClock(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const date = "Sun, 01 Mar 2026 12:00:30 GMT"
	for name, tc := range map[string]struct {
		date  string
		round time.Duration
		want  ClockDiff
		ok    bool
	}{
		"at once":              {date, 0, ClockDiff{30*time.Second + 500*time.Millisecond, 500 * time.Millisecond}, true},
		"after two seconds":    {date, 2 * time.Second, ClockDiff{29*time.Second + 500*time.Millisecond, 1500 * time.Millisecond}, true},
		"the upstream behind":  {"Sun, 01 Mar 2026 11:59:00 GMT", 0, ClockDiff{-59*time.Second - 500*time.Millisecond, 500 * time.Millisecond}, true},
		"no date":              {"", 0, ClockDiff{}, false},
		"not a date":           {"now", 0, ClockDiff{}, false},
		"our clock went back":  {date, -time.Second, ClockDiff{}, false},
		"an obsolete format":   {"Sunday, 01-Mar-26 12:00:30 GMT", 0, ClockDiff{30*time.Second + 500*time.Millisecond, 500 * time.Millisecond}, true},
		"asctime, as C has it": {"Sun Mar  1 12:00:30 2026", 0, ClockDiff{30*time.Second + 500*time.Millisecond, 500 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			h.Set("Date", tc.date)
			got, ok := MeasureClock(h, sent, sent.Add(tc.round))
			if got != tc.want || ok != tc.ok {
				t.Errorf("got %+v, %v; want %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

// TestMeasuredClockIsWithinItsBound tries every moment at which the upstream may
// have cut its date.
func TestMeasuredClockIsWithinItsBound(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const round, ahead = 700 * time.Millisecond, 90 * time.Second
	for made := time.Duration(0); made <= round; made += 7 * time.Millisecond {
		for start := range 100 {
			sent := sent.Add(time.Duration(start) * 10 * time.Millisecond)
			h := http.Header{"Date": {sent.Add(made + ahead).Truncate(time.Second).Format(http.TimeFormat)}}
			d, ok := MeasureClock(h, sent, sent.Add(round))
			if off := (d.Ahead - ahead).Abs(); !ok || off > d.Within {
				t.Fatalf("made %v after %v: measured %v ± %v, but the clock is %v ahead", made, sent, d.Ahead, d.Within, ahead)
			}
		}
	}
}
