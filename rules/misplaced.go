package rules

import (
	"regexp"

	"go.yaml.in/yaml/v4"
)

// roots are the names with which expressions begin, but for those that are words of
// ordinary text by themselves.
const roots = `(?:json|path|host|query|header|form|mutation|found|response|steps)`

// misplacedExpr finds what reads like an expression where YAML is literal: the whole
// text is a chain of names, or a part in braces begins like one.
var misplacedExpr = regexp.MustCompile(`^` + roots + `(?:\.\??[A-Za-z_]\w*|\[[^\]]*\])+$|\{\s*` + roots + `\s*[.\[][^}]*\}`)

// misplacedObject finds the same of the object that is taken back.
var misplacedObject = regexp.MustCompile(`^object$|\{\s*object\s*\}`)

// literalText refuses a literal in which an expression was meant. Sent as it stands
// it would ask the API for something that can't exist, and the answer would be
// taken for an absence.
func (d *decoder) literalText(n *yaml.Node, key string, at position) {
	meant := misplacedExpr.MatchString(n.Value) || d.undoing && misplacedObject.MatchString(n.Value)
	if at == inRequest || n.Kind != yaml.ScalarNode || n.Tag != "!!str" || !meant {
		return
	}
	d.fail("literal", key, n, "is sent literally, but reads like an expression",
		"write {cel: "+trimBraces(n.Value)+"}; if the text itself is meant, write {cel: \"'…'\"}")
}

// trimBraces suggests the expression inside a text that is nothing else.
func trimBraces(s string) string {
	if len(s) > 2 && s[0] == '{' && s[len(s)-1] == '}' {
		return s[1 : len(s)-1]
	}
	return s
}
