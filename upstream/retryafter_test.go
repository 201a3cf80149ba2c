package upstream

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		value, date string
		want        time.Duration
	}{
		"none":                        {"", "", 0},
		"seconds":                     {"120", "", 2 * time.Minute},
		"seconds with space":          {" 5 ", "", 5 * time.Second},
		"zero":                        {"0", "", 0},
		"negative":                    {"-5", "", 0},
		"a fraction":                  {"1.5", "", 0},
		"words":                       {"soon", "", 0},
		"years":                       {"999999999", "", 24 * time.Hour},
		"more than an integer holds":  {"99999999999999999999", "", 24 * time.Hour},
		"a date":                      {"Sun, 01 Mar 2026 12:00:30 GMT", "", 30 * time.Second},
		"a date in the past":          {"Sun, 01 Mar 2026 11:00:00 GMT", "", 0},
		"a date years ahead":          {"Sun, 01 Mar 2036 12:00:00 GMT", "", 24 * time.Hour},
		"a date on another clock":     {"Sun, 01 Mar 2026 09:00:30 GMT", "Sun, 01 Mar 2026 09:00:00 GMT", 30 * time.Second},
		"a date beside a broken Date": {"Sun, 01 Mar 2026 12:00:30 GMT", "today", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			h.Set("Retry-After", tc.value)
			h.Set("Date", tc.date)
			if got := RetryAfter(h, now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
