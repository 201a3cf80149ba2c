package rules

import (
	"errors"
	"net/http"
	"time"
)

var errPending = errors.New("rules: not loaded")

type (
	hostPattern struct{}
	pathPattern struct{}
	expr        struct{}
	testCase    struct{}
	matcher     struct{}
	text        struct{}
	namedExpr   struct{}
	mask        struct{}
	marker      struct{}
	outcomeRule struct{}
	place       struct{}
	placed      struct{}
	content     struct{}
)

// Load reads every file and returns the set they make with the user's settings
// and defaults. All problems of all files are found at once; if any is an error
// the set is nil. Files are taken in the given order; no two may hold the same
// connector or overlapping hosts.
func Load(files []File, settings []Settings, d Defaults) (*Set, Findings) {
	return nil, Findings{{Severity: SeverityError, Code: "pending", Problem: "pending", Fix: "pending"}}
}

// LoadPinned loads one stored version of a connector again, by the content that a
// record is pinned to. Settings for other connectors, and overrides for
// operations that this version doesn't have, are passed over.
func LoadPinned(content []byte, settings []Settings, d Defaults) (*Connector, Findings) {
	return nil, Findings{{Severity: SeverityError, Code: "pending", Problem: "pending", Fix: "pending"}}
}

// RunCases runs the cases of every connector and returns one finding, an error,
// for each that doesn't come out as it says.
func (s *Set) RunCases() Findings { return nil }

// Match finds the operation of a request; see [Match] for how to read the answer.
func (s *Set) Match(req *Request) Match {
	return Match{Refusal: refuse(ProblemDenied, errPending.Error())}
}

// Explain matches and says why each operation of the connector was taken or not.
func (s *Set) Explain(req *Request) Explanation { return Explanation{Match: s.Match(req)} }

func (s *Set) lookup(host, port string) (*Connector, map[string]string) { return nil, nil }

// Derive computes identity, subkey, account, target and payload of a mutation
// from a request whose whole body is loaded. m is the match that chose op.
func (op *Operation) Derive(req *Request, m Match) (*Derived, *Refusal) {
	return nil, refuse(ProblemIdentity, errPending.Error())
}

// Outgoing writes the native key and the marker into the request. Everything else
// stays as it was judged: JSON keeps the order of its members and the digits of
// its numbers. A body that came with a Content-Encoding and must be changed is
// sent without one.
func (op *Operation) Outgoing(req *Request, mu Mutation) (*Request, *Refusal) {
	return nil, refuse(ProblemIdentity, errPending.Error())
}

// ClientKey is the native key that the script sent itself, if there is exactly
// one and it isn't empty. It needs the body loaded.
func (op *Operation) ClientKey(req *Request) (string, bool) { return "", false }

// Judge asks the rule's outcome list, success condition and otherwise about an
// answer whose head is complete. account is the record's. A condition that can't
// be evaluated is uncertain.
func (op *Operation) Judge(req *Request, account string, mu Mutation, resp *Response) Opinion {
	return Opinion{Kind: OpinionUncertain, Reason: errPending.Error()}
}

// JudgesBody reports whether the verdict can depend on the answer's body: the
// rule has a success condition, or an outcome that reads the body.
func (op *Operation) JudgesBody() bool { return true }

// SecretAnswer reports whether the rule declares a secret place in the answer.
func (op *Operation) SecretAnswer() bool { return true }

// Redact returns the request as it may be stored: secret places and header fields
// that usually hold credentials are masked. A masked request can't be sent.
func (op *Operation) Redact(req *Request) *Request { return nil }

// RedactResponse returns the answer as it may be stored. Secret places of a body
// that can't be read leave no body at all.
func (op *Operation) RedactResponse(resp *Response) *Response { return nil }

// ManualCheckText is the rule's manual check with values filled in, "?" for what
// is missing and "<secret>" for what is secret; empty when the rule has none.
func (op *Operation) ManualCheckText(env Env) string { return "" }

// Describe is the rule's describe with values filled in, as in [Derived].Target;
// the operation's name when the rule has none.
func (op *Operation) Describe(env Env) string { return op.Name }

// CanonicalJSON returns the RFC 8785 form of a JSON text, but integers keep all
// their digits. Repeated names, invalid UTF-8 and numbers that no float64 can
// hold are errors.
func CanonicalJSON(text []byte) ([]byte, error) { return nil, errPending }

// Probe finds out by reads whether a mutation happened.
type Probe struct{}

// Begin starts one try. It fails when the first request can't be made from env; a
// try that can't begin is a retry.
func (p *Probe) Begin(env Env) (*Asking, error) { return nil, errPending }

// Asking is one try of a probe: call Next, send, call Answer, until Next says
// false; then Observation. It is not safe for concurrent use.
type Asking struct{}

// Next returns the next request to send; false when the try is over.
func (a *Asking) Next() (*Ask, bool) { return nil, false }

// Answer takes the answer to the last Ask. An answer that can't be used ends the
// try with retry; give nil for a request that got no whole answer.
func (a *Asking) Answer(resp *Response) {}

// Observation is what the try came to; retry unless it ran to its end.
// claimedByOther says whether an object is another mutation's evidence.
// clockDiff is the measured difference between the upstream's clock and ours,
// of either sign; it only counts for tie content.
func (a *Asking) Observation(claimedByOther func(objectID string) bool, clockDiff time.Duration) Observation {
	return Observation{}
}

var _ http.Header
