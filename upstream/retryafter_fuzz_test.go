package upstream

import (
	"net/http"
	"testing"
	"time"
)

// FuzzRetryAfter wants a wait from none to a day, whatever the fields say.
func FuzzRetryAfter(f *testing.F) {
	f.Add("120", "")
	f.Add("Sun, 01 Mar 2026 12:00:30 GMT", "Sun, 01 Mar 2026 12:00:00 GMT")
	f.Fuzz(func(t *testing.T, value, date string) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		if wait := RetryAfter(h, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)); wait < 0 || wait > MaxRetryAfter {
			t.Fatalf("%q beside %q is a wait of %v", value, date, wait)
		}
	})
}
