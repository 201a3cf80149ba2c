package rules

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"
)

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
	// ClaimedAt is when the record was claimed, by the wall clock. Where the API is asked
	// by it, it is what the clock of now would have shown.
	ClaimedAt time.Time
	// SentAt is when the first sending began that may have taken effect, by the same clock. It is later than ClaimedAt
	// where those before it failed for certain. Zero for ClaimedAt.
	SentAt time.Time
	// Kept is what preparing steps gave, as JSON by name.
	Kept map[string]string
	// Object is the upstream's id of what is taken back; empty but for an undo.
	Object string
	// Unmarked says that the marker was left out. Nothing shows it then, and reading it is an error.
	Unmarked bool
}

// Outgoing writes the native key and the marker into the request. Everything else
// stays as it was judged: JSON keeps the order of its members and the digits of
// its numbers. A body that came with a Content-Encoding and must be changed is
// sent without one. A request that says a digest of a body which must be changed
// is refused.
func (op *Operation) Outgoing(req *Request, mu Mutation) (*Request, *Refusal) {
	out := &outgoing{op: op, req: req, header: req.Header, query: req.rawQuery, hasQuery: req.hasQuery}
	if refusal := out.key(mu); refusal != nil {
		return nil, refusal
	}
	if refusal := out.mark(mu); refusal != nil {
		return nil, refusal
	}
	return out.request()
}

// ClientKey is the native key that the script sent itself, if there is exactly
// one and it isn't empty. It needs the body loaded.
func (op *Operation) ClientKey(req *Request) (string, bool) {
	if op.NativeKey == nil {
		return "", false
	}
	s := &scope{req: req}
	at := op.keyPlace(req)
	if at.root != "json" && at.root != "graphql" {
		v, ok := s.named(at.root, at.steps[0].name)
		return v, ok && v != "" && s.problem == nil
	}
	v, err := walk(s.tree(at.root), at.steps)
	if err != nil || s.problem != nil || v.kind != jsonString && v.kind != jsonNumber {
		return "", false
	}
	return v.text, v.text != ""
}

// outgoing is a request that is being changed.
type outgoing struct {
	op       *Operation
	req      *Request
	header   http.Header
	query    string
	hasQuery bool
	// body is nil as long as it isn't changed.
	body []byte
}

// key writes the native key.
func (o *outgoing) key(mu Mutation) *Refusal {
	k := o.op.NativeKey
	if k == nil {
		return nil
	}
	if mu.VendorKey == "" || !httpguts.ValidHeaderFieldValue(mu.VendorKey) {
		return refuse(ProblemIdentity, "there is no usable key for "+k.Name+"; nothing is sent without it")
	}
	at := o.op.keyPlace(o.req)
	if at.root == "header" {
		if refusal := o.req.unreadable(at.steps[0].name); refusal != nil {
			return refusal
		}
	}
	if k.WhenPresent == PresentRefuse && o.present(at) {
		return refuse(ProblemAmbiguous, "the request brings its own "+k.Name+", which this operation does not take; leave it out")
	}
	if own, sent := o.op.ClientKey(o.req); sent && own == mu.VendorKey {
		return nil // It may be where nothing can be written: in a document of GraphQL, or under a signature.
	}
	return o.set(at, mu.VendorKey)
}

// present reports whether the request holds anything at the place.
func (o *outgoing) present(at place) bool {
	s := &scope{req: o.req}
	switch at.root {
	case "header":
		return len(headerValues(o.req.Header, at.steps[0].name)) > 0
	case "query":
		return len(s.queryPairs().values(at.steps[0].name)) > 0
	case "form":
		return len(s.form().values(at.steps[0].name)) > 0
	}
	_, err := walk(s.tree(at.root), at.steps)
	return err == nil
}

// set writes one text to a place.
func (o *outgoing) set(at place, value string) *Refusal {
	switch at.root {
	case "header":
		o.header = maps.Clone(o.header)
		o.header[http.CanonicalHeaderKey(at.steps[0].name)] = []string{value}
		return nil
	case "json", "graphql":
		return o.editBody(at, edit{change: func(jsontext.Value) (jsontext.Value, error) { return appendString(nil, value), nil }})
	}
	return o.setPair(at, func(*pairs) (string, *Refusal) { return value, nil })
}

// setPair writes one name of the query or of a form. The value is made from what is there.
func (o *outgoing) setPair(at place, value func(*pairs) (string, *Refusal)) *Refusal {
	if at.root == "form" {
		return o.setForm(at, value)
	}
	spelt, refusal := withPair(o.query, at, value)
	if refusal == nil {
		o.query, o.hasQuery = spelt, true
	}
	return refusal
}

// withPair is a query or a form with another value of one name.
func withPair(raw string, at place, value func(*pairs) (string, *Refusal)) (string, *Refusal) {
	p := parsePairs(raw, at.root)
	if p.problem != nil {
		return "", p.problem
	}
	if p.variant(at.steps[0].name) {
		return "", refuseVariant(at.root, at.steps[0].name)
	}
	text, refusal := value(&p)
	if refusal != nil {
		return "", refusal
	}
	return p.with(at.steps[0].name, text), nil
}

// setForm writes one field of a form.
func (o *outgoing) setForm(at place, value func(*pairs) (string, *Refusal)) *Refusal {
	c := o.req.read()
	switch {
	case c.problem != nil:
		return c.problem
	case c.form != nil && c.form.problem != nil:
		return c.form.problem
	case c.form == nil && len(c.bytes) > 0:
		return refuse(ProblemIdentity, "the body is no form, but the rule writes the field "+at.source+" into it; send application/x-www-form-urlencoded")
	}
	raw := ""
	if c.form != nil {
		raw = c.form.raw
	}
	if o.body != nil {
		raw = string(o.body)
	}
	spelt, refusal := withPair(raw, at, value)
	if refusal != nil {
		return refusal
	}
	if c.form == nil {
		o.header = maps.Clone(o.header)
		o.header["Content-Type"] = []string{formType}
	}
	o.body = []byte(spelt)
	return nil
}

// editBody changes what is at a place of a JSON body, or below it.
func (o *outgoing) editBody(at place, edits ...edit) *Refusal {
	c := o.req.read()
	if at.root == "graphql" {
		var refusal *Refusal
		if at, refusal = c.graphQL().source(at); refusal != nil {
			return refusal
		}
	}
	switch {
	case c.problem != nil:
		return c.problem
	case c.jsonProblem != nil:
		return c.jsonProblem
	case c.json == nil:
		return refuse(ProblemIdentity, "the body is no JSON, but the rule writes "+at.source+" into it")
	}
	body := o.body
	if body == nil {
		body = c.bytes
	}
	changed, refusal := edited(body, c.json, at, at.steps, edits)
	if refusal == nil {
		o.body = changed
	}
	return refusal
}

// digestHeaders say something about the very bytes of the body.
var digestHeaders = []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "X-Amz-Content-Sha256"}

// request is the changed request.
func (o *outgoing) request() (*Request, *Refusal) {
	if refusal := o.sealed(o.body != nil || o.query != o.req.rawQuery || !maps.EqualFunc(o.header, o.req.Header, slices.Equal)); refusal != nil {
		return nil, refusal
	}
	next := o.req.copy()
	next.Header, next.rawQuery, next.hasQuery = o.header, o.query, o.hasQuery
	if o.body == nil {
		return next, nil
	}
	for _, name := range digestHeaders {
		if len(o.header[name]) > 0 && (name != "X-Amz-Content-Sha256" || o.op.Connector == nil || !o.op.Connector.signs) {
			return nil, refuse(ProblemAmbiguous, "the request says a digest of its body in "+name+", but the rule must change the body; leave the header out")
		}
	}
	next.Header = maps.Clone(o.header)
	delete(next.Header, "Content-Encoding")
	delete(next.Header, "Content-Length")
	next.body, next.hasBody, next.loaded = o.body, true, true
	return next, nil
}

// errNoObject is a path that leads through something other than an object.
var errNoObject = errors.New("there is no object at that place")

// editJSON sets the value at a path of names and leaves every other byte as it is. The order of members, the digits of
// numbers and the white space stay. The function edit gets the value that is there, nil for none, and returns the new
// one. Objects that are missing on the way are made.
func editJSON(body []byte, steps []placeStep, edit func(old jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body))
	for i, step := range steps {
		if dec.PeekKind() != jsontext.KindBeginObject {
			return nil, errNoObject
		}
		if _, err := dec.ReadToken(); err != nil {
			return nil, fmt.Errorf("JSON body: %w", err)
		}
		found, members, err := seekMember(dec, step.name)
		if err != nil {
			return nil, fmt.Errorf("JSON body: %w", err)
		}
		if !found {
			return insertJSON(body, dec.InputOffset()-1, members, steps[i:], edit)
		}
	}
	old, err := dec.ReadValue()
	if err != nil {
		return nil, fmt.Errorf("JSON body: %w", err)
	}
	end := int(dec.InputOffset())
	start := end - len(old)
	value, err := edit(slices.Clone(old))
	if err != nil {
		return nil, err
	}
	return slices.Concat(body[:start], value, body[end:]), nil
}

// seekMember reads members up to the value of name, or past the end of the
// object.
func seekMember(dec *jsontext.Decoder, name string) (found bool, members int, err error) {
	for dec.PeekKind() != jsontext.KindEndObject {
		tok, err := dec.ReadToken()
		if err != nil {
			return false, members, err
		}
		if tok.String() == name {
			return true, members, nil
		}
		if err := dec.SkipValue(); err != nil {
			return false, members, err
		}
		members++
	}
	_, err = dec.ReadToken()
	return false, members, err
}

// insertJSON puts a new member before the closing brace at offset at.
func insertJSON(body []byte, at int64, members int, steps []placeStep, edit func(jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	value, err := edit(nil)
	if err != nil {
		return nil, err
	}
	for i := len(steps) - 1; i > 0; i-- {
		value = slices.Concat([]byte("{"), appendString(nil, steps[i].name), []byte(":"), value, []byte("}"))
	}
	member := slices.Concat(appendString(nil, steps[0].name), []byte(":"), value)
	if members > 0 {
		member = slices.Concat([]byte(","), member)
	}
	return slices.Concat(body[:at], member, body[at:]), nil
}
