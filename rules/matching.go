package rules

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Match finds the operation of a request; see [Match] for how to read the answer. Operations are tried in the order of
// before. Two that fit without an order deny, as does a condition that can't be evaluated.
func (s *Set) Match(req *Request) Match {
	m, _ := s.match(req, false)
	return m
}

// Explain matches and says why each operation of the connector was taken or not.
func (s *Set) Explain(req *Request) Explanation {
	m, candidates := s.match(req, true)
	return Explanation{Match: m, Candidates: candidates}
}

// match is Match, with the reasons when they are asked for.
func (s *Set) match(req *Request, explain bool) (Match, []Candidate) {
	if req.Method == http.MethodTrace || req.Method == http.MethodConnect {
		return Match{Refusal: refuse(ProblemDenied, req.Method+" is always denied")}, nil
	}
	at := &req.path
	if req.asIs {
		at = nil // Nobody took the path apart.
	}
	p, vars := s.lookup(req.Scheme, req.Host, req.Port, at)
	if p == nil {
		m := Match{Unmatched: true}
		return m.checked(req), nil
	}
	c := p.connector()
	m := Match{Connector: c, Host: vars}
	if req.asIs {
		m.Refusal = refuse(ProblemAmbiguous, "the rules were changed while the request was read; send it again")
		return m, nil
	}
	candidates := c.match(&m, req, explain)
	return m.checked(req), candidates
}

// Match matches a request with this connector alone, for records that are pinned to an older version. The match is
// Unmatched when the host is not one of the connector's, or the path isn't.
func (c *Connector) Match(req *Request) Match { return c.matchAt(c.hosts, req) }

func (c *Connector) matchAt(hosts []*hostPattern, req *Request) Match {
	vars, fits := c.covers(hosts, req)
	if !fits {
		return Match{Unmatched: true}
	}
	m := Match{Connector: c, Host: vars}
	c.match(&m, req, false)
	return m.checked(req)
}

// match fills in the operation, or why there is none.
func (c *Connector) match(m *Match, req *Request, explain bool) []Candidate {
	var told []Candidate
	tell := func(op *Operation, matched bool, reason string) {
		if explain {
			told = append(told, Candidate{Operation: op.Name, Matched: matched, Reason: reason})
		}
	}
	for _, op := range c.Operations {
		fit := op.fit(req, m.Host, explain)
		switch {
		case !fit.ok:
			tell(op, false, fit.reason)
			continue
		case fit.problem == refuseBatch && m.Operation == nil && m.Refusal == nil && !m.NeedsBody:
			tell(op, false, "it is told by each call of a list")
			c.matchBatch(m, req)
			return told
		case m.Operation != nil:
			if !m.Operation.goesBefore(op) && !fit.needsBody && fit.problem == nil {
				m.Refusal = refuse(ProblemDenied, "both "+m.Operation.Name+" and "+op.Name+" fit this request and no rule says which goes first")
			}
			tell(op, false, "it fits, but "+m.Operation.Name+" goes first")
			continue
		case m.Refusal != nil || m.NeedsBody:
			tell(op, false, "not decided: an operation that goes first could not be")
			continue
		}
		tell(op, fit.problem == nil && !fit.needsBody, fit.reason)
		m.decide(op, fit)
	}
	switch {
	case m.Refusal != nil || m.NeedsBody:
	case m.Operation == nil:
		c.unmatched(m, req)
	case m.Effect.passes():
		if op := c.resembling(req, m.Host, m.Operation); op != nil {
			m.Effect, m.Refusal = EffectDeny, refuseResembling(req, op)
		}
	}
	return told
}

// decide takes the first operation that fits, or may fit.
func (m *Match) decide(op *Operation, fit fit) {
	switch {
	case fit.needsBody:
		m.NeedsBody = true
	case fit.problem != nil:
		m.Refusal = fit.problem
	default:
		m.Operation, m.Effect, m.Path = op, op.Effect, fit.path
		if op.Effect == EffectDeny {
			m.Refusal = refuse(ProblemDenied, "the rule "+op.Name+" of "+op.Connector.Name+" denies this request")
		}
	}
}

// goesBefore reports whether the rule names the other in before.
func (op *Operation) goesBefore(other *Operation) bool { return slices.Contains(op.before, other.Name) }

// unmatched is what happens to a request that no operation declares.
func (c *Connector) unmatched(m *Match, req *Request) {
	if c.broken != nil {
		m.Refusal = refuse(ProblemDenied, "the connector "+c.Name+" can't be used: "+c.broken.Problem+"; "+c.broken.Fix)
		return
	}
	if isSafe(req.Method) && (c.ReadsSafe || slices.ContainsFunc(c.readPaths, func(p *pathPattern) bool { return p.fits(&req.path) })) {
		if op := c.resembling(req, m.Host, nil); op != nil {
			m.Refusal = refuseResembling(req, op)
			return
		}
		m.Effect = EffectRead
		return
	}
	if byGraphQL := func(op *Operation) bool { return op.graphQL }; slices.ContainsFunc(c.Operations, byGraphQL) && req.BodyLoaded() {
		if g := req.read().graphQL(); g != nil {
			m.Refusal = cmp.Or(g.problem, refuse(ProblemUnmatched, "the "+g.named()+" of GraphQL is no operation of the connector "+c.Name+
				"; add one to its file, with match.graphql"))
			return
		}
	}
	m.Refusal = refuse(ProblemUnmatched, req.Method+" on this path is no operation of the connector "+c.Name+
		" and not among its reads; add an operation to its file. A POST that only reads passes with effect: read, and queries of GraphQL with match.graphql")
}

// isSafe knows the safe methods that may pass (RFC 9110 §9.2.1).
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// fit is how one operation stands to a request.
type fit struct {
	ok        bool
	reason    string
	path      map[string]string
	needsBody bool
	problem   *Refusal
}

// fit tries every match of the operation. Reasons are put together only to explain.
func (op *Operation) fit(req *Request, host map[string]string, explain bool) fit {
	var reasons []string
	for _, m := range op.matches {
		f := m.fit(req, host, explain)
		if f.ok {
			return f
		}
		if explain {
			reasons = append(reasons, f.reason)
		}
	}
	return fit{reason: strings.Join(slices.Compact(reasons), "; or ")}
}

// fit tries one match. A condition that can't be evaluated fits, with a problem:
// that it is false can't be said.
func (m *matcher) fit(req *Request, host map[string]string, explain bool) fit {
	because := func(parts ...string) (reason string) {
		if explain {
			reason = strings.Join(parts, "")
		}
		return reason
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, req.Method) {
		if !explain {
			return fit{}
		}
		return fit{reason: "its method is " + strings.Join(m.methods, " or ")}
	}
	vars, ok := m.variables(req)
	if !ok {
		return fit{reason: because("its path is ", m.path.source)}
	}
	f := fit{ok: true, reason: "method and path fit", path: vars}
	switch body := req.BodyLoaded(); {
	case !body && (m.graphQL != nil || m.rpc != nil || m.actions != nil || m.mail != nil || m.when != nil && m.when.readsBody()):
		f.needsBody, f.reason = true, "it is told by the body"
		return f
	case m.graphQL != nil:
		if f.ok, f.problem = m.graphQL.fit(req); !f.ok {
			return fit{reason: "it takes another operation or field of GraphQL"}
		}
		if f.problem != nil {
			f.reason = f.problem.Detail
		}
	case m.rpc != nil:
		var takes bool
		if takes, f.problem = m.takesCall(req); f.problem == nil && !takes {
			return fit{reason: because("it takes calls of JSON-RPC: ", strings.Join(m.rpc, " or "))}
		}
	case m.actions != nil:
		var takes bool
		if takes, f.problem = m.takesAction(req); f.problem == nil && !takes {
			return fit{reason: because("it takes actions of AWS: ", strings.Join(m.actions, " or "))}
		}
	case m.mail != nil:
		f.problem = (&scope{req: req, mail: m.mail}).view("mail").problem
	}
	if m.when == nil || f.problem != nil {
		return f
	}
	holds, err := m.when.test(&scope{req: req, path: vars, host: host, mail: m.mail})
	switch {
	case err != nil:
		f.problem = conditionProblem(m.when, err)
		f.reason = because("its condition can't be evaluated: ", m.when.source)
	case !holds:
		return fit{reason: because("its condition is false: ", m.when.source)}
	default:
		f.reason = "method, path and condition fit"
	}
	return f
}

// wholePath names what the path is where a match has no pattern. No expression and no place
// can: it is payload, or requests to two paths would be the same.
const wholePath = ""

// variables are those of the path, or the whole of it where no pattern takes it apart.
func (m *matcher) variables(req *Request) (vars map[string]string, ok bool) {
	if m.path != nil {
		return m.path.match(&req.path)
	}
	return map[string]string{wholePath: req.path.plain()}, true
}

// conditionProblem is the refusal for a condition that can't be evaluated.
func conditionProblem(e *expr, err error) *Refusal {
	if r := new(Refusal); asRefusal(err, &r) {
		return r
	}
	return refuse(ProblemIdentity, "the rule's condition can't be evaluated on this request: "+e.source)
}

// Judge judges a request that was matched before its content was read. It looks for what is judged whatever the
// operation, and may be in content.
func (m *Match) Judge(req *Request) *Refusal {
	again := *m
	again.NeedsBody = false
	return again.checked(req).Refusal
}

// checked adds what is judged whatever the operation: escaped slashes and method
// overrides.
func (m *Match) checked(req *Request) Match {
	if req.path.emptySegment && !m.NeedsBody && !m.keepsEmpty(req) {
		m.Effect = EffectDeny
		m.Refusal = refuse(ProblemAmbiguous, "the path holds an empty segment (\"//\"), which servers read in two ways; "+
			"a rule that fits it may say empty_segments: keep (a path that ends in a slash fits only a pattern that does)")
	}
	if m.Refusal != nil || m.NeedsBody {
		return *m
	}
	if req.path.encodedSlash && !isSafe(req.Method) && (m.Operation == nil || !m.Operation.encodedSlash) {
		m.Effect = EffectDeny
		m.Refusal = refuse(ProblemAmbiguous, "the path holds an escaped slash, which servers read in two ways; the rule may say encoded_slash: keep")
		return *m
	}
	if req.path.encodedSlash && m.Effect == EffectMutation && m.Operation != nil && m.Operation.joinsSlash(&req.path) {
		m.Effect = EffectDeny
		m.Refusal = refuse(ProblemAmbiguous, "the path holds an escaped slash where the rule takes several segments for one value: another path has the same")
		return *m
	}
	if found := m.override(req); found != "" {
		m.Effect = EffectDeny
		m.Refusal = refuseOverride(found)
	}
	return *m
}

// keepsEmpty reports whether a rule says that the path is another one than with one slash. For a read that only the
// connector's reads declare, any operation at that path says so.
func (m *Match) keepsEmpty(req *Request) bool {
	if m.Operation != nil || m.Connector == nil || m.Effect != EffectRead {
		return m.Operation != nil && m.Operation.emptySegments
	}
	return slices.ContainsFunc(m.Connector.Operations, func(op *Operation) bool {
		return op.emptySegments && slices.ContainsFunc(op.matches, func(one *matcher) bool { return one.path != nil && one.path.fits(&req.path) })
	})
}

// bind finds the variables of a request that is known to be this operation's.
func (op *Operation) bind(req *Request) *scope {
	s := &scope{req: req, path: map[string]string{}, host: map[string]string{}, mail: op.mailOf(req)}
	vars, fits := matchHost(op.Connector.hosts, req)
	if !fits {
		vars, _ = matchHost(op.Connector.fileHosts, req)
	}
	maps.Copy(s.host, vars)
	maps.Copy(s.path, op.pathVars(req, s.host))
	return s
}

// pathVars are the variables of the match that the request fits. Conditions may not be told any more, as with a masked
// body. Then they are those of the first match whose method and path fit.
func (op *Operation) pathVars(req *Request, host map[string]string) map[string]string {
	var first map[string]string
	for _, m := range op.matches {
		switch f := m.fit(req, host, false); {
		case f.ok && f.problem == nil && !f.needsBody:
			return f.path
		case first == nil:
			first, _ = m.variables(req)
		}
	}
	return first
}

// Match says which operation a request is. The zero value denies.
//
// Read it in this order: Refusal set: refuse with it. NeedsBody: read the whole
// body, call [Request.WithBody], match again. Unmatched: the host is no
// connector's, or this path of it. Then the caller's own policy applies. Otherwise Effect decides.
type Match struct {
	Effect    Effect
	Connector *Connector
	// Operation is nil for a request that only Connector's reads declare.
	Operation *Operation
	// NeedsBody says that the decision depends on the body.
	NeedsBody bool
	// Unmatched says that no connector declares the host, or this path of it.
	Unmatched bool
	// Refusal is set when the request must not be sent.
	Refusal *Refusal
	// Path and Host are the variables of the patterns that matched.
	Path, Host map[string]string
}

// Candidate is one operation that was looked at, and why it was taken or not.
type Candidate struct {
	Operation string `json:"operation"`
	Matched   bool   `json:"matched"`
	Reason    string `json:"reason"`
}

// Explanation is a match with the reasons for and against every operation of the
// connector.
type Explanation struct {
	Match      Match
	Candidates []Candidate
}

// resembling finds the operation for which servers may take a request that would pass unrecorded. It records what it
// resembles, or denies it. Many servers answer HEAD by doing what GET does (RFC 9110 §9.3.2). Many take a path in
// another case or with a slash at its end for the same. The operation that the request fits is taken, nil for none; the
// one that is found must go before it. A nil result says that there is none.
func (c *Connector) resembling(req *Request, host map[string]string, taken *Operation) *Operation {
	switch req.Method {
	case http.MethodOptions:
		return nil
	case http.MethodHead:
		req = req.copy()
		req.Method = http.MethodGet
	}
	if req.path.emptySegment { // Some servers merge slashes.
		req = req.copy()
		req.path = pathOf(slices.DeleteFunc(slices.Clone(req.path.segments), func(s string) bool { return s == "" }), req.path.slash)
	}
	i := slices.IndexFunc(c.Operations, func(op *Operation) bool {
		return !op.Effect.passes() && (taken == nil || op.goesBefore(taken)) &&
			slices.ContainsFunc(op.matches, func(m *matcher) bool { return m.resembles(req, host) })
	})
	if i < 0 {
		return nil
	}
	return c.Operations[i]
}

// refuseResembling is the refusal of a request that servers may take for one of op.
func refuseResembling(req *Request, op *Operation) *Refusal {
	return refuse(ProblemUnmatched, "servers may take this "+req.Method+" for "+op.Name+" of the connector "+op.Connector.Name+
		", and it would pass unrecorded: they may treat HEAD as GET, and a path in another case, with a slash at its end or several slashes as the same; "+
		"send what that operation matches, or add an operation with effect: read for this to the file")
}

// resembles reports whether a server may take the request for one that fits. A condition that
// can't be evaluated may hold.
func (m *matcher) resembles(req *Request, host map[string]string) bool {
	if len(m.methods) > 0 && !slices.Contains(m.methods, req.Method) {
		return false
	}
	vars, ok := m.variables(req)
	if m.path != nil {
		vars, ok = m.path.nearly(&req.path)
	}
	if ok && m.graphQL != nil && req.BodyLoaded() {
		ok, _ = m.graphQL.fit(req)
	}
	if ok && m.rpc != nil && req.BodyLoaded() {
		takes, problem := m.takesCall(req)
		ok = takes || problem != nil && problem != refuseBatch
	}
	if ok && m.actions != nil && req.BodyLoaded() {
		takes, problem := m.takesAction(req)
		ok = takes || problem != nil
	}
	if !ok || m.when == nil {
		return ok
	}
	if m.when.readsBody() && !req.BodyLoaded() {
		return true
	}
	holds, err := m.when.test(&scope{req: req, path: vars, host: host, mail: m.mail})
	return holds || err != nil
}

// nearly is match, whatever the case of literals and whether or not there is a slash at the end.
func (p *pathPattern) nearly(at *path) (map[string]string, bool) {
	loose := path{wire: at.wire}
	for _, s := range at.segments {
		loose.segments = append(loose.segments, lowerASCII(s))
	}
	if !p.folded().fits(&loose) {
		return nil, false
	}
	return p.variables(&path{wire: at.wire, segments: at.segments, slash: p.slash}), true
}
