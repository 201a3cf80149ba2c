package reconcilers

import "time"

// Metrics counts the work.
type Metrics interface {
	// Tried counts one try and how long it took. seen is what the ledger recorded:
	// applied, absent, duplicate or retry; a verdict for a resend; "exhausted";
	// "dropped" if the record moved meanwhile; "error" if the ledger failed.
	Tried(connector, operation, strategy, seen string, took time.Duration)
	// Working adds delta to the number of the runner's tries that are under way.
	Working(delta int)
	// Unrecorded adds delta to the number of outcomes that the ledger did not take yet.
	Unrecorded(delta int)
}

type noMetrics struct{}

func (noMetrics) Tried(_, _, _, _ string, _ time.Duration) {}
func (noMetrics) Working(int)                              {}
func (noMetrics) Unrecorded(int)                           {}
