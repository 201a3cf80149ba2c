package rules

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Likeness is how two payloads of one identity stand to each other. The zero value
// is significant: nothing is replayed over it.
type Likeness uint8

const (
	// Significant is a difference that counts.
	Significant Likeness = iota
	// Minor is a difference in places that the rule calls minor.
	Minor
	// Equivalent is the same, written differently.
	Equivalent
)

// String is the word of the connector format; an unknown likeness is "significant".
func (l Likeness) String() string {
	switch l {
	case Minor:
		return "minor"
	case Equivalent:
		return "equivalent"
	case Significant:
	}
	return "significant"
}

// Comparison is how a request's payload differs from a stored one.
type Comparison struct {
	Likeness Likeness
	// Why says what decided, in a sentence.
	Why string
	// Changes are what differs, in the order of method, path, query, header and body. Ignored places are left out. More
	// says that there are others.
	Changes []Change
	More    bool
}

// Compare says how the payload of asked differs from that of stored. The ledger holds stored as [Operation.Redact]
// returned it, so that differences in secret places can't be seen any more. Where there are such places, only the
// rule's own compare can make the two alike. Payloads that are equal but for ignored or normalised places are equivalent.
// Those that are equal but for minor places are minor. Then the rule's compare decides; without one, the difference is
// significant. What can't be read or evaluated is significant.
func (op *Operation) Compare(stored, asked *Request) Comparison {
	stored, asked = op.Redact(stored), op.Redact(asked) // An older record may show more.
	a, b := op.bind(stored), op.bind(asked)
	if op.unreadable(a.req) != nil || op.unreadable(b.req) != nil || op.view != "" && (a.view(op.view).problem != nil || b.view(op.view).problem != nil) {
		return Comparison{Why: "one of the two bodies can't be read"}
	}
	out := op.difference(a, b)
	alike := func(without *placed) bool {
		return bytes.Equal(op.appendPayload(nil, a, without, op.collations), op.appendPayload(nil, b, without, op.collations))
	}
	switch {
	case !alike(op.insignificant):
		out.Why = "they differ in places that count"
	case op.secretRequest() || strings.Contains(stored.rawQuery+asked.rawQuery, maskedPair):
		out.Why = "what is shown doesn't differ; a place that the rule keeps secret may"
	case alike(op.ignored):
		out.Likeness, out.Why = Equivalent, "they differ only in how they are written"
	default:
		out.Likeness, out.Why = Minor, "they differ only in places that the rule calls minor"
	}
	if out.Likeness == Significant && op.compare != nil {
		out.Likeness, out.Why = op.judgeLikeness(a, b)
	}
	return out
}

// secretRequest reports whether the payload has a part that is masked in what is stored.
func (op *Operation) secretRequest() bool {
	return slices.ContainsFunc(op.secret, func(p place) bool { return p.root != "response" && p.root != "header" }) ||
		slices.ContainsFunc(op.headers, op.HidesField)
}

// judgeLikeness asks the rule's compare.
func (op *Operation) judgeLikeness(stored, asked *scope) (Likeness, string) {
	asked.stored = stored
	v, present, err := op.compare.eval(asked)
	for _, s := range []*scope{asked, stored} {
		if problem := s.take(); problem != nil {
			return Significant, "compare reads what can't be read without guessing: " + problem.Detail
		}
	}
	switch {
	case err != nil:
		return Significant, fmt.Sprintf("compare (%s) can't be evaluated: %v", printable(op.compare.source), err)
	case present && v.kind == jsonString && v.text == Equivalent.String():
		return Equivalent, "compare says that they are equivalent"
	case present && v.kind == jsonString && v.text == Minor.String():
		return Minor, "compare says that the difference is minor"
	case present && v.kind == jsonString && v.text == Significant.String():
		return Significant, "compare says that the difference is significant"
	}
	return Significant, "compare gives none of equivalent, minor and significant"
}

// storedLayer is what only compare may read.
func storedLayer() cel.EnvOption {
	return cel.Variable("stored", cel.MapType(cel.StringType, cel.DynType))
}

// storedMap is the variable stored: the request that was recorded, with the same
// names as the request at hand.
func storedMap(s *scope) *lazyMap {
	return &lazyMap{types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{}), func(name string) (ref.Val, bool) {
		if !slices.Contains(storedNames, name) {
			return nil, false
		}
		v, found := s.ResolveName(name)
		return types.DefaultTypeAdapter.NativeToValue(v), found
	}}
}

// storedNames are what can be read of a stored request.
var storedNames = []string{
	"method", "authority", "path", "host", "query", "form", "header", "query_all", "form_all", "json", "body_sha256",
	"graphql", "multipart", "jsonrpc", "mail", "aws", "body_md5",
}
