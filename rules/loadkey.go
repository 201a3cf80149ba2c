package rules

import (
	"fmt"
	"regexp"
	"strings"
)

// minKeyLength is the shortest native key that is still unlikely to collide.
const minKeyLength = 20

// nativeKey reads the API's own idempotency key.
func (d *decoder) nativeKey(v value, op *Operation) {
	if !v.Given() {
		return
	}
	m, ok := d.Map(v, levelNativeKey)
	k := &NativeKey{Format: word(d, m.At("format"), "uuid", "uuid", "uuid4", "hex", "token"), where: v.Place()}
	var at value
	for _, in := range []string{"header", "json", "form", "query", "graphql", "aws"} {
		switch {
		case !m.Has(in):
		case at.Given():
			d.Fail("value", m.At(in), "the key is already in "+k.In, "name one place")
		default:
			at, k.In = m.At(in), in
		}
	}
	if ok && !at.Given() {
		d.Fail("missing", v, "native_key names no place", "add header: Idempotency-Key, or json:, form: or query: with a name")
	}
	d.keyShape(m, k)
	k.Window = d.duration(m.At("window"))
	k.Replays = word(d, m.At("replays"), "", ReplaysAll, ReplaysSuccess, ReplaysNone, ReplaysConflict)
	k.Mismatch = word(d, m.At("mismatch"), "", MismatchError, MismatchCached, MismatchExecuted, MismatchSeparate)
	k.WhenPresent = word(d, m.At("when_present"), PresentReplace, PresentReplace, PresentKeepFirst, PresentRefuse)
	if k.at, ok = d.writable(at, k.In); !ok {
		return
	}
	k.Name = at.Value
	if k.In == "header" {
		k.Name = k.at.source
	}
	op.NativeKey = k
	if k.In == "aws" {
		k.at = place{source: "aws.params." + k.Name, root: "aws", steps: []placeStep{{name: "params"}, {name: k.Name}}}
		op.ignored.add(awsPlace(k.at, "json"))
		op.ignored.add(awsPlace(k.at, "form"))
	}
	op.ignored.add(k.at)
	d.argument(at, k.at, op)
}

// keyShapes are the characters and lengths of the formats, as ledger.VendorKey makes them.
var keyShapes = map[string]struct {
	characters string
	length     int
}{
	"uuid": {"0123456789abcdef-", 36}, "uuid4": {"0123456789abcdef-", 36}, "hex": {"0123456789abcdef", 64},
	"token": {"abcdefghijklmnopqrstuvwxyz234567", 52},
}

// keyShape holds the format against what the API takes.
func (d *decoder) keyShape(m fields, k *NativeKey) {
	shape := keyShapes[k.Format]
	k.MaxLength = d.number(m.At("max_length"), minKeyLength, 1<<16)
	if strings.HasPrefix(k.Format, "uuid") && k.MaxLength > 0 && k.MaxLength < shape.length {
		d.Fail("value", m.At("max_length"), "a UUID has 36 characters", "write format: hex or token, which may be cut")
	}
	if k.MaxLength > 0 {
		shape.length = min(shape.length, k.MaxLength)
	}
	if least := d.number(m.At("min_length"), 1, 1<<16); least > shape.length {
		d.Fail("value", m.At("min_length"), fmt.Sprintf("a key of format %s has %d characters here", k.Format, shape.length),
			"write format: hex, which has 64, or correct the lengths")
	}
	set, ok := d.text(m.At("charset"))
	class, err := regexp.Compile("^[" + set + "]*$")
	switch {
	case !ok:
	case err != nil || set[0] == '^' || strings.ContainsAny(set, "[]"):
		d.Fail("value", m.At("charset"), quoted(set)+" is no set of characters",
			"write them as a regular expression does between brackets, such as a-zA-Z0-9_-")
	case !class.MatchString(shape.characters):
		d.Fail("value", m.At("charset"), "a key of format "+k.Format+" has the characters "+shape.characters, "write format: hex or token")
	}
}
