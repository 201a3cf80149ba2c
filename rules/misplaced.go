package rules

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// roots are the names with which expressions begin, but for those that are words of
// ordinary text by themselves.
const roots = `(?:json|path|host|query|header|form|mutation|found|response|steps)`

// misplacedExpr finds what reads like an expression where YAML is literal: the whole
// text is a chain of names, or a part in braces begins like one.
var misplacedExpr = regexp.MustCompile(`^` + roots + `(?:\.\??[A-Za-z_]\w*|\[[^\]]*\])+$|\{\s*` + roots + `\s*[.\[][^}]*\}`)

// misplacedName finds what else does: the whole text is a name in braces, or a header field.
var misplacedName = regexp.MustCompile(`^\{\s*` + roots + `\s*\}$|^(?:response\.)?header\.[\w-]+$`)

// misplacedObject finds the same of the object that is taken back.
var misplacedObject = regexp.MustCompile(`^object$|\{\s*object\s*\}`)

// literalText refuses a literal in which an expression was meant. Sent as it stands
// it would ask the API for something that can't exist, and the answer would be
// taken for an absence.
func (d *decoder) literalText(v value, at position) {
	if at == inRequest || v.Tag != "!!str" {
		return
	}
	fail := d.Fail
	if !misplacedExpr.MatchString(v.Value) && (!d.undoing || !misplacedObject.MatchString(v.Value)) {
		if !misplacedName.MatchString(v.Value) {
			return
		}
		fail = d.mistaken
	}
	fail("literal", v, "is sent literally, but reads like an expression",
		"write {cel: "+yamlPlain(mended(v.Value))+"}; if the text itself is meant, write {cel: \"'…'\"}")
}

// wholeLiteral refuses a word that as a whole answer can only be meant as the variable.
func (d *decoder) wholeLiteral(v value) {
	if v.Is(yaml.ScalarNode) && v.Tag == "!!str" && slices.Contains([]string{"found", "response", "json"}, v.Value) {
		d.mistaken("literal", v, "is given literally, but reads like an expression",
			"write {cel: "+v.Value+"}; if the text itself is meant, write {cel: \"'…'\"}")
	}
}

// mended is the expression that was meant by a text with insertions, or by a chain of
// names.
func mended(source string) string {
	pieces, err := splitText(source)
	if err != nil {
		return source
	}
	var parts []string
	for _, p := range pieces {
		part := celText(p.text)
		if p.insertion {
			part = strings.TrimSpace(strings.TrimSuffix(p.text, "..."))
			if len(pieces) > 1 && strings.ContainsAny(part, "?|&<>=") {
				part = "(" + part + ")"
			}
		} else if len(pieces) == 1 {
			part = p.text
		}
		parts = append(parts, part)
	}
	// The name of a field with a hyphen would be a subtraction.
	if m := hyphened.FindStringSubmatch(parts[0]); len(parts) == 1 && m != nil {
		return m[1] + "['" + m[2] + "']"
	}
	return strings.Join(parts, " + ")
}

// hyphened is the chain of a header field whose name is no name of CEL's.
var hyphened = regexp.MustCompile(`^((?:response\.)?header)\.([\w-]*-[\w-]*)$`)

// celText writes a text as CEL does.
func celText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + "'"
}

// yamlPlain writes an expression as YAML takes it inside a map in braces: quoted, unless
// it is a chain of names.
func yamlPlain(s string) string {
	if plainChain.MatchString(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var plainChain = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)
