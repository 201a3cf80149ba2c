package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// markers reads where the mutation leaves its mark: one write, or a list of them.
func (d *decoder) markers(v value, op *Operation) {
	if v.Is(yaml.SequenceNode) && len(v.Content) == 0 {
		d.Fail("missing", v, "marker is empty", "add json:, form:, query: or append: with one place, or leave the key out")
	}
	for _, item := range d.OneOrMore(v) {
		if mk := d.marker(item, op); mk != nil {
			op.markers = append(op.markers, mk)
			d.replaces(item, mk, op)
		}
	}
	if op.Connector.service != "" && !op.Connector.signs {
		op.markers = nil // The request is signed, and nothing can be written into it.
	}
	op.unmarkable = v.Given() && len(op.markers) == 0
}

// marker reads one write; nil without its place.
func (d *decoder) marker(v value, op *Operation) *marker {
	m, ok := d.Map(v, levelMarker)
	if !ok {
		return nil
	}
	mk, found, placed := &marker{append: m.Has("append"), leaves: []leaf{{marks: true}}}, 0, false
	for _, in := range []string{"header", "json", "form", "query", "graphql", "append"} {
		at := m.At(in)
		if !at.Given() {
			continue
		}
		found++
		if in == "append" {
			mk.at, placed = d.place(at, "json", "form", "query", "graphql")
		} else {
			mk.at, placed = d.writable(at, in)
		}
		if placed {
			d.argument(at, mk.at, op)
		}
	}
	if found != 1 {
		d.Fail("value", v, "must name exactly one place", "write json:, form:, query: or append: with one place")
	}
	if slices.ContainsFunc(mk.at.steps, func(s placeStep) bool { return s.kind != stepName }) {
		d.mistaken("place", m.At("append"), "is no one place, but one in a list", "write names joined by dots, such as json.body")
	}
	mk.text = d.textWith(m.At("text"), inRecord)
	d.markerValue(m, mk)
	d.markerRoom(m.At("max_length"), mk)
	if mk.append && !m.Has("text") && !m.Has("value") {
		d.Fail("missing", m.At("text"), "append needs a text", `add text: "… {mutation.marker} …", or value: with the element of a list`)
	}
	if mk.text != nil && !marks(mk.text.exprs()) {
		d.Fail("value", m.At("text"), "does not hold the marker", "put {mutation.marker} into it")
	}
	if !placed {
		return nil
	}
	return mk
}

// markerValue reads the JSON that is merged or appended.
func (d *decoder) markerValue(m fields, mk *marker) {
	v := m.At("value")
	mk.value = d.template(v, inRecord)
	switch {
	case mk.value == nil:
		return
	case mk.at.root == "header":
		d.Fail("value", v, "a header field holds a text", "write text:, or leave it out")
	case m.Has("text"):
		d.Fail("value", v, "the marker is either a text or a value", "keep one of text and value")
	case !mk.append && (mk.value.expr != nil || mk.value.value.kind != jsonObject):
		d.Fail("type", v, "is no map: it is merged into an object", "write name: value lines below it, or text: for a text")
	case !marks(mk.value.exprs()):
		d.Fail("value", v, "does not hold the marker", "put {cel: mutation.marker} into it")
	}
	if mk.leaves[0].value = mk.value; !mk.append {
		mk.leaves = mk.value.leavesBelow(nil)
	}
}

// markerRoom reads how long the field may be.
func (d *decoder) markerRoom(most value, mk *marker) {
	switch {
	case mk.value != nil && mk.append:
		mk.max = d.number(most, 1, 1<<30)
	case mk.value != nil && most.Given():
		d.Fail("no-effect", most, "max_length says nothing of a merged value", "leave it out")
	case most.Given() && strings.HasSuffix(most.Value, "B"):
		mk.max, mk.bytes = int(d.size(most)), true
	default:
		mk.max = d.number(most, len(CaseMarker), 1<<30)
	}
}

// replaces notes where the marker replaces what the script wrote. That is no payload. Where identity is read, the API
// would no longer get what says which mutation it is.
func (d *decoder) replaces(v value, mk *marker, op *Operation) {
	for _, at := range mk.sets() {
		if at.root != "json" && mk.value != nil {
			op.ignored.addText(at)
			continue
		}
		op.ignored.add(at)
		if reader := op.identityReads(at); reader != "" {
			d.mistaken("replaced", v, "the marker goes to "+at.where()+", which "+reader+
				" reads: the API would get it in place of what the script writes there",
				"write the marker where the script writes nothing, such as metadata.keep_id")
		}
	}
}
