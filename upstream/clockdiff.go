package upstream

import (
	"net/http"
	"time"
)

// ClockDiff is the measured difference between an upstream's wall clock and ours.
type ClockDiff struct {
	// Ahead is by how much the upstream's clock is ahead of ours; negative if it is
	// behind.
	Ahead time.Duration
	// Within bounds the error of Ahead in either direction.
	Within time.Duration
}

// MeasureClock compares the Date field of an answer (RFC 9110 §6.6.1) with our
// wall clock: the answer was made between sent and received, and its date is cut
// to whole seconds. It reports false if there is no date that can be read, or if
// our own clock jumped back meanwhile.
//
// A cache in between may have kept an old Date; the caller measures on answers to
// dispatches, which are not cached.
func MeasureClock(h http.Header, sent, received time.Time) (ClockDiff, bool) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || received.Before(sent) {
		return ClockDiff{}, false
	}
	half := received.Sub(sent) / 2
	const cut = 500 * time.Millisecond
	return ClockDiff{Ahead: date.Add(cut).Sub(sent.Add(half)), Within: half + cut}, true
}
