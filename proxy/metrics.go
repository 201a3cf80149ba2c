package proxy

import "time"

// Metrics counts what the proxy does.
type Metrics interface {
	// Request counts one request: its effect, the refusal's name if it was
	// refused, and the answer's status (0 if there was none).
	Request(effect, problem string, status int, took time.Duration)
	// Mutation counts one claim by its decision and the state it left.
	Mutation(decision, state string)
	// Unrecorded sets the number of outcomes that are still to be recorded.
	Unrecorded(delta int)
	// Upgraded counts the connections that changed protocols: by how many there are more
	// now, and at the end of one the bytes that came from its client and its upstream.
	Upgraded(delta int, fromClient, fromUpstream int64)
}

type noMetrics struct{}

// Request implements Metrics.
func (noMetrics) Request(string, string, int, time.Duration) {}

// Mutation implements Metrics.
func (noMetrics) Mutation(string, string) {}

// Unrecorded implements Metrics.
func (noMetrics) Unrecorded(int) {}

// Upgraded implements Metrics.
func (noMetrics) Upgraded(int, int64, int64) {}
