package rules

import (
	"slices"
	"strings"
)

// Credentials are what a request holds that is masked where it is stored. An API may say it again in its answer. A
// value may have the scheme of an Authorization field before it. What a rule calls secret is among them if it is text.
func (op *Operation) Credentials(req *Request) []string {
	var out []string
	for name, values := range req.Header {
		if !op.HidesField(name) {
			continue
		}
		for _, v := range values {
			out = append(out, v)
			out = append(out, parameters(v, sameField(name, "Cookie"))...)
		}
	}
	query := parsePairs(req.rawQuery, "query")
	out = append(out, op.hiddenQuery(&query)...)
	if len(op.secret) > 0 {
		out = append(out, op.secretTexts(req)...)
	}
	for i := range out {
		out[i] = strings.Clone(out[i]) // It may be a part of a long body.
	}
	return out
}

// parameters are the values within a field: all of a cookie, else those with the name of a credential.
func parameters(field string, all bool) (out []string) {
	for piece := range strings.FieldsFuncSeq(field, func(c rune) bool { return c == ',' || c == ';' || c == ' ' }) {
		if name, value, ok := strings.Cut(piece, "="); ok && (all || NamedLikeCredential(name)) {
			out = append(out, strings.Trim(value, `"`))
		}
	}
	return out
}

// secretTexts are the texts at the secret places of path and body.
func (op *Operation) secretTexts(req *Request) (out []string) {
	for name, value := range op.bind(req).path {
		if op.secretVariable(name) {
			out = append(out, value)
		}
	}
	tree, names := op.secretBody("")
	if tree == nil && len(names) == 0 {
		return out
	}
	c := req.read()
	if c.json != nil {
		out = tree.texts(c.json, out)
	}
	if c.form != nil {
		for _, one := range c.form.list {
			if slices.Contains(names, one.name) {
				out = append(out, one.value)
			}
		}
	}
	return out
}

// texts appends the texts that are hidden in v.
func (m *mask) texts(v *jsonValue, out []string) []string {
	m, whole := m.meeting(v)
	if whole && v.kind == jsonString {
		return append(out, v.text)
	}
	for i := range v.items {
		var sub *mask
		if v.kind == jsonObject {
			sub, _ = m.member(v.names[i], &v.items[i])
		} else {
			sub, _ = m.element(i, &v.items[i])
		}
		if sub != nil {
			out = sub.texts(&v.items[i], out)
		}
	}
	return out
}
