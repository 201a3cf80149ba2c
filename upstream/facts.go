package upstream

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Facts are what a verdict needs of request and answer besides the evidence.
type Facts struct {
	// Method is the request method.
	Method string
	// GRPC says that the answer's content is gRPC, whose outcome is not in its
	// HTTP status.
	GRPC bool
	// TooLarge says that the answer's body is over the limit of what is kept.
	TooLarge bool
	// RetryAfter is the answer's Retry-After, 0 if it has none.
	RetryAfter time.Duration
}

// FactsOf returns the facts that an answer's head holds. TooLarge is left to the caller,
// who keeps the body.
func FactsOf(method string, a *Answer, now time.Time) Facts {
	return Facts{Method: method, GRPC: isGRPC(a.Header), RetryAfter: RetryAfter(a.Header, now)}
}

// mediaType is that of a message's content, in lower case.
func mediaType(h http.Header) string {
	media, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(media))
}

func isGRPC(h http.Header) bool {
	media := mediaType(h)
	return media == "application/grpc" || strings.HasPrefix(media, "application/grpc+") || strings.HasPrefix(media, "application/grpc-web")
}

// MaxRetryAfter bounds what is believed of a Retry-After, so that a typing error
// upstream does not stop work for years.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter returns how long from now the Retry-After field asks to wait (RFC 9110 §10.2.3), at
// most 24 hours. It is 0 if there is no field, if it can't be read, or if its date has passed. A
// date counts from the answer's own Date where it has one, so that the clocks need not agree.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(v, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second
	}
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(until.Sub(now), 0), MaxRetryAfter)
}

// ClockDiff is the measured difference between an upstream's wall clock and ours.
type ClockDiff struct {
	// Ahead is by how much the upstream's clock is ahead of ours; negative if it is
	// behind.
	Ahead time.Duration
	// Within bounds the error of Ahead in either direction.
	Within time.Duration
}

// MeasureClock compares an answer's Date field (RFC 9110 §6.6.1) with our wall clock. The answer
// was made between sent and received, and its date is cut to whole seconds. It reports false if
// there is no date that can be read, or if our own clock jumped back meanwhile.
//
// A cache in between may have kept an old Date. Callers measure on answers to dispatches, which
// aren't cached.
func MeasureClock(h http.Header, sent, received time.Time) (ClockDiff, bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || received.Before(sent) {
		return ClockDiff{}, false
	}
	half := received.Sub(sent) / 2
	const cut = 500 * time.Millisecond
	return ClockDiff{Ahead: date.Add(cut).Sub(sent.Add(half)), Within: half + cut}, true
}
