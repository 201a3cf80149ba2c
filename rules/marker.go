package rules

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/http/httpguts"
)

// marker is one write of our marker into what is sent. Its place is in a JSON body, a form or the query.
type marker struct {
	at     place
	append bool
	text   *text // nil: the marker alone
	// value is JSON: an object that is merged with what is there, or an element that is appended to a list. Nil for text.
	// Below a form or the query the place holds JSON text.
	value *template
	// leaves are what is written, each with the names below the place that lead to it.
	leaves []leaf
	// max is the longest that the field may be: in elements of a list, else in characters or in bytes. 0 for any length.
	max   int
	bytes bool
}

// leaf is a value in a template that is no map. A text has none.
type leaf struct {
	steps []placeStep
	value *template
	// marks says that it holds the marker.
	marks bool
}

// leavesBelow are the leaves of a template.
func (t *template) leavesBelow(steps []placeStep) (out []leaf) {
	if t.expr != nil || t.value.kind != jsonObject || len(t.items) == 0 {
		return []leaf{{steps, t, marks(t.exprs())}}
	}
	for i, item := range t.items {
		out = append(out, item.leavesBelow(append(slices.Clone(steps), placeStep{name: t.names[i]}))...)
	}
	return out
}

// marks reports whether one of the expressions reads the marker.
func marks(list []*expr) bool {
	return slices.ContainsFunc(list, func(e *expr) bool { return e.readsName("mutation", "marker") })
}

// sets are the places where the marker replaces what the script wrote.
func (mk *marker) sets() (out []place) {
	for _, one := range mk.leaves {
		if one.marks && !mk.append {
			at := place{source: mk.at.source, root: mk.at.root, steps: slices.Concat(mk.at.steps, one.steps)}
			for _, step := range one.steps {
				at.source = placeName(at.source, step.name)
			}
			out = append(out, at)
		}
	}
	return out
}

// lastName is the innermost name of the place: keep_id of metadata.keep_id and of
// metadata[keep_id].
func (p place) lastName() string {
	if len(p.steps) == 0 {
		return ""
	}
	name := p.steps[len(p.steps)-1].name
	if i := strings.LastIndexByte(name, '['); i >= 0 && strings.HasSuffix(name, "]") {
		return name[i+1 : len(name)-1]
	}
	return name
}

// fitting are the writes that are made into this request: of several those whose kind of body it has. With none of them
// nobody could find what the request made.
func (op *Operation) fitting(req *Request) ([]*marker, *Refusal) {
	if len(op.markers) < 2 {
		return op.markers, nil
	}
	c := req.read()
	if c.problem != nil {
		return nil, c.problem
	}
	isJSON := c.json != nil || c.jsonProblem != nil
	isForm := !isJSON && (c.form != nil ||
		len(c.bytes) == 0 && !slices.ContainsFunc(op.markers, func(mk *marker) bool { return mk.at.root == "query" }))
	out := slices.DeleteFunc(slices.Clone(op.markers), func(mk *marker) bool {
		return mk.at.root == "json" && !isJSON || mk.at.root == "form" && !isForm
	})
	if len(out) == 0 {
		return nil, refuse(ProblemIdentity, "the body is of a kind into which the rule writes no marker; send JSON, or application/x-www-form-urlencoded")
	}
	return out, nil
}

// Unmarked reports whether the markers are left out: one would make its field longer than max_length, or the parameter
// that names their place is empty. All markers have one length.
func (op *Operation) Unmarked(req *Request) bool {
	if op.unmarkable || !slices.ContainsFunc(op.markers, func(mk *marker) bool { return mk.max > 0 }) {
		return op.unmarkable
	}
	writes, _ := op.fitting(req) // What doesn't fit is refused.
	return slices.ContainsFunc(writes, func(mk *marker) bool { return mk.max > 0 && mk.overflows(op.marking(req, caseMutation())) })
}

// overflows reports whether the field would be longer than it may be.
func (mk *marker) overflows(s *scope) bool {
	old := mk.old(s)
	if mk.value != nil {
		return old.kind == jsonArray && len(old.items) >= mk.max
	}
	made, _, _ := mk.made(leaf{}, s) // Without a value the request is refused.
	if mk.append {
		made.text = old.text + made.text
	}
	return mk.bytes && len(made.text) > mk.max || !mk.bytes && utf8.RuneCountInString(made.text) > mk.max
}

// old is what the script wrote at the place; null for nothing.
func (mk *marker) old(s *scope) jsonValue {
	if mk.at.root == "json" || mk.at.root == "graphql" {
		v, _ := walk(s.tree(mk.at.root), mk.at.steps)
		return v
	}
	text, _ := s.named(mk.at.root, mk.at.steps[0].name)
	if mk.value == nil {
		return stringValue(text)
	}
	if v, err := parseJSON([]byte(text)); err == nil {
		return *v
	}
	return jsonValue{}
}

// marking is what the marker's expressions read.
func (op *Operation) marking(req *Request, mu Mutation) *scope {
	s := op.bind(req)
	s.mutation = &mu
	return s
}

// made is what is written for a leaf. Without a value of its own that is the marker's text.
func (mk *marker) made(one leaf, s *scope) (v jsonValue, present bool, err error) {
	switch {
	case one.value != nil:
		return one.value.build(s)
	case mk.text == nil:
		return stringValue(s.mutation.Marker), true, nil
	}
	words, err := mk.text.exact(s)
	return stringValue(words), err == nil, err
}

// mark writes the markers.
func (o *outgoing) mark(mu Mutation) *Refusal {
	switch {
	case o.op.Unmarked(o.req) != mu.Unmarked:
		return refuse(ProblemIdentity, "the record says otherwise of whether the marker has room; nothing is sent")
	case len(o.op.markers) == 0 || mu.Unmarked:
		return nil
	case mu.Marker == "":
		return refuse(ProblemIdentity, "there is no marker; nothing is sent without it")
	}
	writes, refusal := o.op.fitting(o.req)
	for _, mk := range writes {
		if refusal == nil {
			refusal = o.write(mk, o.op.marking(o.req, mu))
		}
	}
	return refusal
}

// write makes one write.
func (o *outgoing) write(mk *marker, s *scope) *Refusal {
	edits, refusal := mk.edits(s)
	switch {
	case refusal != nil:
		return refusal
	case mk.at.root == "json" || mk.at.root == "graphql":
		return o.editBody(mk.at, edits...)
	case mk.at.root == "header":
		v, _, err := mk.made(mk.leaves[0], s)
		if err != nil || !httpguts.ValidHeaderFieldValue(v.text) {
			return refuse(ProblemIdentity, "the marker's text has no value that a header field can carry")
		}
		return o.set(mk.at, v.text)
	}
	return o.setPair(mk.at, func(p *pairs) (string, *Refusal) { return mk.intoField(p, s, edits) })
}

// intoField is the new text of a form's field, or of a name of the query. A text is edited as a JSON string.
func (mk *marker) intoField(p *pairs, s *scope, edits []edit) (string, *Refusal) {
	name := mk.at.steps[0].name
	old, there := s.one(p.values(name), mk.at.root, name)
	if refusal := s.take(); refusal != nil && (mk.append || mk.value != nil) {
		return "", refusal
	}
	switch {
	case mk.value == nil:
		old = string(appendString(nil, old))
	case !there && mk.append:
		old = "[]"
	case !there:
		old = "{}"
	}
	parsed, err := parseJSON([]byte(old))
	if err != nil {
		return "", refuse(ProblemIdentity, "the rule writes into the JSON text "+mk.at.where()+", which is none that can be read: "+err.Error())
	}
	changed, refusal := edited([]byte(old), parsed, mk.at, nil, edits)
	if v, err := parseJSON(changed); mk.value == nil && err == nil {
		return v.text, refusal
	}
	return string(changed), refusal
}

// edit is one change of a JSON text: names that lead to a value, and what becomes of it. The function gets the value that
// is there, nil for none.
type edit struct {
	steps  []placeStep
	change func(old jsontext.Value) (jsontext.Value, error)
}

// edited makes changes below a place of a JSON text, one after the other. The value v is the text, parsed.
func edited(text []byte, v *jsonValue, at place, steps []placeStep, edits []edit) ([]byte, *Refusal) {
	for _, e := range edits {
		to := slices.Concat(steps, e.steps)
		if name, found := variantIn(v, to); found {
			return nil, refuseVariant("JSON body", name)
		}
		changed, err := editJSON(text, to, e.change)
		if err != nil {
			return nil, refuse(ProblemIdentity, "the rule can't write "+at.source+" into this body: "+err.Error())
		}
		text = changed
	}
	return text, nil
}

// edits are the changes of JSON by which the marker is written. A merged value sets what holds the marker. The rest of it
// is written only where the script wrote nothing.
func (mk *marker) edits(s *scope) (out []edit, refusal *Refusal) {
	for _, one := range mk.leaves {
		v, present, err := mk.made(one, s)
		switch {
		case err != nil || one.marks && !present:
			// The error may quote a value.
			return nil, refuse(ProblemIdentity, "the marker's text or value has no value in this request")
		case !present:
			continue
		}
		made := jsontext.Value(appendMasked(nil, &v, nil))
		out = append(out, edit{one.steps, func(old jsontext.Value) (jsontext.Value, error) {
			switch {
			case mk.append:
				return appended(old, made, mk.value != nil)
			case old != nil && !one.marks:
				return old, nil
			}
			return made, nil
		}})
	}
	return out, nil
}

// appended appends to a JSON string or list; nothing and null count as empty.
func appended(old, more jsontext.Value, list bool) (jsontext.Value, error) {
	switch none := len(old) == 0 || old.Kind() == jsontext.KindNull; {
	case none && list:
		return slices.Concat([]byte("["), more, []byte("]")), nil
	case none:
		return more, nil
	case list != (old.Kind() == jsontext.KindBeginArray) || !list && old.Kind() != jsontext.KindString:
		return nil, errors.New("there is something other than a " + map[bool]string{true: "list", false: "text"}[list] + " at that place")
	}
	// The old text and the old elements keep their spelling.
	begun := slices.Clone(old[:len(old)-1])
	if !list {
		return append(begun, more[1:]...), nil
	}
	if begun = bytes.TrimRight(begun, " \t\r\n"); len(begun) > 1 {
		begun = append(begun, ',')
	}
	return slices.Concat(begun, more, []byte("]")), nil
}
