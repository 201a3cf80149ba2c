package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// expr is one compiled expression.
type expr struct {
	source string
	// chain is set for a plain chain of names or a constant string, which runs
	// without CEL.
	chain *chain
	// whole is the chain whose value it is, in another spelling perhaps; nil for none.
	whole *chain
	prog  cel.Program
	// refs are the values it can read, as far as that is plain from its text.
	refs []place
	// readsNames says that what it reads depends on names in the request's JSON. Names that query_all and form_all list
	// count too.
	readsNames bool
	// takesQuery says that it may read any member of the query.
	takesQuery bool
	// roams says that it reads names that are not in refs, as of what it goes through or computes. The names that its
	// text tells are in roamed.
	roams  bool
	roamed []string
	// mistakes are what compiles and can't be meant. The constants that response.status is compared with are statuses.
	// With neverBool it is no condition, with neverTime neither a duration nor a time.
	mistakes             []mistake
	statuses             []int64
	neverBool, neverTime bool
	// alwaysBool says that it is nothing but true or false.
	alwaysBool bool
	// at is where it stands, tree what was parsed.
	at   Where
	tree *ast.AST
}

// namedExpr is an expression with the name it gives a value to.
type namedExpr struct {
	name string
	*expr
}

// compiling is held while CEL compiles. An environment fills its catalogue of names at the first error that it
// reports. Two compilations that fail at once would race for that.
var compiling sync.Mutex

// compileExpr compiles source for a position.
func compileExpr(source string, at position, params ...parameterValues) (*expr, error) {
	envs, err := celEnvs()
	if err != nil {
		return nil, err
	}
	compiling.Lock()
	defer compiling.Unlock()
	env := envs[at]
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil, celProblem(issues)
	}
	if strings.Contains(source, "param") {
		if err := append(params, nil)[0].fill(parsed.NativeRep()); err != nil {
			return nil, err
		}
	}
	e := &expr{source: source, tree: parsed.NativeRep(), refs: refsOf(parsed.NativeRep().Expr(), nil)}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, celProblem(issues)
	}
	e.prog, err = env.Program(checked, cel.CostLimit(costLimit), cel.MemoryLimit(memoryLimit))
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	e.chain, e.whole = chainOf(parsed.NativeRep().Expr()), wholeOf(parsed.NativeRep().Expr())
	e.inspect(parsed.NativeRep().Expr(), checked.OutputType())
	e.roams, e.roamed = roaming(parsed.NativeRep().Expr())
	e.readsNames = slices.ContainsFunc(e.refs, func(r place) bool {
		return slices.Contains([]string{"json", "query_all", "form_all", "multipart", "aws"}, r.root) && (len(r.steps) > 0 || e.roams)
	})
	e.takesQuery = e.showsAny("query", "query_all")
	return e, nil
}

// celProblem is the first problem of a compilation, without CEL's own picture.
func celProblem(issues *cel.Issues) error {
	if errs := issues.Errors(); len(errs) > 0 {
		return fmt.Errorf("%s (at character %d)", errs[0].Message, errs[0].Location.Column()+1)
	}
	return issues.Err()
}

// eval computes the value; present is false for an absent optional. An ambiguity
// that was read on the way is in the scope.
func (e *expr) eval(s *scope) (v jsonValue, present bool, err error) {
	if e.readsNames {
		s.checkCase(e)
	}
	if e.takesQuery && strings.Contains(s.req.rawQuery, maskedPair) {
		s.note(refuse(ProblemAmbiguous, "the rule reads the whole query, of which a value is masked where it is stored"))
	}
	return e.value(s)
}

// value is eval without the check of what it reads.
func (e *expr) value(s *scope) (v jsonValue, present bool, err error) {
	if s.mutation != nil && s.mutation.Unmarked && e.readsName("mutation", "marker") {
		s.note(refuse(ProblemIdentity, "the marker was left out"))
	}
	if e.chain != nil {
		v, err := e.chain.eval(s)
		return v, err == nil, err
	}
	return e.evalCEL(s)
}

// evalCEL computes the value with CEL, whatever the expression is.
func (e *expr) evalCEL(s *scope) (v jsonValue, present bool, err error) {
	out, _, err := e.prog.Eval(s)
	if err != nil {
		return jsonValue{}, false, err
	}
	return fromCEL(out)
}

// lacking names the parts of the request that it reads and that aren't there. One that it asks for with ? may be absent.
func (e *expr) lacking(s *scope) string {
	var out []string
	for _, r := range e.refs {
		for i := range r.steps {
			c := &chain{root: r.root, steps: r.steps[:i+1]}
			if c.root == "response" || !nativeShape(c.root, c.steps) {
				continue
			}
			if _, err := c.eval(s); err != nil {
				if name := r.steps[i].name; !strings.Contains(e.source, ".?"+name) && !strings.Contains(e.source, "[?'"+name) {
					out = append(out, c.String())
				}
				break
			}
		}
	}
	if out = slices.Compact(slices.Sorted(slices.Values(out))); len(out) == 0 {
		return ""
	}
	return " (not there: " + strings.Join(out, ", ") + ")"
}

// test computes a condition; anything but true or false is an error.
func (e *expr) test(s *scope) (bool, error) {
	v, present, err := e.eval(s)
	if s.problem != nil {
		return false, s.take()
	}
	if err != nil {
		return false, err
	}
	if !present || v.kind != jsonTrue && v.kind != jsonFalse {
		return false, errors.New("the condition is neither true nor false")
	}
	return v.kind == jsonTrue, nil
}

// readsBody reports whether the value can depend on the request's body.
func (e *expr) readsBody() bool {
	return e.readsAny("json", "graphql", "form", "form_all", "body_sha256", "body_md5", "multipart", "mail", "aws")
}

// readsAny reports whether it reads one of the roots.
func (e *expr) readsAny(roots ...string) bool {
	return slices.ContainsFunc(e.refs, func(r place) bool { return slices.Contains(roots, r.root) })
}

// ReadsAnswerBody reports whether the value can depend on the answer's body.
func (e *expr) ReadsAnswerBody() bool {
	return e != nil && slices.ContainsFunc(e.refs, func(r place) bool {
		if r.root != "response" {
			return false
		}
		return len(r.steps) == 0 || !slices.Contains([]string{"status", "header", "complete"}, r.steps[0].name)
	})
}

// readsName reports whether it reads root.name, or the root as a whole.
func (e *expr) readsName(root, name string) bool {
	return slices.ContainsFunc(e.refs, func(r place) bool {
		return r.covers(root, []placeStep{{name: name}})
	})
}

// readsGraphQL reports whether it reads GraphQL, of the request or an answer.
func (e *expr) readsGraphQL() bool {
	return slices.ContainsFunc(e.refs, func(r place) bool {
		return r.root == "graphql" || (r.root == "response" || r.root == "stored") && len(r.steps) > 0 && r.steps[0].name == "graphql"
	})
}

// readsClaim reports whether the value can depend on when the mutation was claimed.
func (e *expr) readsClaim() bool { return e != nil && e.readsName("mutation", "claimed_at") }

// reads reports whether the value can depend on a place.
func (e *expr) reads(at place) bool {
	if at.root == "response" {
		return false
	}
	return slices.ContainsFunc(e.refs, func(r place) bool {
		switch {
		case at.root == "json" || at.root == "form":
			if r.root == "body_sha256" || r.root == "body_md5" || r.root == "aws" || viewPlaces[r.root] != nil {
				return true
			}
			if at.root == "json" && r.root == "graphql" {
				return true // It may be in the document, or in a variable.
			}
			if at.root == "form" && r.root == "form_all" {
				return true
			}
		case at.root == "query" && r.root == "query_all":
			return true
		}
		return at.covers(r.root, r.steps)
	})
}

// refsOf collects every variable that an expression reads, each with the names
// and indexes that follow it in the text. Variables that a macro declares are
// among them where they are not told apart: that only ever finds too much.
func refsOf(e ast.Expr, out []place) []place {
	if root, steps, ok := accessOf(e); ok {
		return append(out, place{root: root, steps: steps, veiled: e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly()}.asJSON())
	}
	switch e.Kind() {
	case ast.SelectKind:
		return refsOf(e.AsSelect().Operand(), out)
	case ast.CallKind:
		return refsOfCall(e.AsCall(), out)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			out = refsOf(item, out)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			out = refsOf(entry.AsMapEntry().Value(), refsOf(entry.AsMapEntry().Key(), out))
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			out = refsOf(field.AsStructField().Value(), out)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			out = refsOf(part, out)
		}
	case ast.UnspecifiedExprKind, ast.IdentKind, ast.LiteralKind:
	}
	return out
}

// refsOfCall collects from a call. header_of reads no more than the header.
func refsOfCall(c ast.CallExpr, out []place) []place {
	args, before := c.Args(), len(out)
	if c.FunctionName() == "header_of" && len(args) == 2 && args[0].Kind() == ast.IdentKind {
		out = append(out, place{root: args[0].AsIdent(), steps: []placeStep{{name: "header"}}})
		args = args[1:]
	}
	if c.IsMemberFunction() {
		out = refsOf(c.Target(), out)
	}
	for _, arg := range args {
		out = refsOf(arg, out)
	}
	if c.FunctionName() == "sha256" || isNameIn(c) {
		for i := range out[before:] {
			out[before+i].veiled = true
		}
	}
	return out
}

// isNameIn reports whether a call asks for no more than whether a variable has a name.
func isNameIn(c ast.CallExpr) bool {
	args := c.Args()
	return c.FunctionName() == operators.In && len(args) == 2 && args[0].Kind() == ast.LiteralKind && args[1].Kind() == ast.IdentKind
}

// accessOf takes apart a.b, a.?b, a[0], a['b'] and a[?'b'] down to the variable.
func accessOf(e ast.Expr) (root string, steps []placeStep, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return strings.TrimPrefix(e.AsIdent(), "."), nil, true
	case ast.SelectKind:
		sel := e.AsSelect()
		root, steps, ok = accessOf(sel.Operand())
		return root, append(steps, placeStep{name: sel.FieldName()}), ok
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
		default:
			return "", nil, false
		}
		step, literal := literalStep(c.Args()[1])
		if !literal {
			return "", nil, false
		}
		root, steps, ok = accessOf(c.Args()[0])
		return root, append(steps, step), ok
	default:
		return "", nil, false
	}
}

// literalStep is the step of a constant index.
func literalStep(e ast.Expr) (placeStep, bool) {
	if e.Kind() != ast.LiteralKind {
		return placeStep{}, false
	}
	switch v := e.AsLiteral().(type) {
	case types.String:
		return placeStep{name: string(v)}, true
	case types.Int:
		return placeStep{kind: stepIndex, index: int(v)}, true
	}
	return placeStep{}, false
}
