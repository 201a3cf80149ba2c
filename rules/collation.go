package rules

import (
	"slices"
	"strings"

	"golang.org/x/text/cases"
)

// collation is a set of ways in which a value is brought into one form before it is
// compared. The zero value leaves it as it is.
type collation uint8

const (
	// collateHTML takes a text for HTML (WHATWG): what it shows counts, not how it is
	// written.
	collateHTML collation = 1 << iota
	// collateMarkdown takes a text for Markdown (CommonMark, with GitHub's tables and
	// strikethrough): what it renders to counts.
	collateMarkdown
	// collateWhitespace makes every run of white space one space, and trims.
	collateWhitespace
	// collateCase folds case (Unicode, full folding).
	collateCase
	// collateNumbers makes 7, 7.0 and "7.00" one.
	collateNumbers
	// collateUnordered takes a list for a set with repetitions.
	collateUnordered
)

// collationWords are the words of the format.
var collationWords = map[string]collation{
	"html": collateHTML, "markdown": collateMarkdown, "whitespace": collateWhitespace,
	"case": collateCase, "numbers": collateNumbers, "unordered": collateUnordered,
}

// text brings a text into its form.
func (n collation) text(s string) string {
	switch {
	case n&collateMarkdown != 0:
		s = markdownForCompare(s)
	case n&collateHTML != 0:
		s = htmlForCompare(s)
	}
	if n&collateWhitespace != 0 {
		var b strings.Builder
		b.Grow(len(s))
		for word := range strings.FieldsSeq(s) {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(word)
		}
		s = b.String()
	}
	if n&collateCase != 0 {
		s = cases.Fold().String(s)
	}
	if n&collateNumbers != 0 && isPlainNumber(s) {
		s = decimalOf(s)
	}
	return s
}

// value brings a JSON value into its form. Its parts are in theirs already.
func (n collation) value(v *jsonValue) {
	switch v.kind {
	case jsonString:
		if n&collateNumbers != 0 && isPlainNumber(v.text) {
			v.kind = jsonNumber
		}
		v.text = n.text(v.text)
	case jsonNumber:
		if n&collateNumbers != 0 && isPlainNumber(v.text) {
			v.text = decimalOf(v.text)
		}
	case jsonArray:
		if n&collateUnordered != 0 {
			sortCanonical(v)
		}
	case jsonNull, jsonFalse, jsonTrue, jsonObject:
	}
}

// sortCanonical orders the elements of a list by their canonical form.
func sortCanonical(v *jsonValue) {
	type spelt struct {
		text string
		item jsonValue
	}
	all := make([]spelt, len(v.items))
	for i := range v.items {
		all[i] = spelt{string(canonicalValue(&v.items[i])), v.items[i]}
	}
	slices.SortStableFunc(all, func(a, b spelt) int { return strings.Compare(a.text, b.text) })
	for i := range all {
		v.items[i] = all[i].item
	}
}

// maxPlainNumber bounds what is compared as a number, in characters: a longer text
// is one only by chance.
const maxPlainNumber = 64

// isPlainNumber reports whether a text is a number as JSON writes it.
func isPlainNumber(s string) bool {
	if s == "" || len(s) > maxPlainNumber || strings.ContainsAny(s, " \t\r\n") {
		return false
	}
	if _, exponent, _ := strings.Cut(strings.ToLower(s), "e"); len(exponent) > 6 {
		return false
	}
	v, err := parseJSON([]byte(s))
	return err == nil && v.kind == jsonNumber
}

// ownWays are the ways of the value at the tree's root.
func (m *mask) ownWays() collation {
	if m == nil {
		return 0
	}
	return m.ways
}

// memberWays is the tree of a member.
func (m *mask) memberWays(name string) *mask {
	if m == nil {
		return nil
	}
	return m.members[name]
}

// elementWays is the tree of an element. An index is more precise than [*].
func (m *mask) elementWays(i int) *mask {
	if m == nil {
		return nil
	}
	if at := m.indexes[i]; at != nil {
		return at
	}
	return m.all
}

// apply is v without what ignored takes out, with every part in its form by m. It shares no
// memory that it changes with v.
func (m *mask) apply(v *jsonValue, ignored *mask) jsonValue {
	out := *v
	switch v.kind {
	case jsonArray:
		out.items = make([]jsonValue, 0, len(v.items))
		for i := range v.items {
			sub, drop := ignored.element(i, &v.items[i])
			if !drop {
				out.items = append(out.items, m.elementWays(i).apply(&v.items[i], sub))
			}
		}
	case jsonObject:
		out.names = make([]string, 0, len(v.items))
		out.items = make([]jsonValue, 0, len(v.items))
		for i := range v.items {
			sub, drop := ignored.member(v.names[i], &v.items[i])
			if !drop {
				out.names = append(out.names, v.names[i])
				out.items = append(out.items, m.memberWays(v.names[i]).apply(&v.items[i], sub))
			}
		}
	case jsonNull, jsonFalse, jsonTrue, jsonNumber, jsonString:
	}
	m.ownWays().value(&out)
	return out
}

// collations says how the places of a request are collated. A nil
// value leaves all as they are.
type collations struct {
	json *mask
	// names are by root: form, query, path, header.
	names map[string]map[string]collation
	// body is of a body that is neither JSON nor a form.
	body collation
}

// add puts a place in.
func (n *collations) add(at place, ways collation) {
	switch name, single := at.name(); {
	case at.root == "json", at.root == "graphql":
		if n.json == nil {
			n.json = &mask{}
		}
		n.json.at(at.steps).ways |= ways
	case at.root == "body":
		n.body |= ways
	case single:
		if n.names == nil {
			n.names = map[string]map[string]collation{}
		}
		if n.names[at.root] == nil {
			n.names[at.root] = map[string]collation{}
		}
		n.names[at.root][name] |= ways
	}
}

// of are the ways of a named place.
func (n *collations) of(root, name string) collation {
	if n == nil {
		return 0
	}
	return n.names[root][name]
}

// tree are the ways in JSON.
func (n *collations) tree() *mask {
	if n == nil {
		return nil
	}
	return n.json
}

// pairs brings the values of a query or a form into their form. The list is sorted
// by name, and may be changed.
func (n *collations) pairs(root string, list []pair) []pair {
	if n == nil || n.names[root] == nil {
		return list
	}
	for i := range list {
		list[i].value = n.of(root, list[i].name).text(list[i].value)
	}
	group := func(name string) string {
		if n.of(root, name)&collateUnordered != 0 {
			return name
		}
		return listName(name)
	}
	slices.SortStableFunc(list, func(a, b pair) int {
		if a.name != b.name || n.of(root, a.name)&collateUnordered == 0 {
			return strings.Compare(group(a.name), group(b.name))
		}
		return strings.Compare(a.value, b.value)
	})
	return list
}
