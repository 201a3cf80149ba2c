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
}

type noMetrics struct{}

// Request implements Metrics.
func (noMetrics) Request(string, string, int, time.Duration) {}

// Mutation implements Metrics.
func (noMetrics) Mutation(string, string) {}

// Unrecorded implements Metrics.
func (noMetrics) Unrecorded(int) {}
