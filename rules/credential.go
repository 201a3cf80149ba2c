package rules

import (
	"maps"
	"slices"
	"strings"
)

// credentialHeaders usually hold credentials. They are never stored. What reads them is treated like what reads a
// secret place.
var credentialHeaders = []string{
	"Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "Api-Key", "Apikey", "X-Auth-Token",
	"X-Access-Token", "X-Amz-Security-Token", "X-Goog-Api-Key", "X-Shopify-Access-Token", "Private-Token",
}

// plainByte is a byte of a field name as servers compare it: in lower case, and with "-" for "_". Servers behind CGI
// and its kin can't tell those two apart.
func plainByte(c byte) byte {
	switch {
	case c == '_':
		return '-'
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return c
}

// sameField reports whether two names can be the same field to a server.
func sameField(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if plainByte(a[i]) != plainByte(b[i]) {
			return false
		}
	}
	return true
}

// plainField is the one spelling of all names that are the same field.
func plainField(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// IsCredential reports whether a field holds a credential. It is one that usually does, or the one that the operator
// configured for the connector.
func (op *Operation) IsCredential(field string) bool {
	return op.Connector != nil && op.Connector.credentialField != "" && sameField(op.Connector.credentialField, field) ||
		slices.ContainsFunc(credentialHeaders, func(name string) bool { return sameField(name, field) })
}

// HidesField reports whether a field of the request is masked in what is stored.
func (op *Operation) HidesField(field string) bool {
	return op.IsCredential(field) || op.secretField(field) || NamedLikeCredential(field) && !op.named[plainField(field)]
}

// secretField reports whether a field of the request is a secret place.
func (op *Operation) secretField(field string) bool {
	return slices.ContainsFunc(op.secret, func(p place) bool {
		name, ok := p.name()
		return ok && p.root == "header" && sameField(name, field)
	})
}

// hidesQuery reports whether a member of the query is masked in what is stored.
func (op *Operation) hidesQuery(name string) bool {
	return slices.ContainsFunc(op.secret, func(p place) bool { return p.root == "query" && p.steps[0].name == name }) ||
		NamedLikeCredential(name) && !op.named[queryMember+name] && name != secretShown
}

// fieldNames are header fields in their plain spelling, and members of the query after "?".
type fieldNames map[string]bool

const queryMember = "?"

// add puts in what is named below a root. Only header and query count.
func (f fieldNames) add(root string, names ...string) {
	for _, name := range names {
		switch root {
		case "header":
			f[plainField(name)] = true
		case "query":
			f[queryMember+name] = true
		}
	}
}

// fieldsNamed are the fields and query members of the request that the rule reads, compares or writes. What it only
// ignores is none of them, nor what the key only has a digest of.
func (op *Operation) fieldsNamed() fieldNames {
	out := fieldNames{}
	out.add("header", op.headers...)
	telling := op.telling()
	for _, e := range append(op.exprs(), op.Connector.account) {
		digested := slices.ContainsFunc(telling, func(t namedExpr) bool { return t.expr == e })
		for root, read := range map[string]map[string]bool{"header": e.fields("header"), "query": e.fields("query", "query_all")} {
			maps.DeleteFunc(read, func(_ string, shown bool) bool { return digested && !shown })
			out.add(root, slices.Collect(maps.Keys(read))...)
		}
	}
	if op.minor != nil {
		for root, names := range op.minor.names {
			out.add(root, slices.Collect(maps.Keys(names))...)
		}
	}
	if op.collations != nil {
		for root, names := range op.collations.names {
			out.add(root, slices.Collect(maps.Keys(names))...)
		}
	}
	var written []place
	if op.NativeKey != nil {
		written = append(written, op.NativeKey.at)
	}
	for _, mk := range op.markers {
		written = append(written, mk.at)
	}
	for _, at := range written {
		if name, ok := at.name(); ok {
			out.add(at.root, name)
		}
	}
	return out
}

// fields are the names below these roots, of the request and of the stored one, that an
// expression names. The value is false where the expression's own doesn't show it.
func (e *expr) fields(roots ...string) map[string]bool {
	if e == nil {
		return nil
	}
	out := map[string]bool{}
	for _, r := range e.refs {
		root, steps := r.root, r.steps
		if root == "stored" && len(steps) > 0 {
			root, steps = steps[0].name, steps[1:]
		}
		if slices.Contains(roots, root) && len(steps) > 0 && steps[0].kind == stepName {
			out[steps[0].name] = out[steps[0].name] || !r.veiled
		}
	}
	return out
}

// credentialOf is the first credential that an expression names, in order; shown leaves out
// those that its value doesn't show.
func (op *Operation) credentialOf(e *expr, shown bool) (field string, found bool) {
	for name, inClear := range e.fields("header") {
		if op.IsCredential(name) && (inClear || !shown) && (!found || name < field) {
			field, found = name, true
		}
	}
	return field, found
}

// hides reports whether the value of an expression must not be shown or stored. It reads a secret place or a
// credential, or any field or query member there is.
func (op *Operation) hides(e *expr) bool {
	if _, found := op.credentialOf(e, true); found || e.readsSecret(op.secret) {
		return true
	}
	return e.showsAny("header", "query", "query_all")
}

// showsAny reports whether the value of an expression may show anything below one of these roots of the request. It
// reads all of it, or what isn't named in the expression.
func (e *expr) showsAny(roots ...string) bool {
	return slices.ContainsFunc(e.refs, func(r place) bool {
		return slices.Contains(roots, r.root) && !r.veiled && (len(r.steps) == 0 || r.steps[0].kind != stepName)
	})
}

// credentials refuses what would store a credential in clear. It isn't hashed in silence, as secret places are. Records
// that were made before would have another key, and be made again.
func (d *decoder) credentials(op *Operation) {
	if op.Effect != EffectMutation {
		return
	}
	for _, e := range op.telling() {
		d.inClear(e, op)
	}
	if op.compare != nil {
		if name, found := op.credentialOf(op.compare, false); found {
			d.mistaken("secret", op.compare.at, "reads the header field "+name+", a credential, which is masked in what is stored", "compare other places")
		}
	}
	d.asksByCredential(op)
}

// inClear refuses an expression of the key that shows a credential. What reads a secret place is
// hashed.
func (d *decoder) inClear(e namedExpr, op *Operation) {
	told := func(f Finding) bool { return f.Code == "credential" && f.Key == e.at.Key } // the account is the same for every operation
	if e.readsSecret(op.secret) || slices.ContainsFunc(d.findings, told) {
		return
	}
	if name, found := op.credentialOf(e.expr, true); found {
		d.mistaken("credential", e.at, "the "+e.name+" would store the header field "+name+", a credential, in clear",
			"write sha256(header['"+name+"']), or add header['"+name+"'] under secret: of the operation, so that a digest is kept")
	} else if e.showsAny("header") {
		d.mistaken("credential", e.at, "the "+e.name+" may store any header field in clear, a credential among them: "+quoted(e.source)+" doesn't say which",
			"name the field, as in header['x-request-kind'], or write sha256() of it")
	}
}

// asksByCredential refuses what asks by a credential of the script, which is not stored. Where
// a step keeps a value, that would be.
func (d *decoder) asksByCredential(op *Operation) {
	report := func(code string, list []*expr, shown bool, problem, fix string) {
		for _, e := range list {
			if name, found := op.credentialOf(e, shown); found {
				d.mistaken(code, e.at, quoted(e.source)+" reads the header field "+name+", a credential, "+problem, fix)
			}
		}
	}
	const stored, leave = "which is not stored", "leave it out: the configured credential is added to what keep-proxy asks and sends"
	for _, p := range slices.Concat(op.probes(), op.undoing().probes()) {
		report("probe-secret", p.exprs(), false, stored, leave)
	}
	report("watch-secret", op.Watch.exprs(), false, stored, leave)
	if op.Undo != nil {
		report("undo-secret", op.Undo.ask.exprs(), false, stored, leave)
	}
	for _, step := range op.Send.steps() {
		for _, e := range step.keep {
			report("send-secret", []*expr{e.expr}, true, "and what is kept is stored", "keep something that is not secret")
		}
	}
}

// undoing is the operation by which an effect is taken back; an empty one where there is none.
func (op *Operation) undoing() *Operation {
	if op.Undo == nil {
		return &Operation{}
	}
	return op.Undo.Operation
}
