package rules

import (
	"slices"
	"strings"

	"golang.org/x/text/cases"
)

// normals is a set of ways in which a value is brought into one form before it is
// compared. The zero value leaves it as it is.
type normals uint8

const (
	// normalHTML takes a text for HTML (WHATWG): what it shows counts, not how it is
	// written.
	normalHTML normals = 1 << iota
	// normalMarkdown takes a text for Markdown (CommonMark, with GitHub's tables and
	// strikethrough): what it renders to counts.
	normalMarkdown
	// normalWhitespace makes every run of white space one space, and trims.
	normalWhitespace
	// normalCase folds case (Unicode, full folding).
	normalCase
	// normalNumbers makes 7, 7.0 and "7.00" one.
	normalNumbers
	// normalUnordered takes a list for a set with repetitions.
	normalUnordered
)

// normalNames are the words of the format.
var normalNames = map[string]normals{
	"html": normalHTML, "markdown": normalMarkdown, "whitespace": normalWhitespace,
	"case": normalCase, "numbers": normalNumbers, "unordered": normalUnordered,
}

// text brings a text into its form.
func (n normals) text(s string) string {
	switch {
	case n&normalMarkdown != 0:
		s = normalMarkdownText(s)
	case n&normalHTML != 0:
		s = normalHTMLText(s)
	}
	if n&normalWhitespace != 0 {
		s = strings.Join(strings.Fields(s), " ")
	}
	if n&normalCase != 0 {
		s = cases.Fold().String(s)
	}
	if n&normalNumbers != 0 && isPlainNumber(s) {
		s = decimalOf(s)
	}
	return s
}

// value brings a JSON value into its form. Its parts are in theirs already.
func (n normals) value(v *jsonValue) {
	switch v.kind {
	case jsonString:
		if n&normalNumbers != 0 && isPlainNumber(v.text) {
			v.kind = jsonNumber
		}
		v.text = n.text(v.text)
	case jsonNumber:
		if n&normalNumbers != 0 && isPlainNumber(v.text) {
			v.text = decimalOf(v.text)
		}
	case jsonArray:
		if n&normalUnordered != 0 {
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

// normalTree holds the ways by place in a JSON value. A nil tree holds none.
type normalTree struct {
	own     normals
	members map[string]*normalTree
	indexes map[int]*normalTree
	all     *normalTree
}

// add grows the tree by one place.
func (t *normalTree) add(steps []placeStep, n normals) {
	for _, step := range steps {
		t = t.child(step)
	}
	t.own |= n
}

// child returns the branch of a step, made when it is missing.
func (t *normalTree) child(step placeStep) *normalTree {
	switch step.kind {
	case stepAll:
		if t.all == nil {
			t.all = &normalTree{}
		}
		return t.all
	case stepIndex:
		if t.indexes == nil {
			t.indexes = map[int]*normalTree{}
		}
		if t.indexes[step.index] == nil {
			t.indexes[step.index] = &normalTree{}
		}
		return t.indexes[step.index]
	case stepName:
	}
	if t.members == nil {
		t.members = map[string]*normalTree{}
	}
	if t.members[step.name] == nil {
		t.members[step.name] = &normalTree{}
	}
	return t.members[step.name]
}

// ownWays are the ways of the value at the tree's root.
func (t *normalTree) ownWays() normals {
	if t == nil {
		return 0
	}
	return t.own
}

// member is the tree of a member.
func (t *normalTree) member(name string) *normalTree {
	if t == nil {
		return nil
	}
	return t.members[name]
}

// element is the tree of an element. An index is more precise than [*].
func (t *normalTree) element(i int) *normalTree {
	if t == nil {
		return nil
	}
	if at := t.indexes[i]; at != nil {
		return at
	}
	return t.all
}

// apply is v without what m takes out, with every part in its form. It shares no
// memory that it changes with v.
func (t *normalTree) apply(v *jsonValue, m *mask) jsonValue {
	out := *v
	switch v.kind {
	case jsonArray:
		out.items = make([]jsonValue, 0, len(v.items))
		for i := range v.items {
			sub, drop := m.element(i, &v.items[i])
			if !drop {
				out.items = append(out.items, t.element(i).apply(&v.items[i], sub))
			}
		}
	case jsonObject:
		out.names = make([]string, 0, len(v.items))
		out.items = make([]jsonValue, 0, len(v.items))
		for i := range v.items {
			sub, drop := m.member(v.names[i], &v.items[i])
			if !drop {
				out.names = append(out.names, v.names[i])
				out.items = append(out.items, t.member(v.names[i]).apply(&v.items[i], sub))
			}
		}
	case jsonNull, jsonFalse, jsonTrue, jsonNumber, jsonString:
	}
	t.ownWays().value(&out)
	return out
}

// normalised says how the places of a request are brought into one form. A nil
// value leaves all as they are.
type normalised struct {
	json *normalTree
	// names are by root: form, query, path, header.
	names map[string]map[string]normals
	// body is of a body that is neither JSON nor a form.
	body normals
}

// add puts a place in.
func (n *normalised) add(at place, ways normals) {
	switch name, single := at.name(); {
	case at.root == "json":
		if n.json == nil {
			n.json = &normalTree{}
		}
		n.json.add(at.steps, ways)
	case at.root == "body":
		n.body |= ways
	case single:
		if n.names == nil {
			n.names = map[string]map[string]normals{}
		}
		if n.names[at.root] == nil {
			n.names[at.root] = map[string]normals{}
		}
		n.names[at.root][name] |= ways
	}
}

// of are the ways of a named place.
func (n *normalised) of(root, name string) normals {
	if n == nil {
		return 0
	}
	return n.names[root][name]
}

// tree are the ways in JSON.
func (n *normalised) tree() *normalTree {
	if n == nil {
		return nil
	}
	return n.json
}

// pairs brings the values of a query or a form into their form. The list is sorted
// by name, and may be changed.
func (n *normalised) pairs(root string, list []pair) []pair {
	if n == nil || n.names[root] == nil {
		return list
	}
	for i := range list {
		list[i].value = n.of(root, list[i].name).text(list[i].value)
	}
	group := func(name string) string {
		if n.of(root, name)&normalUnordered != 0 {
			return name
		}
		return listName(name)
	}
	slices.SortStableFunc(list, func(a, b pair) int {
		if a.name != b.name || n.of(root, a.name)&normalUnordered == 0 {
			return strings.Compare(group(a.name), group(b.name))
		}
		return strings.Compare(a.value, b.value)
	})
	return list
}
