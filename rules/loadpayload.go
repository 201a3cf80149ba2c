package rules

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"
)

// payload reads which differences count.
func (d *decoder) payload(n *yaml.Node, key string, op *Operation) {
	op.ignored, op.minor = &placed{}, &placed{}
	if n == nil {
		return
	}
	m := d.object(n, key, levelPayload)
	for i, item := range d.optional(m["ignore"], join(key, "ignore")) {
		if p, ok := d.place(item, index(join(key, "ignore"), i), "json", "form", "query", "path", "host"); ok {
			op.ignored.add(p)
		}
	}
	for i, item := range d.optional(m["minor"], join(key, "minor")) {
		if p, ok := d.place(item, index(join(key, "minor"), i), "json", "form", "query", "path", "host", "header"); ok {
			op.minor.add(p)
			op.hasMinor = true
		}
	}
	for i, item := range d.optional(m["headers"], join(key, "headers")) {
		k := index(join(key, "headers"), i)
		if name, ok := d.headerName(item, k); ok {
			op.headers = append(op.headers, name)
		}
	}
	slices.Sort(op.headers)
	op.headers = slices.Compact(op.headers)
	d.normalise(m["normalise"], join(key, "normalise"), op)
	if m["compare"] != nil {
		op.compare = d.expr(m["compare"], join(key, "compare"), inCompare)
		d.compareSecret(m["compare"], join(key, "compare"), op)
	}
}

// normalise reads which values are brought into one form before they are compared.
func (d *decoder) normalise(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	d.members(n, key, "normalise", func(name string, at, v *yaml.Node) {
		k := join(key, name)
		var p place
		ok := name == "body"
		if ok {
			p = place{source: name, root: name}
		} else if p, ok = d.place(at, k, "json", "form", "query", "path", "header"); ok && p.root == "header" && !slices.Contains(op.headers, p.steps[0].name) {
			d.fail("place", k, at, "the header field isn't payload", "add it to payload.headers")
			return
		}
		var ways normals
		for _, item := range d.oneOrMore(v, k) {
			if word := d.word(item, k, slices.Sorted(maps.Keys(normalNames))...); word != "" {
				ways |= normalNames[word]
			}
		}
		if !ok || ways == 0 {
			return
		}
		if ways&normalHTML != 0 && ways&normalMarkdown != 0 {
			d.fail("value", k, v, "a text is either HTML or Markdown", "name one of them; Markdown may hold HTML")
		}
		if op.normal == nil {
			op.normal = &normalised{}
		}
		op.normal.add(p, ways)
	})
}

// compareSecret refuses a compare that reads a secret place: what is stored is
// masked, so that two different secrets would look alike.
func (d *decoder) compareSecret(n *yaml.Node, key string, op *Operation) {
	if op.compare == nil {
		return
	}
	reads := expr{}
	for _, r := range op.compare.refs {
		if r.root != "stored" {
			reads.refs = append(reads.refs, r)
		} else if len(r.steps) > 0 {
			reads.refs = append(reads.refs, place{root: r.steps[0].name, steps: r.steps[1:]})
		}
	}
	whole := slices.ContainsFunc(op.compare.refs, func(r place) bool { return r.root == "stored" && len(r.steps) == 0 })
	masked := slices.ContainsFunc(op.secret, func(p place) bool { return p.root != "response" })
	if masked && whole || reads.readsSecret(op.secret) {
		d.fail("secret", key, n, "reads a place that the rule keeps secret, which is masked in what is stored", "compare other places")
	}
}

// volatileHeaders change at every run, or are not the mutation's.
var volatileHeaders = []string{
	"authorization", "proxy-authorization", "traceparent", "tracestate", "date", "host", "connection",
	"content-length", "transfer-encoding", "user-agent", "cookie",
}

// headerName reads the name of a header field that is payload.
func (d *decoder) headerName(n *yaml.Node, key string) (string, bool) {
	s, ok := d.text(n, key)
	if !ok {
		return "", false
	}
	name := strings.ToLower(s)
	switch {
	case !httpguts.ValidHeaderFieldName(s):
		d.fail("value", key, n, quoted(s)+" is no header name", "write a name such as x-request-source")
		return "", false
	case slices.Contains(volatileHeaders, name):
		d.fail("value", key, n, name+" changes from run to run and can't be payload", "leave it out")
		return "", false
	}
	return name, true
}
