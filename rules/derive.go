package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Derived is what an operation's rule makes of a request.
type Derived struct {
	// Identity holds canonical JSON by name. An absent optional has no entry. A
	// value read from a secret place is {"sha256": hex}.
	Identity map[string]jsontext.Value
	// Subkey separates two intended mutations of the same identity; often empty.
	Subkey string
	// Account is whose data is changed; empty when the rule doesn't say.
	Account string
	// HostGroup and HostVars are the connector's part of the mutation key;
	// HostVars are the host variables that are not identity.
	HostGroup string
	HostVars  map[string]string
	// Target is the rule's describe with values filled in, secrets masked.
	Target string
	// PayloadDigest is the hex SHA-256 of everything but identity and ignored
	// places; equal digests are the same payload.
	PayloadDigest string
	// SignificantDigest leaves the minor places out too. Payloads that differ in
	// PayloadDigest alone differ in minor ways.
	SignificantDigest string
}

// Derive computes identity, subkey, account, target and payload of a mutation. The request's whole body is loaded, and
// m is the match that chose op.
func (op *Operation) Derive(req *Request, m Match) (*Derived, *Refusal) {
	if op.Effect != EffectMutation {
		return nil, refuse(ProblemDenied, op.Name+" is no mutation")
	}
	if problem := op.unreadable(req); problem != nil {
		return nil, problem
	}
	s := &scope{req: req, path: m.Path, host: m.Host, mail: op.mailOf(req)}
	d := &Derived{HostGroup: op.Connector.HostGroup, HostVars: maps.Clone(m.Host)}
	var refusal *Refusal
	if d.Account, refusal = op.accountOf(s); refusal != nil {
		return nil, refusal
	}
	s.account = d.Account
	if d.Identity, refusal = op.deriveIdentity(s); refusal != nil {
		return nil, refusal
	}
	if d.Subkey, refusal = op.deriveText(op.subkey, "subkey", s); refusal != nil {
		return nil, refusal
	}
	given, refusal := op.headerSubkey(req.Header)
	if refusal != nil {
		return nil, refusal
	}
	if given != "" {
		d.Subkey = given
	}
	maps.DeleteFunc(d.HostVars, func(name, _ string) bool { return op.identifies("host", name) })
	if refusal := op.payload(s, d); refusal != nil {
		return nil, refusal
	}
	d.Target = op.target(s)
	return d, nil
}

// unreadable says why the rule can't judge the body; nil if it can. A body that can't be read counts by its bytes, if the
// rule reads nothing of it.
func (op *Operation) unreadable(req *Request) *Refusal {
	if op.bytesOnly && req.opaque() {
		return nil
	}
	return req.read().problem
}

// Account is what [Operation.Derive] finds to be the account, and nothing else of it.
func (op *Operation) Account(req *Request, m Match) (string, *Refusal) {
	if problem := op.unreadable(req); problem != nil {
		return "", problem
	}
	return op.accountOf(&scope{req: req, path: m.Path, host: m.Host, mail: op.mailOf(req)})
}

func (op *Operation) accountOf(s *scope) (string, *Refusal) {
	if op.Connector.AccountRead != nil {
		return op.accountKnown(s.req)
	}
	return op.deriveText(op.Connector.account, "account", s)
}

// AccountReads reports whether the account of a request can depend on this header field
// of it.
func (c *Connector) AccountReads(field string) bool {
	if c.account == nil {
		return false
	}
	// How a body is read depends on fields that describe it.
	return c.account.readsBody() || slices.ContainsFunc(c.account.refs, func(r place) bool {
		return r.root == "header" && (len(r.steps) == 0 || r.steps[0].kind != stepName || strings.EqualFold(r.steps[0].name, field))
	})
}

// deriveIdentity computes the identity. A missing value refuses, and so does one that a float64 would change. An absent
// optional has no entry.
func (op *Operation) deriveIdentity(s *scope) (map[string]jsontext.Value, *Refusal) {
	if op.NoIdentity {
		return map[string]jsontext.Value{}, nil
	}
	out := make(map[string]jsontext.Value, len(op.identity))
	for _, e := range op.identity {
		v, present, refusal := op.derive(e.expr, "identity."+e.name, s)
		if refusal != nil {
			return nil, refusal
		}
		if !present {
			continue
		}
		out[e.name] = op.hide(e.expr, &v)
	}
	if len(out) == 0 {
		return nil, refuse(ProblemIdentity, "none of the values that say what this request changes is there ("+op.Name+")")
	}
	return out, nil
}

// derive evaluates one expression of the key.
func (op *Operation) derive(e *expr, what string, s *scope) (jsonValue, bool, *Refusal) {
	v, present, err := e.eval(s)
	if r := s.take(); r != nil {
		return jsonValue{}, false, r
	}
	if v.odd > 0 || errors.Is(err, refusedOdd) {
		return jsonValue{}, false, refusedOdd
	}
	if err != nil {
		return jsonValue{}, false, refuse(ProblemIdentity, what+" ("+e.source+
			") has no value in this request"+cmp.Or(e.lacking(s), op.because(err))+"; the rule "+op.Name+" needs it to tell mutations apart")
	}
	if !exactNumbers(&v) {
		return jsonValue{}, false, refuse(ProblemIdentity, what+" is a number with more digits than can be told apart; send it as a string")
	}
	return v, present, nil
}

// deriveText evaluates an expression whose value is text; absent is "".
func (op *Operation) deriveText(e *expr, what string, s *scope) (string, *Refusal) {
	if e == nil {
		return "", nil
	}
	v, present, refusal := op.derive(e, what, s)
	if refusal != nil || !present {
		return "", refusal
	}
	if e.readsSecret(op.secret) {
		return "sha256:" + hexDigest(canonicalValue(&v)), nil
	}
	return scalarText(&v), nil
}

// hide is the canonical value, or its digest where the expression reads a secret
// place.
func (op *Operation) hide(e *expr, v *jsonValue) jsontext.Value {
	canonical := canonicalValue(v)
	if !e.readsSecret(op.secret) {
		return canonical
	}
	return jsontext.Value(`{"sha256":"` + hexDigest(canonical) + `"}`)
}

// hexDigest is the hex SHA-256.
func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	var digits [2 * len(sum)]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// exactNumbers reports whether every number in v keeps its value as canonical
// JSON.
func exactNumbers(v *jsonValue) bool {
	if v.kind == jsonNumber {
		_, exact := canonicalNumber(v.text)
		return exact
	}
	for i := range v.items {
		if !exactNumbers(&v.items[i]) {
			return false
		}
	}
	return true
}

// identifies reports whether an identity expression reads root.name.
func (op *Operation) identifies(root, name string) bool {
	return slices.ContainsFunc(op.identity, func(e namedExpr) bool { return e.readsName(root, name) })
}

// identifiesWhole reports whether an identity is all of root.name but for its spelling. Then nothing of it is left for
// the payload. An identity that takes a part of it, or asks something about it, leaves the rest.
func (op *Operation) identifiesWhole(root, name string) bool {
	return slices.ContainsFunc(op.identity, func(e namedExpr) bool {
		return e.whole != nil && e.whole.root == root && len(e.whole.steps) == 1 && e.whole.steps[0].name == name
	})
}

// target renders describe.
func (op *Operation) target(s *scope) string {
	if op.describe == nil {
		return op.Name
	}
	return op.describe.show(s, op.hides)
}

// OwnHosts says that the hosts are those of the connector's file.
const OwnHosts = "-"

// hostsOf are the patterns of what was noted with a record. For older records, which noted none, they are those of now.
// Hosts of now that lack a variable which this version reads are an error.
func (c *Connector) hostsOf(noted string) ([]*hostPattern, error) {
	switch noted {
	case "":
		if c.lacks != "" {
			return nil, fmt.Errorf("the hosts of then were not noted, and those of now have no {%s}, which it reads", c.lacks)
		}
		return c.hosts, nil
	case OwnHosts:
		return c.fileHosts, nil
	}
	var out []*hostPattern
	for source := range strings.FieldsSeq(noted) {
		p, err := parseHostPattern(source)
		if err != nil {
			return nil, fmt.Errorf("the hosts of then: %q: %w", source, err)
		}
		out = append(out, p)
	}
	return out, nil
}

// matchHost finds the variables of a request's host, in the order of [Set.lookup]. A host without variables comes
// before all patterns.
func matchHost(patterns []*hostPattern, req *Request) (map[string]string, bool) {
	if req.Port == "" {
		for _, p := range patterns {
			if literal, ok := p.exact(); ok && p.port == "" && literal == req.Host {
				return nil, true
			}
		}
	}
	for _, p := range patterns {
		if vars, fits := p.match(req.Scheme, req.Host, req.Port); fits {
			return vars, true
		}
	}
	return nil, false
}

// maxAccount bounds the name of an account, in bytes.
const maxAccount = 1 << 10

// AccountRead asks the API itself whose data its requests change, where no request says
// so. What it gives is part of every key, so that it must be known before anything is
// derived: see [Request.WithAccount].
type AccountRead struct {
	// Cache is how long an answer holds for the same credentials.
	Cache time.Duration

	step  *sendStep
	value *expr
	// token is where the script's credential may stand in its body; nil for none.
	token *place
}

// perRequest are header fields that tell requests apart and not callers.
var perRequest = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "Baggage", "Cache-Control", "Date", "Priority", "Referer", "Traceparent", "Tracestate",
	"X-Amzn-Trace-Id", "X-B3-Parentspanid", "X-B3-Sampled", "X-B3-Spanid", "X-B3-Traceid", "X-Client-Request-Id", "X-Correlation-Id", "X-Request-Id",
}

// Ask is the request that tells the account of req. It goes to the same host with the same header fields. Fields about
// its content, and those that differ from request to request, are left out. The answer holds for every request for
// which Ask is the same.
func (a *AccountRead) Ask(req *Request) (*Ask, error) {
	target, header, body, err := a.step.build(&scope{req: req}, req)
	if text := string(body); err == nil && (strings.Contains(text, maskedPair) || strings.Contains(text, secretShown)) {
		// The token isn't stored. The configured credential tells.
		target, header, body, err = a.step.build(&scope{req: req.WithBody(nil)}, req)
	}
	if err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		return slices.Contains(perRequest, name) || name == http.CanonicalHeaderKey(SubkeyField) || name == "Keep-Item"
	})
	header.Set("Accept", "application/json")
	return &Ask{Method: a.step.ask.method, Scheme: req.Scheme, Authority: req.Authority(), Target: target, Header: header, Body: body}, nil
}

// Account is what an answer to Ask says. Anything but a whole answer 200 that gives a
// text or a number is an error.
func (a *AccountRead) Account(req *Request, resp *Response) (string, error) {
	switch {
	case resp == nil || !resp.Complete:
		return "", errors.New("there was no whole answer")
	case resp.Status != http.StatusOK:
		return "", fmt.Errorf("it was answered %d instead of 200", resp.Status)
	}
	v, err := required(a.value, &scope{req: req, resp: newAnswer(resp)})
	if err != nil {
		return "", errors.New("the answer doesn't tell it by " + a.value.source)
	}
	if v.kind != jsonString && v.kind != jsonNumber || v.text == "" || len(v.text) > maxAccount {
		return "", fmt.Errorf("%s is no name: a text of 1 to %d bytes, or a number", a.value.source, maxAccount)
	}
	return scalarText(&v), nil
}

// WithAccount is the request of which it is known whose data c's API changes by it.
func (r *Request) WithAccount(c *Connector, account string) *Request {
	next := r.copy()
	next.accounts = maps.Clone(r.accounts)
	if next.accounts == nil {
		next.accounts = map[string]string{}
	}
	next.accounts[c.Hash] = account
	return next
}

// accountKnown is what WithAccount said for a connector that asks.
func (op *Operation) accountKnown(req *Request) (string, *Refusal) {
	account, known := req.accounts[op.Connector.Hash]
	if !known {
		return "", refuse(ProblemAccount, "whose data this request changes must be asked of the API, and was not")
	}
	return account, nil
}
