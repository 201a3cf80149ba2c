package rules

import (
	"crypto/md5" //nolint:gosec // see bodyMD5
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"keep-proxy/internal/coding"
)

// errMissing is a name that has no value here. Deriving refuses with it, judging
// is uncertain.
var errMissing = errors.New("no such value")

// scope is what one evaluation may read. It belongs to one goroutine.
type scope struct {
	req        *Request
	path, host map[string]string
	account    string
	mutation   *Mutation
	resp       *answer
	// mail says where in the body the mail is; nil where the rule knows none.
	mail  *mailFrom
	found *jsonValue
	// steps are the answers to the steps of a probe so far, by name.
	steps map[string]*answer
	// stored is the recorded request (inCompare only).
	stored *scope
	// copies says that a result is made, which may hold odd values as the API wrote them.
	copies bool

	query *pairs
	// indexes are of the query and the form, where they are long.
	indexes map[*pairs]*pairIndex
	// digest is what bodyDigest gives.
	digest string
	// celled holds what CEL has been given of the request, by variable, and celledFound what of found. An expression
	// that goes through a list asks for them at every element.
	celled      map[string]ref.Val
	celledFound struct {
		of *jsonValue
		as any
	}
	// problem is the first ambiguity that was read. An expression could hide it
	// behind a default, so it decides whatever the expression came to.
	problem *Refusal
}

// keepsEmpty reports whether the request's own path has empty segments, which only a rule that keeps them takes.
func (s *scope) keepsEmpty() bool { return s.req != nil && s.req.path.emptySegment }

// note keeps the first ambiguity.
func (s *scope) note(r *Refusal) {
	if s.problem == nil {
		s.problem = r
	}
}

// take returns the ambiguity found so far and forgets it.
func (s *scope) take() *Refusal {
	r := s.problem
	s.problem = nil
	return r
}

// json is the request's JSON; nil when the body holds none.
func (s *scope) json() *jsonValue {
	c := s.req.read()
	if c.problem != nil {
		s.note(c.problem)
	}
	if c.jsonProblem != nil {
		s.note(c.jsonProblem)
	}
	return c.json
}

// form is the request's form; empty when the body holds none.
func (s *scope) form() *pairs {
	c := s.req.read()
	if c.problem != nil {
		s.note(c.problem)
	}
	if c.form == nil {
		return &pairs{}
	}
	if c.form.problem != nil {
		s.note(c.form.problem)
	}
	return c.form
}

// queryPairs is the request's query.
func (s *scope) queryPairs() *pairs {
	if s.query == nil {
		p := parsePairs(s.req.rawQuery, "query")
		s.query = &p
	}
	if s.query.problem != nil {
		s.note(s.query.problem)
	}
	return s.query
}

// bodyDigest is the digest of the decoded body. One that can't be read counts as it is sent.
func (s *scope) bodyDigest() string {
	c := s.req.read()
	if c.problem != nil && !s.req.opaque() {
		s.note(c.problem)
	}
	if s.digest == "" {
		s.digest = c.digest()
	}
	return s.digest
}

// bodyMD5 is the MD5 of what an object store keeps: the body without aws-chunked alone.
func (s *scope) bodyMD5() string {
	if c := s.req.read(); c.problem != nil && !c.opaque {
		s.note(c.problem)
	}
	body := s.req.body
	if d := declaredBy(s.req.Header); slices.Contains(coding.Names(d.codings), awsChunked) {
		if body, _ = undoAWSChunked(d.lengths, body); body == nil {
			s.note(errCoded)
		}
	}
	sum := md5.Sum(body) //nolint:gosec // nothing is authenticated with it
	return hex.EncodeToString(sum[:])
}

// one is the single value of a name; a repeated name is ambiguous.
func (s *scope) one(values []string, what, name string) (string, bool) {
	if len(values) > 1 {
		s.note(refuse(ProblemAmbiguous, "the "+what+" repeats a name that the rule reads ("+name+"); send it once"))
	}
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// named looks a single value up under the roots that hold names.
func (s *scope) named(root, name string) (string, bool) {
	switch root {
	case "path":
		v, ok := s.path[name]
		return v, ok
	case "host":
		v, ok := s.host[name]
		return v, ok
	case "query":
		return s.pair(s.queryPairs(), "query", name)
	case "form":
		return s.pair(s.form(), "form", name)
	case "header":
		return s.header(name)
	}
	return "", false
}

// pair is the single value of a name in a query or a form.
func (s *scope) pair(p *pairs, what, name string) (string, bool) {
	if len(p.list) > longList {
		return s.single(s.indexOf(p), what, name)
	}
	if p.variant(name) {
		s.note(refuseVariant(what, name))
	}
	return s.one(p.values(name), what, name)
}

// header is the single value of a field. What stands for a text elsewhere must be
// one, or two values that are no UTF-8 would be the same.
func (s *scope) header(name string) (string, bool) {
	if name != strings.ToLower(name) {
		return "", false
	}
	if problem := s.req.unreadable(name); problem != nil {
		s.note(problem)
	}
	return s.one(s.req.Header[http.CanonicalHeaderKey(name)], "header", name)
}

// pairNames lists each name once, in order.
func pairNames(p *pairs) []string {
	var out []string
	seen := map[string]bool{}
	for _, one := range p.list {
		if !seen[one.name] {
			seen[one.name] = true
			out = append(out, one.name)
		}
	}
	return out
}

// Parent ends the chain of activations.
func (s *scope) Parent() cel.Activation { return nil }

// ResolveName gives CEL the variables of connector-format §2.
func (s *scope) ResolveName(name string) (any, bool) {
	switch name {
	case "method":
		return s.req.Method, true
	case "authority":
		return s.req.Authority(), true
	case "path":
		return s.path, true
	case "host":
		return s.host, true
	case "query", "form", "header":
		return s.onceMap(name), true
	case "query_all":
		p := s.queryPairs()
		return s.once(name, func() any { return allValues(p) }), true
	case "form_all":
		p := s.form()
		return s.once(name, func() any { return allValues(p) }), true
	case "json", "graphql":
		v := s.tree(name)
		return s.once(name, func() any { return celOrEmpty(v, types.DefaultTypeAdapter) }), true
	case "multipart", "jsonrpc", "mail", "aws":
		v := s.tree(name)
		return s.once(name, func() any { return celOrEmpty(v, oddAdapter{s}) }), true
	case "body_sha256":
		return s.bodyDigest(), true
	case "body_md5":
		return s.bodyMD5(), true
	case "account":
		return s.account, true
	}
	return s.resolveRecord(name)
}

// resolveRecord gives CEL the variables that only judging and probing have.
func (s *scope) resolveRecord(name string) (any, bool) {
	switch {
	case name == "stored" && s.stored != nil:
		return storedMap(s.stored), true
	case name == "mutation" && s.mutation != nil:
		return s.once(name, func() any { return s.mutation.fields() }), true
	case name == "response" && s.resp != nil:
		return answerMap(s.resp, s), true
	case name == "steps" && s.steps != nil:
		return s.stepAnswers(), true
	case name == "object" && s.mutation != nil && s.mutation.Object != "":
		return s.mutation.Object, true
	case name == "found" && s.found != nil:
		if s.celledFound.of != s.found {
			s.celledFound.of, s.celledFound.as = s.found, toCEL(s.found, oddAdapter{s})
		}
		return oddAdapter{s}.NativeToValue(s.celledFound.as), true
	}
	return types.WrapErr(errMissing), true
}

// once converts a variable for CEL, the first time that it is asked for.
func (s *scope) once(name string, convert func() any) ref.Val {
	v, done := s.celled[name]
	if !done {
		if s.celled == nil {
			s.celled = map[string]ref.Val{}
		}
		v = types.DefaultTypeAdapter.NativeToValue(convert())
		s.celled[name] = v
	}
	return v
}

// remember keeps the answer at hand under a step's name.
func (s *scope) remember(step string) {
	if step == "" {
		return
	}
	if s.steps == nil {
		s.steps = map[string]*answer{}
	}
	s.steps[step] = s.resp
}

// stepAnswers is the variable steps.
func (s *scope) stepAnswers() map[string]any {
	out := make(map[string]any, len(s.steps))
	for name, a := range s.steps {
		out[name] = answerMap(a, s)
	}
	return out
}

// fields are the record's variables.
func (m *Mutation) fields() map[string]any {
	return map[string]any{
		"id": m.ID, "marker": m.Marker, "vendor_key": m.VendorKey,
		"generation": int64(m.Generation), "claimed_at": m.ClaimedAt.UTC().Truncate(time.Second),
		"kept": m.kept(),
	}
}

// kept is the variable mutation.kept.
func (m *Mutation) kept() map[string]any {
	out := make(map[string]any, len(m.Kept))
	for name, text := range m.Kept {
		if v, err := parseJSON([]byte(text)); err == nil {
			out[name] = toCEL(v, types.DefaultTypeAdapter)
		}
	}
	return out
}

// allValues is every value by name, in order.
func allValues(p *pairs) map[string][]string {
	out := map[string][]string{}
	for _, one := range p.list {
		out[one.name] = append(out[one.name], one.value)
	}
	return out
}
