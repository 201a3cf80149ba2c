package upstream

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter bounds what is believed of a Retry-After, so that a typing error
// upstream does not stop work for years.
const maxRetryAfter = 24 * time.Hour

// RetryAfter returns how long the Retry-After field of an answer asks to wait
// (RFC 9110 §10.2.3), from now on: 0 if there is none, if it can't be read or if it
// lies in the past, and at most 24 hours. A date counts from the answer's own Date
// where it has one, so that the clocks need not agree.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(until.Sub(now), 0), maxRetryAfter)
}
