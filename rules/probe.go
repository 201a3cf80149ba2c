package rules

import "net/http"

// Env is what a probe may read: the request as it was claimed, its record, and
// whose data it changes.
type Env struct {
	// Request is the stored request; places that are secret may be masked.
	Request  *Request
	Mutation Mutation
	Account  string
}

// Ask is one request that a probe wants sent, to the authority of the mutation
// itself. Credentials are the caller's business.
type Ask struct {
	// Method is GET or POST.
	Method    string
	Scheme    string
	Authority string
	// Target is the request target in origin form.
	Target string
	// Shown is the target as people may see it; empty where an answer of the API said
	// how to go on, as for a next page.
	Shown  string
	Header http.Header
	// Body is nil for GET.
	Body []byte
}

// Seen is what a probe saw.
type Seen uint8

// What a probe saw. The zero value is retry: it saw nothing that counts.
const (
	// SeenRetry is no observation; ask again later.
	SeenRetry Seen = iota
	// SeenApplied is the one object or state that the mutation made.
	SeenApplied
	// SeenAbsent is that it isn't there.
	SeenAbsent
	// SeenDuplicate is more than one object.
	SeenDuplicate
)

// String is the word of the ledger; an unknown value is "retry".
func (s Seen) String() string {
	switch s {
	case SeenApplied:
		return "applied"
	case SeenAbsent:
		return "absent"
	case SeenDuplicate:
		return "duplicate"
	case SeenRetry:
		return "retry"
	}
	return "retry"
}

// Tie is how a rule knows that an object is this mutation's.
type Tie string

// Ties. Only vendor_key and marker allow a duplicate to be undone.
const (
	TieVendorKey Tie = "vendor_key"
	TieMarker    Tie = "marker"
	TieUnique    Tie = "unique"
	TieContent   Tie = "content"
)

// Strong reports whether the tie names this very mutation.
func (t Tie) Strong() bool { return t == TieVendorKey || t == TieMarker }

// Result is the answer that a script gets for a mutation found by a probe.
type Result struct {
	Status int
	Header http.Header
	Body   []byte
}

// Observation is what one whole probe came to.
type Observation struct {
	Seen   Seen
	Reason string
	// ObjectIDs are the upstream's own ids of the objects found, newest last
	// where the rule says when they were created, else in listing order.
	ObjectIDs []string
	// Result is nil where the rule has no result template.
	Result *Result
	Tie    Tie
	// AbsenceIsProof is what the rule says of its own absence.
	AbsenceIsProof bool
}
