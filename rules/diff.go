package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what is kept of a difference: it is stored with its record, and read by
// people.
const (
	maxChanges = 20
	maxValue   = 120
	maxPlace   = 200
)

// ChangeKind is what happened to a place.
type ChangeKind string

// Kinds of changes.
const (
	Changed ChangeKind = "changed"
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
)

// Change is one place in which two payloads differ. Values are as JSON writes them,
// shortened around the difference; secrets are masked.
type Change struct {
	// Place is written as in a rule, such as json.items[2].price; a line of a text
	// follows as " line 3".
	Place  string
	Kind   ChangeKind
	Stored string
	Asked  string
	// Likeness is what this change alone would be.
	Likeness Likeness
}

// difference collects what differs between two requests.
func (op *Operation) difference(stored, asked *scope) Comparison {
	d := &differ{op: op}
	d.named("method", stored.req.Method, asked.req.Method, true, true, Significant)
	for _, root := range []string{"path", "host"} {
		a, b := stored.path, asked.path
		if root == "host" {
			a, b = stored.host, asked.host
		}
		for _, name := range union(a, b) {
			if !op.identifiesWhole(root, name) {
				_, inA := a[name]
				_, inB := b[name]
				d.place(root, name, a[name], b[name], inA, inB)
			}
		}
	}
	d.pairs("query", op.ignored.texted("query", stored.payloadQuery()), op.ignored.texted("query", asked.payloadQuery()))
	for _, name := range op.headers {
		a, b := headerValues(stored.req.Header, name), headerValues(asked.req.Header, name)
		d.place("header", name, strings.Join(a, ", "), strings.Join(b, ", "), len(a) > 0, len(b) > 0)
	}
	if x, y := op.viewed(stored), op.viewed(asked); x != nil && y != nil {
		d.pairs(op.view, x, y)
		if a, b := stored.req.read(), asked.req.read(); op.comparesJSON(a) && op.comparesJSON(b) {
			d.json("json", a.json, b.json, treesOf(op))
		}
	} else {
		d.body(stored.req.read(), asked.req.read())
	}
	return Comparison{Changes: d.changes, More: d.more}
}

// union are the names of two maps, in order.
func union(a, b map[string]string) []string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// differ is one comparison at work.
type differ struct {
	op      *Operation
	changes []Change
	more    bool
}

// full reports whether no more changes are kept.
func (d *differ) full() bool { return d.more }

func (d *differ) add(c Change) {
	if len(d.changes) == maxChanges {
		d.more = true
		return
	}
	c.Place = shorten(c.Place, maxPlace)
	d.changes = append(d.changes, c)
}

// named notes a place that holds one text.
func (d *differ) named(place, a, b string, inA, inB bool, weight Likeness) {
	switch {
	case inA && inB && a == b, !inA && !inB:
	case !inA:
		d.add(Change{Place: place, Kind: Added, Asked: shownText(b), Likeness: weight})
	case !inB:
		d.add(Change{Place: place, Kind: Removed, Stored: shownText(a), Likeness: weight})
	default:
		d.texts(place, a, b, weight)
	}
}

// place notes a named place below a root, unless it is ignored.
func (d *differ) place(root, name, a, b string, inA, inB bool) {
	if d.op.ignored.has(root, name) {
		return
	}
	weight := Significant
	ways := d.op.collations.of(root, name)
	switch {
	case inA == inB && ways.text(a) == ways.text(b):
		weight = Equivalent
	case d.op.minor.has(root, name):
		weight = Minor
	}
	d.named(placeName(root, name), a, b, inA, inB, weight)
}

// pairs notes the differences of a query or a form.
func (d *differ) pairs(root string, a, b *pairs) {
	if a.problem != nil || b.problem != nil {
		d.named(root, a.raw, b.raw, true, true, Significant)
		return
	}
	var names []string
	for _, list := range [][]pair{a.list, b.list} {
		for _, one := range list {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if d.full() {
			return
		}
		x, y := a.values(name), b.values(name)
		if len(x) <= 1 && len(y) <= 1 {
			d.place(root, name, strings.Join(x, ""), strings.Join(y, ""), len(x) > 0, len(y) > 0)
			continue
		}
		d.repeated(root, name, x, y)
	}
	d.regrouped(root, a, b)
}

// regrouped notes that places in lists are in another order, where both requests have the same places. By their order
// they may belong to other elements (see [listName]).
func (d *differ) regrouped(root string, a, b *pairs) {
	order := func(p *pairs, minor bool) (out []string) {
		for _, one := range p.sorted() {
			placed := listName(one.name) != one.name && d.op.collations.of(root, one.name)&collateUnordered == 0
			if placed && !d.op.ignored.has(root, one.name) && (minor || !d.op.minor.has(root, one.name)) {
				out = append(out, one.name)
			}
		}
		return out
	}
	x, y := order(a, true), order(b, true)
	if slices.Equal(x, y) || !slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))) {
		return
	}
	weight := Significant
	if slices.Equal(order(a, false), order(b, false)) {
		weight = Minor
	}
	d.add(Change{Place: root, Kind: Changed, Stored: shownList(x), Asked: shownList(y), Likeness: weight})
}

// repeated notes a name that one of the two has several times.
func (d *differ) repeated(root, name string, x, y []string) {
	if d.op.ignored.has(root, name) || slices.Equal(x, y) {
		return
	}
	weight := Significant
	one, other := d.op.collations.pairs(root, pairsOf(name, x)), d.op.collations.pairs(root, pairsOf(name, y))
	switch {
	case slices.Equal(one, other):
		weight = Equivalent
	case d.op.minor.has(root, name):
		weight = Minor
	}
	d.add(Change{Place: placeName(root, name), Kind: Changed, Stored: shownList(x), Asked: shownList(y), Likeness: weight})
}

func pairsOf(name string, values []string) []pair {
	out := make([]pair, len(values))
	for i, v := range values {
		out[i] = pair{name, v}
	}
	return out
}

func shownList(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = shownText(v)
	}
	return shorten("["+strings.Join(quoted, ", ")+"]", maxValue)
}

// body notes the differences of two bodies.
func (d *differ) body(a, b *content) {
	kindA, kindB := d.op.kindOf(a), d.op.kindOf(b)
	bytesA, bytesB := a.judged(), b.judged()
	switch {
	case kindA != kindB:
		d.add(Change{Place: "body", Kind: Changed, Stored: kindA, Asked: kindB})
	case kindA == "GraphQL":
		d.json("graphql", d.op.comparedGraphQL(a), d.op.comparedGraphQL(b), treesOf(d.op))
	case kindA == "JSON":
		d.json("json", a.json, b.json, treesOf(d.op))
	case kindA == "a form":
		d.pairs("form", d.op.ignored.texted("form", a.form), d.op.ignored.texted("form", b.form))
	case string(bytesA) == string(bytesB):
	case kindA == "text":
		weight, ways := Significant, collation(0)
		if d.op.collations != nil {
			ways = d.op.collations.body
		}
		if ways != 0 && ways.text(string(bytesA)) == ways.text(string(bytesB)) {
			weight = Equivalent
		}
		d.texts("body", string(bytesA), string(bytesB), weight)
	default:
		d.add(Change{Place: "body", Kind: Changed, Stored: shownBytes(bytesA), Asked: shownBytes(bytesB)})
	}
}

// kindOf says what a body is, for people.
func (op *Operation) kindOf(c *content) string {
	switch {
	case len(c.bytes) == 0:
		return "no body"
	case op.comparedGraphQL(c) != nil:
		return "GraphQL"
	case op.comparesJSON(c):
		return "JSON"
	case c.form != nil && c.form.problem == nil:
		return "a form"
	case utf8.Valid(c.bytes):
		return "text"
	}
	return "bytes"
}

func shownBytes(b []byte) string {
	return plural(len(b), "byte", "bytes") + ", SHA-256 " + hexDigest(b)[:16] + "…"
}

// trees are what a rule says about one place in JSON and what is below it.
type trees struct {
	ignored, minor *mask
	collation      *mask
	// isMinor says that the place is within a minor one.
	isMinor bool
}

func treesOf(op *Operation) trees {
	return trees{op.ignored.tree(), op.minor.tree(), op.collations.tree(), false}
}

// weight is what a change at the place is.
func (t trees) weight(alike bool) Likeness {
	switch {
	case alike:
		return Equivalent
	case t.isMinor:
		return Minor
	}
	return Significant
}

// member is what the rule says about a member; gone says that it is ignored.
func (t trees) member(name string, v *jsonValue) (sub trees, gone bool) {
	sub.ignored, gone = t.ignored.member(name, v)
	sub.minor, sub.isMinor = t.minor.member(name, v)
	sub.isMinor = sub.isMinor || t.isMinor
	sub.collation = t.collation.memberWays(name)
	return sub, gone
}

// element is member for an element.
func (t trees) element(i int, v *jsonValue) (sub trees, gone bool) {
	sub.ignored, gone = t.ignored.element(i, v)
	sub.minor, sub.isMinor = t.minor.element(i, v)
	sub.isMinor = sub.isMinor || t.isMinor
	sub.collation = t.collation.elementWays(i)
	return sub, gone
}

// alike reports whether two values are equal once they are in their form.
func (t trees) alike(a, b *jsonValue) bool {
	x, y := t.collation.apply(a, t.ignored), t.collation.apply(b, t.ignored)
	return string(appendCanonical(nil, &x, nil)) == string(appendCanonical(nil, &y, nil))
}

// json notes the differences of two JSON values.
func (d *differ) json(place string, a, b *jsonValue, t trees) {
	switch {
	case d.full():
	case a.kind == jsonObject && b.kind == jsonObject:
		d.objects(place, a, b, t)
	case a.kind == jsonArray && b.kind == jsonArray:
		if t.collation.ownWays() != 0 && t.alike(a, b) {
			d.reordered(place, a, b, t)
			return
		}
		d.arrays(place, a, b, t)
	case a.kind == jsonString && b.kind == jsonString && a.text != b.text:
		d.texts(place, a.text, b.text, t.weight(t.alike(a, b)))
	case !sameValue(a, b):
		d.add(Change{Place: place, Kind: Changed, Stored: shownValue(a), Asked: shownValue(b), Likeness: t.weight(t.alike(a, b))})
	}
}

// sameValue reports whether two values are written alike.
func sameValue(a, b *jsonValue) bool { return string(canonicalValue(a)) == string(canonicalValue(b)) }

// reordered notes a list whose elements only changed places.
func (d *differ) reordered(place string, a, b *jsonValue, t trees) {
	if !sameValue(a, b) {
		d.add(Change{Place: place, Kind: Changed, Stored: shownValue(a), Asked: shownValue(b), Likeness: t.weight(true)})
	}
}

// objects notes the differences of two objects, by name.
func (d *differ) objects(place string, a, b *jsonValue, t trees) {
	names := append(slices.Clone(a.names), b.names...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, inA := a.member(name)
		y, inB := b.member(name)
		at := placeName(place, name)
		switch {
		case inA && inB:
			sub, gone := t.member(name, x)
			if _, alsoGone := t.member(name, y); !gone || !alsoGone {
				d.json(at, x, y, sub)
			}
		case inA:
			if sub, gone := t.member(name, x); !gone {
				d.add(Change{Place: at, Kind: Removed, Stored: shownValue(x), Likeness: sub.weight(false)})
			}
		default:
			if sub, gone := t.member(name, y); !gone {
				d.add(Change{Place: at, Kind: Added, Asked: shownValue(y), Likeness: sub.weight(false)})
			}
		}
	}
}

// arrays notes the differences of two lists: what stands between their common
// beginning and their common end.
func (d *differ) arrays(place string, a, b *jsonValue, t trees) {
	same := func(i, j int) bool {
		sub, _ := t.element(i, &a.items[i])
		return sub.alike(&a.items[i], &b.items[j])
	}
	begin, endA, endB := 0, len(a.items), len(b.items)
	for begin < min(endA, endB) && same(begin, begin) {
		begin++
	}
	for endA > begin && endB > begin && same(endA-1, endB-1) {
		endA--
		endB--
	}
	for i := begin; i < max(endA, endB) && !d.full(); i++ {
		at := place + "[" + strconv.Itoa(i) + "]"
		switch {
		case i >= endB:
			if sub, gone := t.element(i, &a.items[i]); !gone {
				d.add(Change{Place: at, Kind: Removed, Stored: shownValue(&a.items[i]), Likeness: sub.weight(false)})
			}
		case i >= endA:
			if sub, gone := t.element(i, &b.items[i]); !gone {
				d.add(Change{Place: at, Kind: Added, Asked: shownValue(&b.items[i]), Likeness: sub.weight(false)})
			}
		default:
			if sub, gone := t.element(i, &a.items[i]); !gone {
				d.json(at, &a.items[i], &b.items[i], sub)
			}
		}
	}
}

// texts notes the differences of two texts; those of several lines by line.
func (d *differ) texts(place, a, b string, weight Likeness) {
	if !strings.Contains(a, "\n") || !strings.Contains(b, "\n") {
		x, y := around(a, b)
		d.add(Change{Place: place, Kind: Changed, Stored: x, Asked: y, Likeness: weight})
		return
	}
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	begin, endA, endB := 0, len(linesA), len(linesB)
	for begin < min(endA, endB) && linesA[begin] == linesB[begin] {
		begin++
	}
	for endA > begin && endB > begin && linesA[endA-1] == linesB[endB-1] {
		endA--
		endB--
	}
	for i := begin; i < max(endA, endB) && !d.full(); i++ {
		at := place + " line " + strconv.Itoa(i+1)
		switch {
		case i >= endB:
			d.add(Change{Place: at, Kind: Removed, Stored: shownText(linesA[i]), Likeness: weight})
		case i >= endA:
			d.add(Change{Place: at, Kind: Added, Asked: shownText(linesB[i]), Likeness: weight})
		case linesA[i] != linesB[i]:
			x, y := around(linesA[i], linesB[i])
			d.add(Change{Place: at, Kind: Changed, Stored: x, Asked: y, Likeness: weight})
		}
	}
}

// contextShown is how much is shown before a difference, in characters.
const contextShown = 40

// around shows two texts from shortly before their first difference.
func around(a, b string) (shownA, shownB string) {
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	from := same - contextShown
	if from <= 0 || max(len(x), len(y)) <= maxValue {
		return shownText(a), shownText(b)
	}
	return "…" + shownText(string(x[from:])), "…" + shownText(string(y[from:]))
}

// shownText is a text as JSON writes it, shortened.
func shownText(s string) string {
	if utf8.RuneCountInString(s) > maxValue {
		return string(appendString(nil, string([]rune(s)[:maxValue-1])+"…"))
	}
	return string(appendString(nil, s))
}

// shownValue is a JSON value, shortened.
func shownValue(v *jsonValue) string {
	if v.kind == jsonString {
		return shownText(v.text)
	}
	return shorten(string(appendMasked(nil, v, nil)), maxValue)
}

// shorten cuts a text to at most limit characters.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// placeName writes a name below a place as a rule does.
func placeName(place, name string) string {
	switch {
	case isName(name):
		return place + "." + name
	case place == "path" && name == wholePath:
		return place
	case viewPlaces[place] != nil:
		if member, below, named := strings.Cut(name, "."); named {
			return placeName(place+"."+member, below)
		}
	}
	return fmt.Sprintf("%s['%s']", place, name)
}
