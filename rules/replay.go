package rules

import (
	"net/http"
	"unicode/utf8"
)

// Drift is what happens when a re-run asks for a new identity of the operation
// before it has asked for what an earlier run did.
type Drift string

// What a drift is. Anything else is refused.
const (
	// DriftWarn sends, and says so; the default.
	DriftWarn Drift = "warn"
	// DriftRefuse sends nothing, and asks a person.
	DriftRefuse Drift = "refuse"
	// DriftAllow doesn't look.
	DriftAllow Drift = "allow"
)

// SubkeyHeader says whether a script may tell two intents of one identity apart by
// the header field Keep-Subkey.
type SubkeyHeader string

// Whether the field may be there. Anything else forbids it.
const (
	SubkeyForbidden SubkeyHeader = "forbidden"
	SubkeyOptional  SubkeyHeader = "optional"
	SubkeyRequired  SubkeyHeader = "required"
)

// SubkeyField is the name of that field, in its canonical form. It is read here and
// never sent.
const SubkeyField = "Keep-Subkey"

// maxSubkey bounds its value, in bytes.
const maxSubkey = 255

// headerSubkey is the subkey that the script gave, if the rule lets it.
func (op *Operation) headerSubkey(header http.Header) (string, *Refusal) {
	values, given := header[SubkeyField]
	if !given && op.SubkeyHeader != SubkeyRequired {
		return "", nil
	}
	switch op.SubkeyHeader {
	case SubkeyOptional, SubkeyRequired:
	case SubkeyForbidden:
		fallthrough
	default:
		return "", refuse(ProblemIdentity, "the rule of "+op.Name+" takes no "+SubkeyField+"; leave the field out, or give the rule a subkey or subkey_header")
	}
	switch {
	case !given:
		return "", refuse(ProblemIdentity, "the rule of "+op.Name+" needs the header field "+SubkeyField+
			", which tells mutations of the same identity apart; send one that is the same at each run")
	case len(values) != 1:
		return "", refuse(ProblemAmbiguous, SubkeyField+" comes more than once; send it once")
	case values[0] == "" || len(values[0]) > maxSubkey || !utf8.ValidString(values[0]):
		return "", refuse(ProblemIdentity, SubkeyField+" must be UTF-8 text of 1 to 255 bytes")
	}
	return values[0], nil
}

// StandsInForSkipped and StandsInForResult report whether the rule has an answer of
// its own for a mutation that was skipped, or whose result isn't known.
func (op *Operation) StandsInForSkipped() bool { return op.onSkip != nil }

// StandsInForResult is about a result that isn't known; see StandsInForSkipped.
func (op *Operation) StandsInForResult() bool { return op.onNoResult != nil }

// StandIn is the rule's answer in the place of a result: on_skip of a skipped
// mutation, else on_no_result. An error means that it can't be made of this request.
func (op *Operation) StandIn(skipped bool, env Env) (*Result, error) {
	template := op.onNoResult
	if skipped {
		template = op.onSkip
	}
	return template.build(op.scope(env))
}
