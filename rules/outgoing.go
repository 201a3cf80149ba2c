package rules

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

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
	at := op.NativeKey.at
	if at.root != "json" {
		v, ok := s.named(at.root, at.steps[0].name)
		return v, ok && v != "" && s.problem == nil
	}
	v, err := walk(s.json(), at.steps)
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
	if k.at.root == "header" {
		if refusal := o.req.unreadable(k.at.steps[0].name); refusal != nil {
			return refusal
		}
	}
	if k.WhenPresent == PresentRefuse && o.present(k.at) {
		return refuse(ProblemAmbiguous, "the request brings its own "+k.Name+", which this operation does not take; leave it out")
	}
	return o.set(k.at, mu.VendorKey)
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
	_, err := walk(s.json(), at.steps)
	return err == nil
}

// set writes one text to a place.
func (o *outgoing) set(at place, value string) *Refusal {
	switch at.root {
	case "header":
		o.header = maps.Clone(o.header)
		o.header[http.CanonicalHeaderKey(at.steps[0].name)] = []string{value}
		return nil
	case "query":
		p := parsePairs(o.query, "query")
		if p.problem != nil {
			return p.problem
		}
		if p.variant(at.steps[0].name) {
			return refuseVariant("query", at.steps[0].name)
		}
		o.query, o.hasQuery = p.with(at.steps[0].name, value), true
		return nil
	case "form":
		return o.setForm(at, value)
	}
	return o.editBody(at, func(jsontext.Value) (jsontext.Value, error) { return appendString(nil, value), nil })
}

// setForm writes one field of a form.
func (o *outgoing) setForm(at place, value string) *Refusal {
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
	p := parsePairs(raw, "form")
	if p.problem != nil {
		return p.problem
	}
	if p.variant(at.steps[0].name) {
		return refuseVariant("form", at.steps[0].name)
	}
	if c.form == nil {
		o.header = maps.Clone(o.header)
		o.header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	}
	o.body = []byte(p.with(at.steps[0].name, value))
	return nil
}

// editBody changes one place of a JSON body.
func (o *outgoing) editBody(at place, edit func(jsontext.Value) (jsontext.Value, error)) *Refusal {
	c := o.req.read()
	switch {
	case c.problem != nil:
		return c.problem
	case c.jsonProblem != nil:
		return c.jsonProblem
	case c.json == nil:
		return refuse(ProblemIdentity, "the body is no JSON, but the rule writes "+at.source+" into it")
	}
	if name, found := variantIn(c.json, at.steps); found {
		return refuseVariant("JSON body", name)
	}
	body := o.body
	if body == nil {
		body = c.bytes
	}
	changed, err := editJSON(body, at.steps, edit)
	if err != nil {
		return refuse(ProblemIdentity, "the rule can't write "+at.source+" into this body: "+err.Error())
	}
	o.body = changed
	return nil
}

// Unmarked reports whether the marker is left out, since it would make its field longer than max_length. All markers
// have one length.
func (op *Operation) Unmarked(req *Request) bool {
	mk := op.marker
	if mk == nil || mk.max == 0 {
		return false
	}
	field, _ := op.markerText(req, caseMutation()) // Without a value the request is refused.
	if mk.append {
		old, _ := walk(req.read().json, mk.at.steps)
		field = old.text + field
	}
	return mk.bytes && len(field) > mk.max || !mk.bytes && utf8.RuneCountInString(field) > mk.max
}

// markerText is what is written as the marker.
func (op *Operation) markerText(req *Request, mu Mutation) (string, error) {
	if op.marker.text == nil {
		return mu.Marker, nil
	}
	s := op.bind(req)
	s.mutation = &mu
	return op.marker.text.exact(s)
}

// mark writes the marker.
func (o *outgoing) mark(mu Mutation) *Refusal {
	mk := o.op.marker
	switch {
	case o.op.Unmarked(o.req) != mu.Unmarked:
		return refuse(ProblemIdentity, "the record says otherwise of whether the marker has room; nothing is sent")
	case mk == nil || mu.Unmarked:
		return nil
	case mu.Marker == "":
		return refuse(ProblemIdentity, "there is no marker; nothing is sent without it")
	}
	value, err := o.op.markerText(o.req, mu)
	if err != nil {
		// The error may quote a value.
		return refuse(ProblemIdentity, "the marker's text has no value in this request: "+mk.text.source)
	}
	if !mk.append {
		return o.set(mk.at, value)
	}
	return o.editBody(mk.at, func(old jsontext.Value) (jsontext.Value, error) { return appendText(old, value) })
}

// appendText appends to a JSON string; nothing and null count as empty.
func appendText(old jsontext.Value, value string) (jsontext.Value, error) {
	if len(old) == 0 || old.Kind() == jsontext.KindNull {
		return appendString(nil, value), nil
	}
	if old.Kind() != jsontext.KindString {
		return nil, errNoText
	}
	// Inside the quotes the old text keeps its spelling.
	return slices.Concat(old[:len(old)-1], appendString(nil, value)[1:]), nil
}

// digestHeaders say something about the very bytes of the body.
var digestHeaders = []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "X-Amz-Content-Sha256"}

// request is the changed request.
func (o *outgoing) request() (*Request, *Refusal) {
	next := o.req.copy()
	next.Header, next.rawQuery, next.hasQuery = o.header, o.query, o.hasQuery
	if o.body == nil {
		return next, nil
	}
	for _, name := range digestHeaders {
		if len(o.header[name]) > 0 {
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
var errNoObject = errors.New("the JSON body has no object at that place")

// errNoText is a place to append to that holds no text.
var errNoText = errors.New("there is something other than text at that place")

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
