package rules

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"go.yaml.in/yaml/v4"

	"keep-proxy/internal/strictyaml"
)

// mistake is something in an expression that compiles, and can't be meant: what is read
// is never there. A default or an outcome that is left to the table would hide it.
type mistake struct{ problem, fix string }

// Members of the variables whose shape is fixed.
var (
	answerMembers = []string{"complete", "graphql", "header", "json", "jsonrpc", "status", "text", "xml"}
	recordMembers = []string{"claimed_at", "generation", "id", "kept", "marker", "vendor_key"}
)

// meantMembers are names that other programs have for a member, too far from ours to be
// found by spelling.
var meantMembers = map[string]string{"body": "json", "data": "json", "code": "status", "status_code": "status", "statuscode": "status"}

// inspect notes what can be said of an expression before it runs.
func (e *expr) inspect(root ast.Expr, out *cel.Type) {
	own := map[string]bool{}
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.ComprehensionKind:
			c := x.AsComprehension()
			own[c.IterVar()], own[c.IterVar2()], own[c.AccuVar()] = true, true, true
		case ast.CallKind:
			e.inspectCall(x.AsCall())
		default:
		}
	}))
	for _, r := range e.refs {
		// A macro's own variable hides the one that has its name.
		if !own[r.root] {
			e.misspelt(r)
		}
	}
	e.neverBool = !canBe(out, types.BoolKind) || neverBool(root)
	e.neverTime = !canBe(out, types.DurationKind, types.TimestampKind)
	e.alwaysBool = out.Kind() == types.BoolKind
}

// mistaken notes a mistake, once.
func (e *expr) mistaken(problem, fix string) {
	if m := (mistake{problem, fix}); !slices.Contains(e.mistakes, m) {
		e.mistakes = append(e.mistakes, m)
	}
}

// misspelt notes a member that its variable never has.
func (e *expr) misspelt(r place) {
	at, known := 0, answerMembers
	switch r.root {
	case "header":
		e.capitals(r, 0)
		return
	case "mutation":
		known = recordMembers
	case "graphql":
		known = []string{"alias", "args", "field", "name", "operation"}
	case "aws":
		known = []string{"action", "params"}
	case "stored":
		known = storedNames
	case "steps":
		at = 1
	case "response":
	default:
		return
	}
	if len(r.steps) <= at || r.steps[at].kind != stepName {
		return
	}
	switch name := r.steps[at].name; {
	case name == "header":
		e.capitals(r, at+1)
	case !slices.Contains(known, name):
		of := r.root
		if at == 1 {
			of += "." + r.steps[0].name
		}
		fix := of + " has " + listed(known)
		if near := cmp.Or(meantMembers[strings.ToLower(name)], strictyaml.Nearest(name, known)); slices.Contains(known, near) {
			fix = "did you mean " + of + "." + near + "?"
		}
		e.mistaken(of+" has no "+printable(name), fix)
	}
}

// capitals notes the name of a header field at a step that isn't in lower case.
func (e *expr) capitals(r place, at int) {
	if len(r.steps) <= at || r.steps[at].kind != stepName {
		return
	}
	if name := r.steps[at].name; name != strings.ToLower(name) {
		e.mistaken("header names are lower-case here, so that "+quoted(name)+" is never there", "write '"+printable(strings.ToLower(name))+"'")
	}
}

// inspectCall notes what a status is compared with, and names that are looked for in a
// header.
func (e *expr) inspectCall(c ast.CallExpr) {
	args := c.Args()
	if len(args) != 2 {
		return
	}
	switch c.FunctionName() {
	case operators.In:
		if root, steps, ok := accessOf(args[1]); ok && args[0].Kind() == ast.LiteralKind {
			if step, literal := literalStep(args[0]); literal {
				e.misspelt(place{root: root, steps: append(slices.Clip(steps), step)})
			}
			return
		}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	default:
		return
	}
	for i, arg := range args {
		if root, steps, ok := accessOf(arg); ok && isStatus(root, steps) {
			e.compared(root, args[1-i])
		}
	}
}

// isStatus knows the status of an answer.
func isStatus(root string, steps []placeStep) bool {
	return root == "response" && len(steps) == 1 && steps[0].name == "status" ||
		root == "steps" && len(steps) == 2 && steps[1].name == "status"
}

// compared notes the constants that a status is compared with.
func (e *expr) compared(root string, with ast.Expr) {
	switch with.Kind() {
	case ast.ListKind:
		for _, item := range with.AsList().Elements() {
			e.compared(root, item)
		}
	case ast.LiteralKind:
		switch v := with.AsLiteral().(type) {
		case types.String:
			e.mistaken("a status is a number, and never the text "+quoted(string(v)), "write it without quotes")
		case types.Int:
			if root == "response" {
				e.statuses = append(e.statuses, int64(v))
			}
		}
	default:
	}
}

// answered refuses an expression that judges an answer, or an object of one, and reads the request alone. Bodies often
// have the names of their answers. What was asked for would be taken for what was done.
func (d *decoder) answered(e *expr, from string) {
	if e == nil || e.readsAnswer() || !e.readsAny(storedNames...) {
		return
	}
	such := from
	first := slices.IndexFunc(e.refs, func(r place) bool { return slices.Contains(storedNames, r.root) })
	switch r := e.refs[first]; {
	case from == "found" && len(r.steps) > 0 && r.steps[0].kind == stepName:
		such = "found" + suffixOf(r.steps[0].name)
	case from == "response" && (r.root == "json" || r.root == "header"):
		such = "response." + r.root
		if len(r.steps) > 0 && r.steps[0].kind == stepName {
			such += suffixOf(r.steps[0].name)
		}
	case from == "response":
		such = "response.status"
	}
	d.mistaken("expression", e.at, "doesn't read the answer: "+quoted(e.source)+" is true or false, or has its value, by the request alone",
		"read "+from+", such as "+printable(such))
}

// reserved are the names that CEL takes for words of its own behind a dot, too.
var reserved = []string{"in", "true", "false", "null"}

// suffixOf selects a member by name.
func suffixOf(name string) string {
	if plainChain.MatchString(name) && !strings.Contains(name, ".") && !slices.Contains(reserved, name) {
		return "." + name
	}
	return "['" + name + "']"
}

// canBe reports whether a type may hold a value of these kinds.
func canBe(t *cel.Type, kinds ...types.Kind) bool {
	if t.TypeName() == "optional_type" && len(t.Parameters()) == 1 {
		return canBe(t.Parameters()[0], kinds...)
	}
	return slices.Contains(append(kinds, types.DynKind, types.AnyKind, types.TypeParamKind, types.ErrorKind, types.UnknownKind), t.Kind())
}

// neverBool knows the members of fixed type, whose type CEL doesn't know.
func neverBool(x ast.Expr) bool {
	root, steps, ok := accessOf(x)
	if !ok || x.Kind() == ast.SelectKind && x.AsSelect().IsTestOnly() {
		return false
	}
	last := len(steps) - 1
	switch {
	case root == "mutation" && last == 0:
		return true
	case root == "response" && last == 0, root == "steps" && last == 1:
		return slices.Contains([]string{"status", "text", "header"}, steps[last].name)
	}
	return false
}

// roots are the names with which expressions begin, but for those that are words of
// ordinary text by themselves.
const roots = `(?:json|path|host|query|header|form|mutation|found|response|steps)`

// misplacedExpr finds what reads like an expression where YAML is literal. The whole text is a chain of names, or a
// part in braces begins like one.
var misplacedExpr = regexp.MustCompile(`^` + roots + `(?:\.\??[A-Za-z_]\w*|\[[^\]]*\])+$|\{\s*` + roots + `\s*[.\[][^}]*\}`)

// misplacedName finds what else does: the whole text is a name in braces, or a header field.
var misplacedName = regexp.MustCompile(`^\{\s*` + roots + `\s*\}$|^(?:response\.)?header\.[\w-]+$`)

// misplacedObject finds the same of the object that is taken back.
var misplacedObject = regexp.MustCompile(`^object$|\{\s*object\s*\}`)

// literalText refuses a literal in which an expression was meant. As it stands it would ask the API for something that
// can't exist. The answer would be taken for an absence.
func (d *decoder) literalText(v value, at position) {
	if at == inRequest || v.Tag != "!!str" {
		return
	}
	fail := d.Fail
	if insertedParameter.MatchString(v.Value) {
		fail = d.mistaken
	} else if !misplacedExpr.MatchString(v.Value) && (!d.undoing || !misplacedObject.MatchString(v.Value)) {
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

// yamlPlain writes an expression as YAML takes it inside a map in braces. It is quoted, unless it is a chain of names.
func yamlPlain(s string) string {
	if plainChain.MatchString(s) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

var plainChain = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)
