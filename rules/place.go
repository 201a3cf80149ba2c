package rules

import (
	"fmt"
	"strconv"
	"strings"
)

// place is a selector: a root such as json or form, and steps below it. It names
// what is written, ignored or secret; it is never evaluated as an expression.
type place struct {
	source string
	root   string
	steps  []placeStep
	// veiled says of what an expression reads that its value doesn't show it: only
	// whether it is there, or a digest of it.
	veiled bool
}

// placeStep is one step: a name, an index, or every element.
type placeStep struct {
	name  string
	index int
	kind  stepKind
}

type stepKind uint8

const (
	stepName stepKind = iota
	stepIndex
	stepAll
)

// parsePlace reads a selector such as json.items[*].id or form['a[b]'].
func parsePlace(source string) (place, error) {
	end := strings.IndexAny(source, ".[")
	if end < 0 {
		end = len(source)
	}
	p := place{source: source, root: source[:end]}
	if !isName(p.root) {
		return place{}, fmt.Errorf("a place begins with a name such as json, not %q", p.root)
	}
	steps, err := parseSteps(source[end:])
	if err != nil {
		return place{}, err
	}
	p.steps = steps
	return p, nil
}

// parseSteps reads ".name", "[3]", "[*]" and "['name']".
func parseSteps(rest string) ([]placeStep, error) {
	var steps []placeStep
	for rest != "" {
		step, tail, err := parseStep(rest)
		if err != nil {
			return nil, err
		}
		steps, rest = append(steps, step), tail
	}
	return steps, nil
}

// parseStep reads the first step of rest.
func parseStep(rest string) (placeStep, string, error) {
	if name, ok := strings.CutPrefix(rest, "."); ok {
		end := strings.IndexAny(name, ".[")
		if end < 0 {
			end = len(name)
		}
		if !isName(name[:end]) {
			return placeStep{}, "", fmt.Errorf("%q is no plain name; write it as ['%s']", name[:end], name[:end])
		}
		return placeStep{name: name[:end]}, name[end:], nil
	}
	inner, ok := strings.CutPrefix(rest, "[")
	if !ok || inner == "" {
		return placeStep{}, "", fmt.Errorf("%q is no step; write .name, [*], [0] or ['name']", rest)
	}
	if inner[0] == '\'' || inner[0] == '"' {
		name, tail, found := strings.Cut(inner[1:], inner[:1]+"]")
		if !found {
			return placeStep{}, "", fmt.Errorf("the bracket in %q is not closed", rest)
		}
		return placeStep{name: name}, tail, nil
	}
	text, tail, found := strings.Cut(inner, "]")
	if !found {
		return placeStep{}, "", fmt.Errorf("the bracket in %q is not closed", rest)
	}
	if text == "*" {
		return placeStep{kind: stepAll}, tail, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return placeStep{}, "", fmt.Errorf("[%s] is neither [*], an index nor a quoted name", text)
	}
	return placeStep{kind: stepIndex, index: n}, tail, nil
}

// isName reports whether s is a plain name as an expression has it.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// covers reports whether the place and the steps of an expression can name a
// common value: one is the beginning of the other.
func (p place) covers(root string, steps []placeStep) bool {
	if p.root != root {
		return false
	}
	for i := 0; i < len(p.steps) && i < len(steps); i++ {
		a, b := p.steps[i], steps[i]
		if a.kind == stepAll || b.kind == stepAll {
			continue
		}
		if a != b {
			return false
		}
	}
	return true
}

// name is the single name of a place such as form.x; false for any other shape.
func (p place) name() (string, bool) {
	if len(p.steps) != 1 || p.steps[0].kind != stepName {
		return "", false
	}
	return p.steps[0].name, true
}
