package wire

import "time"

// Served is one request that the proxy has answered, as its log line tells it.
type Served struct {
	At       time.Time `json:"at"`
	Method   string    `json:"method"`
	Host     string    `json:"host"`
	Path     string    `json:"path"`
	Status   int       `json:"status"`
	Bytes    int64     `json:"bytes"`
	Duration Duration  `json:"duration"`
	// Delivered reports whether the client got the whole answer.
	Delivered bool `json:"delivered"`
	// Effect is read, mutation, ignore, observe, allow or passthrough; empty if the request was
	// refused before that was known.
	Effect    string `json:"effect,omitzero"`
	Workflow  string `json:"workflow,omitzero"`
	Item      string `json:"item,omitzero"`
	Run       string `json:"run,omitzero"`
	Connector string `json:"connector,omitzero"`
	Operation string `json:"operation,omitzero"`
	// Mutation is the record's id; State is its state afterwards, and Decision what
	// its claim decided.
	Mutation string `json:"mutation,omitzero"`
	State    string `json:"state,omitzero"`
	Decision string `json:"decision,omitzero"`
	// Problem is the name of the refusal.
	Problem string `json:"problem,omitzero"`
	// Upgrade is the protocol that the connection changed to. Received counts the bytes that the client
	// sent in it, and Bytes those that it got. Ended is who ended it first: client, upstream, stop or
	// shutdown.
	Upgrade  string `json:"upgrade,omitzero"`
	Received int64  `json:"received,omitzero"`
	Ended    string `json:"ended,omitzero"`
	// Client and Detail are of what was refused, or ended, without a request that could be read. They
	// say where it came from, and what is wrong with it.
	Client string `json:"client,omitzero"`
	Detail string `json:"detail,omitzero"`
	// Missed is how many requests before this one were not told, as they came faster
	// than they were read.
	Missed int64 `json:"missed,omitzero"`
}

// AuditLine is one line of GET /v1/audit; one of its fields is there.
type AuditLine struct {
	Run      *Run      `json:"run,omitzero"`
	Mutation *Mutation `json:"mutation,omitzero"`
	Event    *Event    `json:"event,omitzero"`
	// End is the last line of an export that is whole.
	End *AuditEnd `json:"end,omitzero"`
}

// AuditEnd counts what an export held.
type AuditEnd struct {
	Ledger    string    `json:"ledger"`
	At        time.Time `json:"at"`
	Mutations int       `json:"mutations"`
	Events    int       `json:"events"`
	// Seq is the number of the newest event of the ledger then.
	Seq uint64 `json:"seq"`
}

// Progress is one line of a verification under way, or its last line.
type Progress struct {
	// What is being done ("records").
	What  string `json:"what,omitzero"`
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitzero"`
	// Report is set in the last line of a verification that came to its end.
	Report *VerifyReport `json:"report,omitzero"`
	// Problem is set in the last line of one that did not.
	Problem *Problem `json:"problem,omitzero"`
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	// Sound says that nothing was found.
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
	Events   uint64   `json:"events"`
	Records  uint64   `json:"records"`
}
