package rules

import (
	"net/http"
	"slices"

	"cel.dev/cel-go/common/ast"

	"keep-proxy/internal/strictyaml"
)

// What follows is for those who look at rules, and not at requests: [keep-proxy/rules/lint].

// Where is a place in a connector's file.
type Where = strictyaml.Place

// Expr is an expression of a rule.
type Expr = expr

// Source is the expression as it is written.
func (e *expr) Source() string { return e.source }

// At is where it stands.
func (e *expr) At() Where { return e.at }

// Tree is the expression as it was parsed.
func (e *expr) Tree() ast.NavigableExpr { return ast.NavigateAST(e.tree) }

// AlwaysBool reports whether its value is true or false, whatever the request.
func (e *expr) AlwaysBool() bool { return e.alwaysBool }

// Ref is a value that an expression reads: a variable, and the names below it. An index is
// written [0].
type Ref struct {
	Root  string
	Names []string
	// Veiled says that the expression's value doesn't show it: only whether it is there, or a digest.
	Veiled bool
}

// Name is the first name below the variable; "" for the variable as a whole.
func (r Ref) Name() string {
	if len(r.Names) == 0 {
		return ""
	}
	return r.Names[0]
}

// Refs are what it can read, as far as that is plain from its text.
func (e *expr) Refs() []Ref {
	out := make([]Ref, len(e.refs))
	for i, r := range e.refs {
		out[i] = refOf(r.root, r.steps)
		out[i].Veiled = r.veiled
	}
	return out
}

// RefOf takes apart a.b, a.?b, a[0] and a['b'] down to the variable.
func RefOf(x ast.Expr) (Ref, bool) {
	root, steps, ok := accessOf(x)
	return refOf(root, steps), ok
}

func refOf(root string, steps []placeStep) Ref {
	r := Ref{Root: root}
	for _, s := range steps {
		if s.kind != stepName {
			s.name = s.String()
		}
		r.Names = append(r.Names, s.name)
	}
	return r
}

// At is where the connector is named.
func (c *Connector) At() Where { return c.at }

// Facts are what an operation's rule matches, reads and asks.
type Facts struct {
	At      Where
	Matches []MatchFacts
	// Telling are the expressions that say which mutation it is: those of identity, subkey and account.
	Telling []TellingFacts
	// Named are the places of the request's body that the rule tells people of, or takes for identity. Those that don't
	// count as payload are left out.
	Named []Ref
	// Headers are the header fields that are payload.
	Headers []string
	// Outcome are the conditions of the outcome list, in order.
	Outcome []*Expr
	// Ignores says that payload.ignore names a place.
	Ignores bool
	// KeyAt is the place of the native key, "" for none.
	KeyAt string
	// Markers are the innermost names of the places where the marker is written; none for what it is appended to.
	Markers []string
	// Probes are all reads of all probes, steps among them, by probe.
	Probes [][]ProbeFacts
}

// MatchFacts is one way in which a request can be an operation.
type MatchFacts struct {
	At      Where
	Methods []string // none for any
	Path    string   // "" for any
	When    *Expr    // nil for any
}

// TellingFacts is an expression that says which mutation it is.
type TellingFacts struct {
	*Expr
	// What is its key in the rule, such as identity.order.
	What string
	// Hashed says that it reads a secret place, so that its digest is stored.
	Hashed bool
	// ReadsKey says that it reads the native key or a part of it. HoldsKey says that it reads all of what holds the
	// key.
	ReadsKey, HoldsKey bool
}

// ProbeFacts is one read of a probe.
type ProbeFacts struct {
	At Where
	// Narrowing are the expressions by which an object can be left out, Observed the conditions on a
	// state.
	Narrowing, Observed []*Expr
	Tie                 Tie
	Ours                *Expr
	// AbsenceIsProof is what the rule says of an absence; Listing that it reads a list, Paged that
	// it knows how that goes on.
	AbsenceIsProof, Listing, Paged bool
	// Sees is what is seen in an answer, and the expression that decides so. It is retry where that
	// depends on the script's request.
	Sees func(*Response) (*Expr, Seen)
}

// Facts are the facts of an operation, or of an undo.
func (op *Operation) Facts() Facts {
	f := Facts{At: op.at, Headers: op.headers, Ignores: op.ignores}
	for _, m := range op.matches {
		one := MatchFacts{At: m.at, Methods: m.methods, When: m.when}
		if m.path != nil {
			one.Path = m.path.source
		}
		f.Matches = append(f.Matches, one)
	}
	for _, o := range op.outcome {
		f.Outcome = append(f.Outcome, o.when)
	}
	for _, mk := range op.markers {
		for _, at := range mk.sets() {
			f.Markers = append(f.Markers, at.lastName())
		}
	}
	if op.NativeKey != nil {
		f.KeyAt = op.NativeKey.at.where()
	}
	for _, e := range op.telling() {
		one := TellingFacts{Expr: e.expr, What: e.name, Hashed: e.readsSecret(op.secret)}
		if k := op.NativeKey; k != nil {
			one.ReadsKey = e.readsAt(k.at)
			one.HoldsKey = !one.ReadsKey && e.reads(k.at)
		}
		f.Telling = append(f.Telling, one)
	}
	named := append(op.describe.exprs(), op.manualCheck.exprs()...)
	for _, e := range op.identity {
		named = append(named, e.expr)
	}
	for _, e := range named {
		for _, r := range e.refs {
			if slices.Contains([]string{"json", "graphql", "form"}, r.root) && len(r.steps) > 0 && !op.insignificant.holds(r) {
				f.Named = append(f.Named, refOf(r.root, r.steps))
			}
		}
	}
	for _, p := range op.probes() {
		var reads []ProbeFacts
		for _, one := range p.reads() {
			reads = append(reads, one.facts())
		}
		f.Probes = append(f.Probes, reads)
	}
	return f
}

func (p *Probe) facts() ProbeFacts {
	f := ProbeFacts{
		At: p.at, Tie: p.tie, Ours: p.ours, AbsenceIsProof: p.absenceIsProof, Listing: p.candidates != nil, Paged: p.pages != nil, Sees: p.sees,
	}
	f.Narrowing = append(p.path.exprs(), p.expect, p.candidates, p.ours)
	for _, t := range []*template{p.query, p.header, p.json} {
		f.Narrowing = append(f.Narrowing, t.exprs()...)
	}
	if p.pages != nil {
		f.Narrowing = append(append(f.Narrowing, p.pages.more), p.pages.set.exprs()...)
	}
	f.Narrowing = slices.DeleteFunc(f.Narrowing, func(e *expr) bool { return e == nil })
	for _, o := range p.observe {
		f.Observed = append(f.Observed, o.when)
	}
	return f
}

// emptyScope is that of a request that says nothing: what depends on it is an error.
func emptyScope(resp *Response) *scope {
	req := (&Request{Method: http.MethodGet, Header: http.Header{}}).WithBody(nil)
	return &scope{req: req, path: map[string]string{}, host: map[string]string{}, mutation: &Mutation{}, resp: askedAnswer(resp)}
}

// sees is what is seen in an answer, and the expression that decides so.
func (p *Probe) sees(resp *Response) (*expr, Seen) {
	s := emptyScope(resp)
	if p.expect == nil && resp.Status != http.StatusOK {
		return nil, SeenRetry
	}
	if p.expect != nil {
		if holds, err := p.expect.test(s); err != nil || !holds {
			return nil, SeenRetry
		}
	}
	for _, o := range p.observe {
		holds, err := o.when.test(s)
		switch {
		case err != nil || holds && o.step != 0:
			return nil, SeenRetry
		case holds:
			return o.when, o.is
		}
	}
	if p.candidates == nil {
		return nil, SeenRetry
	}
	if list, err := required(p.candidates, s); err != nil || list.kind != jsonArray || len(list.items) > 0 {
		return nil, SeenRetry
	}
	if p.pages != nil && p.pages.more != nil {
		if more, err := p.pages.more.test(s); err != nil || more {
			return nil, SeenRetry
		}
	}
	return p.candidates, SeenAbsent
}

// Sees is what one look shows, and the condition that decides so. It is pending where that depends
// on the script's request.
func (w *Watch) Sees(resp *Response) (*Expr, Watched) {
	switch seen, _ := w.judge(emptyScope(resp), resp); seen {
	case WatchDone:
		return w.until, seen
	case WatchFailed:
		return w.failed, seen
	case WatchPending:
	}
	return nil, WatchPending
}
