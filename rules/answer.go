package rules

import (
	"net/http"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// answer is a response with its body parsed at most once.
type answer struct {
	*Response
	parsed *content
	// asked says that it answers a read of ours. Such an answer tells what isn't there from what can't be read.
	asked bool
	// celled is what CEL has been given of the body for a scope, by the name of the member.
	celled map[string]ref.Val
	scope  *scope
}

// newAnswer wraps a response; nil for nil.
func newAnswer(resp *Response) *answer {
	if resp == nil {
		return nil
	}
	return &answer{Response: resp}
}

// askedAnswer wraps the answer to a read of ours.
func askedAnswer(resp *Response) *answer {
	a := newAnswer(resp)
	if a != nil {
		a.asked = true
	}
	return a
}

// lacksJSON reports whether a read succeeded and its answer holds no JSON, though a success has content. It is the page
// of a proxy or of a login, or empty. Read as an empty object, as other bodies without JSON are, it would be a listing
// of nothing.
func (a *answer) lacksJSON() bool {
	return a.asked && a.parsed.json == nil && a.parsed.jsonProblem == nil &&
		a.Status >= 200 && a.Status <= 299 && a.Status != http.StatusNoContent && a.Status != http.StatusResetContent
}

// json is the answer's JSON; nil when the body holds none. A body that was cut, or
// that can't be read without guessing, is refused.
func (a *answer) json() (*jsonValue, *Refusal) {
	if !a.Complete {
		return nil, refuse(ProblemAmbiguous, "the answer's body is not complete")
	}
	if a.parsed == nil {
		a.parsed = parseAnswer(a.Header, a.Body)
	}
	if a.parsed.problem != nil {
		return nil, a.parsed.problem
	}
	if a.lacksJSON() {
		return nil, refuse(ProblemAmbiguous, "the answer is no JSON, such as a page of a proxy")
	}
	return a.parsed.json, a.parsed.jsonProblem
}

// text is the answer's content as text, whatever it is declared as. One that was cut, or that can't be read in its
// charset, is refused.
func (a *answer) text() (string, *Refusal) {
	if _, problem := a.json(); problem != nil && (a.parsed == nil || a.parsed.problem != nil) {
		return "", problem
	}
	if !utf8.Valid(a.parsed.bytes) {
		return "", refuse(ProblemAmbiguous, "the answer's body is no UTF-8 text")
	}
	return string(a.parsed.bytes), nil
}

// head is what CEL sees of the answer besides its body. Several lines of a field
// are joined.
func (a *answer) head() traits.Mapper {
	header := make(map[string]string, len(a.Header))
	for name, values := range a.Header {
		header[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{
		"status": int64(a.Status), "header": header, "complete": a.Complete,
	})
}

// answerMap is the variable response, or one of steps. Reading json, graphql, jsonrpc or text of an unreadable body is noted in the
// scope, where no default can hide it. Conditions that are decided by the head alone note nothing.
func answerMap(a *answer, s *scope) *lazyMap {
	head := a.head()
	return &lazyMap{head, func(name string) (ref.Val, bool) {
		if name != "json" && name != "text" && name != "graphql" && name != "jsonrpc" && name != "xml" {
			return head.Find(types.String(name))
		}
		if v, done := a.celled[name]; done && a.scope == s {
			return v, true
		}
		v, problem := a.body(name, s)
		if problem != nil {
			s.note(problem)
			return nil, false
		}
		if a.scope != s {
			a.celled, a.scope = map[string]ref.Val{}, s
		}
		a.celled[name] = types.DefaultTypeAdapter.NativeToValue(v)
		return a.celled[name], true
	}}
}

// lazyMap is a map to CEL whose members are made when they are asked for.
type lazyMap struct {
	traits.Mapper
	find func(name string) (ref.Val, bool)
}

// Find implements traits.Mapper.
func (m *lazyMap) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	return m.find(string(name))
}

// Get implements traits.Indexer.
func (m *lazyMap) Get(key ref.Val) ref.Val {
	v, ok := m.Find(key)
	if !ok && v == nil {
		return types.NewErr("no such key: %v", key)
	}
	return v
}

// Contains implements traits.Container.
func (m *lazyMap) Contains(key ref.Val) ref.Val {
	v, ok := m.Find(key)
	if !ok && v != nil {
		return v
	}
	return types.Bool(ok)
}

// body is the member json, graphql or text for CEL.
func (a *answer) body(name string, s *scope) (any, *Refusal) {
	if name == "text" {
		return a.text()
	}
	if name == "xml" {
		v, problem := a.xml()
		return celOrEmpty(v, oddAdapter{s}), problem
	}
	v, problem := a.json()
	switch {
	case name == "graphql":
		v, problem = a.graphQLOf(s.req)
	case name == "jsonrpc" && !isRPC(v):
		v = nil
	}
	return celOrEmpty(v, oddAdapter{s}), problem
}

// Response is an answer as far as it was read.
type Response struct {
	// Status is the final status; 1xx answers are not shown to rules.
	Status int
	// Header holds the answer's fields by their canonical names.
	Header http.Header
	// Trailer holds its trailer fields, which no condition reads.
	Trailer http.Header
	// Body is what was read; when Complete is false no condition may read it.
	Body []byte
	// Complete says that the whole body was read and is in Body.
	Complete bool
}
