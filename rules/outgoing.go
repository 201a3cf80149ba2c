package rules

import "time"

// Mutation is what a rule may know of the ledger's record.
type Mutation struct {
	// ID is the record's id.
	ID string
	// Marker is the text that ties an object of the outside world to the record.
	Marker string
	// VendorKey is the API's own idempotency key in the asked format; the
	// script's own first one under keep_first.
	VendorKey string
	// Generation is the generation of VendorKey.
	Generation int
	// ClaimedAt is when the record was claimed, by the wall clock.
	ClaimedAt time.Time
}
