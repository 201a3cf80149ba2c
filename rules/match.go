package rules

// Match says which operation a request is. The zero value denies.
//
// Read it in this order: Refusal set: refuse with it. NeedsBody: read the whole
// body, call [Request.WithBody], match again. Unmatched: the host is no
// connector's, and the caller's own policy applies. Otherwise Effect decides.
type Match struct {
	Effect    Effect
	Connector *Connector
	// Operation is nil for a request that only Connector's reads declare.
	Operation *Operation
	// NeedsBody says that the decision depends on the body.
	NeedsBody bool
	// Unmatched says that no connector declares the host.
	Unmatched bool
	// Refusal is set when the request must not be sent.
	Refusal *Refusal
	// Path and Host are the variables of the patterns that matched.
	Path, Host map[string]string
}

// Candidate is one operation that was looked at, and why it was taken or not.
type Candidate struct {
	Operation string `json:"operation"`
	Matched   bool   `json:"matched"`
	Reason    string `json:"reason"`
}

// Explanation is a match with the reasons for and against every operation of the
// connector.
type Explanation struct {
	Match      Match
	Candidates []Candidate
}
