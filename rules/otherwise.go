package rules

import (
	"strings"
	"time"
)

// loosely are the ways in which an API may write a value that it took over.
const loosely = collateWhitespace | collateCase | collateNumbers

// otherwise names a field of the request's body that the object has with another value; "" for none. Then the object is
// somebody else's, or the API changed the value. The object's own id and time don't count, nor what is no payload.
func (a *Asking) otherwise(found *jsonValue) string {
	op, c := a.whole.op, a.scope.req.read()
	if v := op.comparedGraphQL(c); v != nil {
		return a.otherwiseArg(v, found)
	}
	if op.comparesJSON(c) {
		return a.otherwiseIn("json", c.json, found, treesOf(op))
	}
	if c.form == nil || c.form.problem != nil {
		return ""
	}
	for _, one := range c.form.list {
		asked := stringValue(one.value)
		v, has := found.member(one.name)
		counts := has && !a.ownField(one.name) && !op.insignificant.has("form", one.name) && len(c.form.values(one.name)) == 1
		if counts && (v.odd > 0 || !alikeLoosely(&asked, v, op.collations.of("form", one.name))) {
			return placeName("form", one.name)
		}
	}
	return ""
}

// otherwiseArg is otherwise for the arguments of a mutation of GraphQL, and the members of each, as of input.
func (a *Asking) otherwiseArg(compared, found *jsonValue) string {
	args, _ := compared.member("args")
	below, _ := treesOf(a.whole.op).member("args", args)
	out := a.otherwiseIn("graphql.args", args, found, below)
	for i, name := range args.names {
		if sub, gone := below.member(name, &args.items[i]); out == "" && !gone && args.items[i].kind == jsonObject {
			out = a.otherwiseIn(placeName("graphql.args", name), &args.items[i], found, sub)
		}
	}
	return out
}

// otherwiseIn is otherwise for two objects at a place.
func (a *Asking) otherwiseIn(at string, asked, found *jsonValue, t trees) string {
	for i, name := range asked.names {
		one := &asked.items[i]
		v, has := found.member(name)
		sub, gone := t.member(name, one)
		switch {
		case !has, gone, sub.isMinor, (at == "json" || strings.HasPrefix(at, "graphql.args")) && a.ownField(name):
		case v.odd == oddItself:
			return placeName(at, name)
		case one.kind == jsonObject:
			if below := a.otherwiseIn(placeName(at, name), one, v, sub); below != "" {
				return below
			}
		case !alikeLoosely(one, v, sub.collation.ownWays()):
			return placeName(at, name)
		}
	}
	return ""
}

// ownField reports whether the API chooses the field: the id or the time of creation.
func (a *Asking) ownField(name string) bool {
	return a.probe.id.readsName("found", name) || a.probe.created.readsName("found", name)
}

// alikeLoosely reports whether two values are equal but for how an API may write them. What is null, masked, a list or
// an object can't be compared.
func alikeLoosely(asked, found *jsonValue, ways collation) bool {
	for _, v := range []*jsonValue{asked, found} {
		if v.kind == jsonNull || v.kind == jsonArray || v.kind == jsonObject || strings.Contains(v.text, secretShown) {
			return true
		}
	}
	x, y := scalarText(asked), scalarText(found)
	if at, err := time.Parse(time.RFC3339, x); err == nil {
		other, err := time.Parse(time.RFC3339, y)
		return err == nil && at.Equal(other)
	}
	return (ways | loosely).text(x) == (ways | loosely).text(y)
}
