package rules

import (
	"errors"
	"net/http"
	"sync"

	"github.com/vektah/gqlparser/v2/ast"

	"keep-proxy/internal/verdict"
)

// graphQLOf is the variable response.graphql. Its data is what the request's field came to, under the caller's alias;
// of the answer to a read of ours it is all data. It is left out where there is none. Its errors are a list.
func (a *answer) graphQLOf(req *Request) (*jsonValue, *Refusal) {
	v, problem := a.json()
	if problem == nil && (v == nil || v.kind != jsonObject) {
		if v = (&jsonValue{kind: jsonObject}); a.Status < http.StatusMultipleChoices {
			problem = refuse(ProblemAmbiguous, "the answer is none of GraphQL")
		}
	}
	if problem != nil {
		return nil, problem
	}
	out := objectOf("errors", jsonValue{kind: jsonArray})
	if errs, given := v.member("errors"); given && errs.kind != jsonNull {
		out.items[0] = *errs
	}
	data, given := v.member("data")
	if given && !a.asked && data.odd != oddItself {
		if g := req.read().graphQL(); g == nil || g.root == nil {
			given = false
		} else {
			data, given = data.member(g.root.Alias)
		}
	}
	if given && data.kind != jsonNull {
		out.set("data", *data)
	}
	out.markOdd()
	return &out, nil
}

// defaultGraphQL is uncertain of a success with errors or without data. Data, or null in its place, says that the
// operation began (§7.1.2): then no status proves that it did nothing.
var defaultGraphQL = sync.OnceValues(func() (*outcomeRule, error) {
	e, err := compileExpr("response.status < 300 ? !has(response.graphql.data) || response.graphql.errors != [] : has(response.json.data)", inAnswer)
	return &outcomeRule{when: e, kind: verdict.OpinionUncertain}, err
})

// wrap puts a value where the caller looks for it: under the field's alias, with no more than what was asked for.
func (g *graphQL) wrap(v *jsonValue) (jsonValue, error) {
	if g == nil || g.root == nil {
		return jsonValue{}, errors.New("the request has no field that the result can be put under")
	}
	picked := g.pick(v, g.root.SelectionSet)
	return objectOf("data", objectOf(g.root.Alias, picked)), nil
}

// pick takes what a selection asks for, by the names of fields, and puts it under their aliases. What isn't there is
// left out. A field with arguments or directives, or under a type's condition, is given as it is there.
func (g *graphQL) pick(v *jsonValue, set ast.SelectionSet) jsonValue {
	if v.kind != jsonArray && (v.kind != jsonObject || len(set) == 0) {
		return *v
	}
	out := jsonValue{kind: v.kind, odd: v.odd}
	if v.kind == jsonObject {
		g.pickInto(&out, v, set, map[string]bool{})
		return out
	}
	for i := range v.items {
		out.items = append(out.items, g.pick(&v.items[i], set))
	}
	return out
}

// pickInto takes what one selection asks for. Of an alias that comes twice, both selections count.
func (g *graphQL) pickInto(out, v *jsonValue, set ast.SelectionSet, seen map[string]bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			member, has := v.member(s.Name)
			before, again := out.member(s.Alias)
			if has && again && member.kind == jsonObject {
				g.pickInto(before, member, s.SelectionSet, map[string]bool{})
			} else if has && !again {
				out.set(s.Alias, g.pick(member, s.SelectionSet))
			}
		case *ast.InlineFragment:
			g.pickInto(out, v, s.SelectionSet, seen)
		case *ast.FragmentSpread:
			if f := g.document.Fragments.ForName(s.Name); f != nil && !seen[s.Name] {
				seen[s.Name] = true
				g.pickInto(out, v, f.SelectionSet, seen)
			}
		}
	}
}
