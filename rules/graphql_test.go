package rules

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

const graphQLHead = "POST https://api.test/graphql\nContent-Type: application/json\n\n"

// graphQLRules are a read, a mutation that is known by its arguments, and one that takes two fields.
const graphQLRules = connectorHead + `
  - {name: query, match: {method: POST, path: /graphql, graphql: {operation: query, persisted: [known]}}, effect: read}
  - name: create
    match: {method: POST, path: /graphql, graphql: {operation: mutation, field: create}}
    effect: mutation
    describe: "Create {graphql.args.input.title}"
    identity: {title: graphql.args.input.title, by: "[graphql.operation, graphql.field, graphql.?name.orValue('')].join(' ')"}
    payload: {ignore: [graphql.args.input.seed], minor: [graphql.args.input.note], normalise: {graphql.args.input.text: whitespace}}
    native_key: {graphql: input.id, format: uuid4, when_present: keep_first}
    reconcile:
      - probe:
          post: /graphql
          json: {query: "query($id: ID!) { items(id: $id) { id } }", variables: {id: {cel: mutation.vendor_key}}}
          expect: response.status == 200 && response.graphql.errors == []
          candidates: response.graphql.data.items
          ours: found.id == mutation.vendor_key
          tie: vendor_key
          id: found.id
          result: {graphql: {success: true, item: {cel: found}}}
    manual_check: look
  - name: change
    match: {method: POST, path: /graphql, graphql: {operation: mutation, field: [rename, remove]}}
    effect: mutation
    identity: {id: string(graphql.args.id)}
    reconcile: [{none: why}]
    manual_check: look
`

// graphQLRequest makes a request of the text that begins with its first line.
func graphQLRequest(tb testing.TB, text string) *Request {
	tb.Helper()
	head, body, _ := strings.Cut(text, "\n\n")
	line, field, typed := strings.Cut(head, "\n")
	if typed {
		return request(tb, line, body, field)
	}
	return request(tb, line, body)
}

// graphQLBody is a request of a document, with the other members as JSON.
func graphQLBody(document, more string) string {
	return graphQLHead + `{"query":` + strconv.Quote(document) + more + "}"
}

func TestOnlyWhatSurelyIsAQueryOfGraphQLIsARead(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	form := strings.Replace(graphQLHead, "json", "x-www-form-urlencoded", 1)
	for _, tc := range []struct {
		name, request string
		refusal       Problem // "" for a read
	}{
		{"a query", graphQLHead + `{"query":"query { a }"}`, ""},
		{"the short form, with variables", graphQLHead + `{"query":"{ a }","variables":{"text":"mutation"},"operationName":"A","extensions":{"client":{}}}`, ""},
		{"another type of JSON", strings.Replace(graphQLHead, "application/json", "application/graphql+json; charset=utf-8", 1) + `{"query":"{ a }"}`, ""},
		{"names that hold the words", graphQLHead + `{"query":"{ mutationType subscriptions _mutation mutation }","extensions":null,"operationName":null}`, ""},
		{"the word in a comment", graphQLHead + `{"query":"{ a } # mutation"}`, ""},
		{"a query that is named beside a mutation", graphQLHead + `{"query":"query A { a } mutation B { b }","operationName":"A"}`, ""},
		{"a list of queries", graphQLHead + `[{"query":"{ a }"},{"query":"{ b }"}]`, ""},
		{"a stored query that the rule names", graphQLHead + `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"KNOWN"}}}`, ""},
		{"a fragment that holds itself in a query, which the server refuses", graphQLHead + `{"query":"{ ...F } fragment F on Q { ...F }"}`, ""},
		{"JSON that isn't declared as such", "POST https://api.test/graphql\n\n" + `{"query":"{ a }"}`, ""},
		{"JSON declared as a form, as curl does", form + ` {"query":"{ a }"}`, ""},
		{"a mutation without a rule", graphQLHead + `{"query":"mutation { a }"}`, ProblemUnmatched},
		{"a mutation behind a query", graphQLHead + `{"query":"query A { a }mutation B { b }","operationName":"B"}`, ProblemUnmatched},
		{"a mutation in escapes of JSON", graphQLHead + `{"query":"\u006dutation { a }"}`, ProblemUnmatched},
		{"a mutation between ignored characters", graphQLHead + `{"query":",\ufeffmutation\ufeff{ a }"}`, ProblemUnmatched},
		{"a subscription", graphQLHead + `{"query":"subscription { a }"}`, ProblemUnmatched},
		{"several operations", graphQLHead + `{"query":"query A { a } query B { b }"}`, ProblemAmbiguous},
		{"several operations of the name", graphQLHead + `{"query":"query A { a } mutation A { b }","operationName":"A"}`, ProblemAmbiguous},
		{"an operation that isn't there", graphQLHead + `{"query":"query A { a } query B { b }","operationName":"C"}`, ProblemAmbiguous},
		{"a name that is no text", graphQLHead + `{"query":"query A { a }","operationName":{}}`, ProblemAmbiguous},
		{"no operation", graphQLHead + `{"query":"fragment A on T { a }"}`, ProblemAmbiguous},
		{"a list with a mutation", graphQLHead + `[{"query":"{ a }"},{"query":"mutation { create }"}]`, ProblemAmbiguous},
		{"a list with something else", graphQLHead + `[{"query":"{ a }"},{"id":1}]`, ProblemAmbiguous},
		{"an empty list", graphQLHead + `[]`, ProblemUnmatched},
		{"no document", graphQLHead + `{"operationName":"A"}`, ProblemUnmatched},
		{"an empty document", graphQLHead + `{"query":""}`, ProblemUnmatched},
		{"a document that is no text", graphQLHead + `{"query":{"a":1}}`, ProblemAmbiguous},
		{"a document that can't be parsed", graphQLHead + `{"query":"query {"}`, ProblemAmbiguous},
		{"a stored document by hash", graphQLHead + `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"other"}}}`, ProblemUnmatched},
		{"a stored document by id", graphQLHead + `{"documentId":"other"}`, ProblemUnmatched},
		{"a hash beside a document", graphQLHead + `{"query":"{ a }","extensions":{"persistedQuery":{"sha256Hash":"known"}}}`, ProblemAmbiguous},
		{"extensions that are no object", graphQLHead + `{"query":"{ a }","extensions":"{\"persistedQuery\":{}}"}`, ProblemAmbiguous},
		{"an id beside a document", graphQLHead + `{"query":"{ a }","documentId":"x"}`, ProblemAmbiguous},
		{"a name in another case", graphQLHead + `{"query":"{ a }","Query":"mutation { b }"}`, ProblemAmbiguous},
		{"a document in the URL", strings.Replace(graphQLHead, "/graphql", "/graphql?query=mutation%7Ba%7D", 1) + `{"query":"{ a }"}`, ProblemAmbiguous},
		{"an empty query in the URL", strings.Replace(graphQLHead, "/graphql", "/graphql?", 1) + `{"query":"{ a }"}`, ProblemAmbiguous},
		{"a mutation declared as a form", form + `{"query":"mutation { a }"}`, ProblemUnmatched},
		{"JSON that is a query as a form, too", form + `{"query":"{ a }","variables":"&query=%6dutation{a}"}`, ProblemUnmatched},
		{"the same with the older mark", form + `{"query":"{ a }","variables":";query=%6dutation{a}"}`, ProblemUnmatched},
		{"JSON declared as text", strings.Replace(graphQLHead, "application/json", "text/plain", 1) + `{"query":"{ a }"}`, ProblemUnmatched},
		{"a name twice", graphQLHead + `{"query":"mutation { a }","query":"{ a }"}`, ProblemAmbiguous},
		{"no JSON", graphQLHead + `{"query":`, ProblemAmbiguous},
	} {
		m := c.Match(graphQLRequest(t, tc.request))
		switch {
		case tc.refusal == "" && (m.Refusal != nil || m.Effect != EffectRead || m.Operation == nil):
			t.Errorf("%s: %v, refused with %v", tc.name, m.Effect, m.Refusal)
		case tc.refusal != "" && (m.Refusal == nil || m.Refusal.Problem != tc.refusal):
			t.Errorf("%s: %v, refused with %v", tc.name, m.Effect, m.Refusal)
		}
	}
}

func TestAMutationOfGraphQLIsKnownByItsArguments(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	const want = `{"by":"mutation create ","title":"T"}`
	for _, tc := range []struct{ name, document, more string }{
		{"an object as variable", `mutation($input: In!) { create(input: $input) { id } }`, `,"variables":{"input":{"title":"T","text":"a"}}`},
		{"variables in an object", `mutation($t: String!, $x: String) { create(input: {title: $t, text: $x}) { id } }`, `,"variables":{"t":"T","x":"a"}`},
		{"literals", `mutation { create(input: {title: "T", text: """a"""}) }`, ``},
		{"a default", `mutation($t: String = "T", $x: String = "a") { create(input: {title: $t, text: $x}) }`, ``},
		{"a variable without a value", `mutation($t: String, $s: Int) { create(input: {title: $t, text: "a", size: $s}, dry: $s) }`, `,"variables":{"t":"T"}`},
		{"another selection, comments, white space", "mutation # m\n{ create(input: {text: \"a\", title: \"T\"}) { id, title ... on X { y } } __typename }", ``},
		{"a fragment", `mutation { ...F } fragment F on Mutation { ... on Mutation { create(input: {title: "T", text: "a"}) } ...F2 } fragment F2 on Mutation { __typename }`, ``},
		{"a fragment that is spread twice", `mutation { ...F ...F } fragment F on M { create(input: {title: "T", text: "a"}) }`, ``},
		{"fields that are left out", `mutation($no: Boolean!) { a: create(input: {}) @skip(if: true) ...F @include(if: $no) create(input: {title: "T", text: "a"}) @include(if: true) } fragment F on M { remove(id: 1) }`, `,"variables":{"no":false}`},
		{"the named one of several", `query Q { a } mutation M { remove(id: 1) } mutation { create(input: {title: "T", text: "a"}) }`, `,"operationName":""`},
	} {
		if tc.name == "the named one of several" {
			tc.document = strings.Replace(tc.document, "mutation {", "mutation N {", 1)
			tc.more = `,"operationName":"N"`
		}
		got := derive(t, c, graphQLRequest(t, graphQLBody(tc.document, tc.more)))
		if id := identityOf(got); strings.Replace(id, "create N", "create ", 1) != want {
			t.Errorf("%s: %s", tc.name, id)
		}
		first := derive(t, c, graphQLRequest(t, graphQLBody(`mutation { create(input: {title: "T", text: "a"}) }`, "")))
		if got.PayloadDigest != first.PayloadDigest {
			t.Errorf("%s: counts as another payload", tc.name)
		}
		if got.Target != "Create T" {
			t.Errorf("%s: %s", tc.name, got.Target)
		}
	}
}

func TestWhatAMutationOfGraphQLDoesCanBeTold(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	deep := strings.Repeat("[", 2000) + strings.Repeat("]", 2000)
	aliases, fragments := "mutation { ", "mutation { ...F0 } "
	for i := range 3000 {
		aliases += fmt.Sprintf("a%d: remove(id: 1) ", i)
		fragments += fmt.Sprintf("fragment F%d on M { ...F%d ...F%d } ", i, i+1, i+1)
	}
	for _, tc := range []struct {
		name, document, more string
		problem              Problem
		part                 string
	}{
		{"two fields", `mutation { remove(id: 1) rename(id: 2) }`, ``, ProblemAmbiguous, "remove, rename"},
		{"two under aliases", `mutation { a: remove(id: 1) b: remove(id: 2) }`, ``, ProblemAmbiguous, "several changes"},
		{"two, one in a fragment", `mutation { remove(id: 1) ...F } fragment F on M { remove(id: 2) }`, ``, ProblemAmbiguous, "several changes"},
		{"none", `mutation { __typename }`, ``, ProblemAmbiguous, "no field"},
		{"all left out", `mutation { remove(id: 1) @skip(if: true) }`, ``, ProblemAmbiguous, "no field"},
		{"several without a name", `mutation A { remove(id: 1) } mutation B { remove(id: 2) }`, ``, ProblemAmbiguous, "operationName"},
		{"a directive of the server's", `mutation { remove(id: 1) @later }`, ``, ProblemAmbiguous, "@later"},
		{"one of the operation", `mutation @later { remove(id: 1) }`, ``, ProblemAmbiguous, "@later"},
		{"one of a fragment", `mutation { ...F } fragment F on M @later { remove(id: 1) }`, ``, ProblemAmbiguous, "fragment F"},
		{"a condition without a value", `mutation($x: Boolean) { remove(id: 1) @skip(if: $x) }`, ``, ProblemAmbiguous, "@skip"},
		{"a condition that is no boolean", `mutation { remove(id: 1) @include(if: "true") }`, ``, ProblemAmbiguous, "@include"},
		{"a fragment that holds itself", `mutation { ...F } fragment F on M { ...G } fragment G on M { ...F remove(id: 1) }`, ``, ProblemAmbiguous, "holds itself"},
		{"a fragment that is missing", `mutation { ...F }`, ``, ProblemAmbiguous, "fragment F"},
		{"a fragment twice", `mutation { ...F } fragment F on M { remove(id: 1) } fragment F on M { remove(id: 2) }`, ``, ProblemAmbiguous, "fragment F"},
		{"a variable that isn't defined", `mutation { remove(id: $x) }`, `,"variables":{"x":1}`, ProblemAmbiguous, "$x"},
		{"a variable that is defined twice", `mutation($x: ID = 1, $x: ID = 2) { remove(id: $x) }`, ``, ProblemAmbiguous, "$x"},
		{"an argument twice", `mutation { remove(id: 1, id: 2) }`, ``, ProblemAmbiguous, "id is there twice"},
		{"a member twice", `mutation { rename(id: 1, to: {a: 1, a: 2}) }`, ``, ProblemAmbiguous, "a is there twice"},
		{"variables as text", `mutation($x: ID) { remove(id: $x) }`, `,"variables":"{}"`, ProblemAmbiguous, "variables"},
		{"half an emoji", `mutation { remove(id: "\ud83d") }`, ``, ProblemAmbiguous, "half an emoji"},
		{"a number that no float64 holds", `mutation { remove(id: 1e999) }`, ``, ProblemAmbiguous, "number"},
		{"too deep", `mutation { rename(id: 1, to: ` + deep + `) }`, ``, ProblemAmbiguous, "parsed"},
		{"many aliases", aliases + "}", ``, ProblemAmbiguous, "too long"},
		{"many fragments", fragments, ``, ProblemAmbiguous, "too long"},
		{"a variable many times", `mutation($x: [ID]) { rename(id: 1, to: [` + strings.Repeat("$x,", 9000) + `]) }`,
			`,"variables":{"x":["` + strings.Repeat("x", 1<<20) + `"]}`, ProblemAmbiguous, "too often"},
		{"another field", `mutation { login(user: "u") { token } }`, ``, ProblemUnmatched, "mutation login"},
		{"an identity that isn't there", `mutation { remove }`, ``, ProblemIdentity, "graphql.args.id"},
	} {
		began := time.Now()
		req := graphQLRequest(t, graphQLBody(tc.document, tc.more))
		m := c.Match(req)
		refusal := m.Refusal
		if refusal == nil {
			_, refusal = m.Operation.Derive(req, m)
		}
		wantRefusal(t, refusal, tc.problem, tc.part)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", tc.name, took)
		}
	}
}

func TestPayloadOfGraphQLIsTheFieldWithItsAliasAndArguments(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	at := func(document string) *Request { return graphQLRequest(t, graphQLBody(document, "")) }
	first := at(`mutation { create(input: {title: "T", text: "a b", note: "n", seed: 1, id: "i"}) { id } }`)
	stored := derive(t, c, first)
	for document, want := range map[string]Likeness{
		`mutation M { create(input: {id: "j", seed: 2, text: "a b", title: "T", note: "n"}) { title } }`: Equivalent,
		`mutation { create(input: {title: "T", text: " a  b", note: "n"}) }`:                             Equivalent,
		`mutation { create(input: {title: "T", text: "a b", note: "other"}) }`:                           Minor,
		`mutation { create(input: {title: "T", text: "a c", note: "n"}) }`:                               Significant,
		`mutation { create(input: {title: "T", text: "a b", note: "n"}, notify: true) }`:                 Significant,
		`mutation { made: create(input: {title: "T", text: "a b", note: "n"}) }`:                         Significant,
	} {
		asked := derive(t, c, at(document))
		op := c.Connectors()[0].Operation("create")
		got := op.Compare(first, at(document))
		if got.Likeness != want || (asked.SignificantDigest == stored.SignificantDigest) != (want != Significant) {
			t.Errorf("%s: %v (%s)", document, got.Likeness, got.Why)
		}
		for _, change := range got.Changes {
			if !strings.HasPrefix(change.Place, "graphql.") {
				t.Errorf("%s: changed %s", document, change.Place)
			}
		}
	}
}

func TestANativeKeyOfGraphQLGoesIntoItsVariable(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	op := c.Connectors()[0].Operation("create")
	mu := Mutation{VendorKey: "key"}
	for _, tc := range []struct{ document, variables, sent string }{
		{`mutation($input: In!) { create(input: $input) { id } }`, `{"input":{"title":"T"}}`, `{"input":{"title":"T","id":"key"}}`},
		{`mutation($in: In!) { create(input: $in) { id } }`, `{"in":{"id":"own","title":"T"}}`, `{"in":{"id":"key","title":"T"}}`},
		{`mutation($id: ID) { create(input: {title: "T", id: $id}) { id } }`, `{}`, `{"id":"key"}`},
		{`mutation($id: ID = "x") { create(input: {title: "T", id: $id}) { id } }`, `{"id":null}`, `{"id":"key"}`},
		{`mutation { create(input: {title: "T", id: "key"}) { id } }`, `{}`, `{}`}, // kept as it is
		{`mutation { create(input: {title: "T", id: "own"}) { id } }`, `{}`, ``},
		{`mutation { create(input: {title: "T"}) { id } }`, `{}`, ``},
		{`mutation($input: In = {title: "T"}) { create(input: $input) { id } }`, `{}`, ``},
		{`mutation($input: In!) { create(input: $input) { id } }`, `{"input":"text"}`, ``},
		{`mutation { create(title: "T") { id } }`, `{}`, ``},
	} {
		req := graphQLRequest(t, graphQLBody(tc.document, `,"variables":`+tc.variables))
		out, refusal := op.Outgoing(req, mu)
		if tc.sent == "" {
			wantRefusal(t, refusal, ProblemIdentity, "")
			continue
		}
		if refusal != nil {
			t.Errorf("%s: %v", tc.document, refusal)
			continue
		}
		if got, want := string(out.Body()), `{"query":`+strconv.Quote(tc.document)+`,"variables":`+tc.sent+`}`; got != want {
			t.Errorf("sent %s\nwant %s", got, want)
		}
	}
	for document, want := range map[string]string{
		`mutation { create(input: {title: "T", id: "own"}) { id } }`: "own", `mutation { create(input: {title: "T"}) { id } }`: "",
	} {
		if own, sent := op.ClientKey(graphQLRequest(t, graphQLBody(document, ""))); own != want || sent != (want != "") {
			t.Errorf("%s: the script's own key is %q", document, own)
		}
	}
}

func TestAMarkerGoesIntoAnArgumentOfGraphQL(t *testing.T) {
	t.Parallel()
	_, op := operation(t, `  - name: create
    match: {method: POST, path: /graphql, graphql: {operation: mutation}}
    effect: mutation
    identity: {title: graphql.args.input.title}
    marker: [{append: graphql.args.input.body, text: " keep:{mutation.marker}"}, {graphql: input.ref}]
    reconcile: [{none: why}]
    manual_check: look
`)
	const document = `mutation($i: In!) { create(input: $i) }`
	out, refusal := op.Outgoing(graphQLRequest(t, graphQLBody(document, `,"variables":{"i":{"title":"T","body":"B"}}`)), Mutation{Marker: "m"})
	if refusal != nil {
		t.Fatal(refusal)
	}
	if want := `"variables":{"i":{"title":"T","body":"B keep:m","ref":"m"}}`; !strings.Contains(string(out.Body()), want) {
		t.Errorf("sent %s", out.Body())
	}
	_, refusal = op.Outgoing(graphQLRequest(t, graphQLBody(`mutation { create(input: {title: "T", body: "B"}) }`, "")), Mutation{Marker: "m"})
	wantRefusal(t, refusal, ProblemIdentity, "spells out")
}

func TestAnAnswerOfGraphQLWithErrorsIsNoSuccess(t *testing.T) {
	t.Parallel()
	c := load(t, strings.Replace(graphQLRules, "    reconcile: [{none: why}]", "    outcome: [{when: \"response.graphql.errors.exists(e, e.?code.orValue('') == 'NO')\", then: failed, class: logic}]\n    reconcile: [{none: why}]", 1))
	for _, tc := range []struct {
		status int
		body   string
		want   verdict.OpinionKind
	}{
		{200, `{"data":{"x":{"ok":true}}}`, verdict.OpinionNone},
		{200, `{"data":{"x":true},"errors":[]}`, verdict.OpinionNone},
		{200, `{"data":{"x":true},"errors":null}`, verdict.OpinionNone},
		{200, `{"data":{"remove":{"ok":true}}}`, verdict.OpinionUncertain}, // another alias
		{200, `{"data":{"x":null}}`, verdict.OpinionUncertain},
		{200, `{"data":null}`, verdict.OpinionUncertain},
		{200, `{"data":{"x":{"ok":true}},"errors":[{"message":"m"}]}`, verdict.OpinionUncertain},
		{200, `{"data":{"x":{"ok":true}},"errors":{}}`, verdict.OpinionUncertain},
		{200, `{"errors":[{"message":"m"}]}`, verdict.OpinionUncertain},
		{200, `{"errors":[{"code":"NO"}]}`, verdict.OpinionFailed},
		{200, `{"data":{"x":{}},"data":null}`, verdict.OpinionUncertain},
		{200, `[]`, verdict.OpinionUncertain},
		{200, `<html>`, verdict.OpinionUncertain},
		{400, `{"errors":[{"message":"m"}]}`, verdict.OpinionNone},
		{400, `{"data":null,"errors":[{"message":"m"}]}`, verdict.OpinionUncertain},
		{400, `Bad Request`, verdict.OpinionNone},
		{503, `<html>`, verdict.OpinionNone},
	} {
		op := c.Connectors()[0].Operation("change")
		req := graphQLRequest(t, graphQLBody(`mutation { x: remove(id: 1) { ok } }`, ""))
		resp := &Response{Status: tc.status, Body: []byte(tc.body), Complete: true}
		if got := op.Judge(req, "", Mutation{}, resp); got.Kind != tc.want {
			t.Errorf("%d %s: %v, %s", tc.status, tc.body, got.Kind, got.Reason)
		}
		if tc.status == 200 && (!op.JudgesBody() || !op.BodyDecides(req, "", Mutation{}, &Response{Status: 200})) {
			t.Error("the body doesn't decide")
		}
	}
}

func TestAResultOfGraphQLIsPutWhereTheCallerAsked(t *testing.T) {
	t.Parallel()
	c := load(t, graphQLRules)
	op := c.Connectors()[0].Operation("create")
	req := graphQLRequest(t, graphQLBody(
		`mutation($input: In!) { made: create(input: $input) { ok: success, ...P item { ident: id } } } fragment P on Payload { item { ... on Item { id, title, ...Q } } ...P } fragment Q on Item { url }`,
		`,"variables":{"input":{"title":"T"}}`))
	asking, err := op.Strategies[0].Probe.Begin(Env{Request: req, Mutation: Mutation{VendorKey: "k"}})
	if err != nil {
		t.Fatal(err)
	}
	asking.Answer(&Response{Status: 200, Complete: true, Body: []byte(`{"data":{"items":[{"id":"k","url":"u","other":1}]}}`)})
	got := asking.Observation(func(string) bool { return false }, Clocks{})
	if want := `{"data":{"made":{"ok":true,"item":{"id":"k","url":"u","ident":"k"}}}}`; got.Seen != SeenApplied || string(got.Result.Body) != want {
		t.Errorf("%v %s: %s\nwant %s", got.Seen, got.Reason, got.Result.Body, want)
	}
}

func TestWhatGraphQLDoesNotFitGoesOnToTheNextOperation(t *testing.T) {
	t.Parallel()
	c := load(t, connectorHead+"  - {name: query, before: [rest], match: {method: POST, path: /graphql, graphql: {operation: query}}, effect: read}\n"+
		"  - {name: rest, match: {method: POST, path: /graphql}, effect: mutation, identity: none, reconcile: [{none: why}], manual_check: look}\n")
	for body, want := range map[string]string{`{"query":"{ a }"}`: "query", `{"query":"mutation { a }"}`: "rest", `{"documentId":"a"}`: "rest"} {
		m := c.Match(request(t, "POST https://api.test/graphql", body, "Content-Type: application/json"))
		if m.Refusal != nil || m.Operation == nil || m.Operation.Name != want {
			t.Errorf("%s: %+v", body, m)
		}
	}
}

func TestProblemsOfGraphQLAreNamed(t *testing.T) {
	t.Parallel()
	mutation := func(lines ...string) string {
		return withOperation(append([]string{"match: {method: POST, path: /x, graphql: {operation: mutation, field: f}}"}, lines...)...)
	}
	for name, c := range map[string]struct{ file, code string }{
		"a query that is a mutation":       {withOperation("match: {method: POST, path: /x, graphql: {operation: query}}"), "value"},
		"a field of a query":               {withRead("match: {method: POST, path: /x, graphql: {operation: query, field: a}}"), "value"},
		"of any method":                    {withRead("match: {path: /x, graphql: {operation: query}}"), "value"},
		"of another operation":             {withRead("match: {method: POST, path: /x, graphql: {operation: subscription}}"), "value"},
		"of no operation":                  {withRead("match: {method: POST, path: /x, graphql: {}}"), "missing"},
		"beside another match":             {withOperation("match: [{method: POST, path: /x, graphql: {operation: mutation}}, {method: POST, path: /y}]"), "value"},
		"read without a match":             {withOperation("identity: {a: graphql.args.a}"), "variable"},
		"an answer without a match":        {withOperation("success: response.graphql.data.ok"), "variable"},
		"a place in JSON":                  {mutation("payload: {ignore: [json.variables.a]}"), "place"},
		"a place of GraphQL":               {withOperation("payload: {ignore: [graphql.args.a]}"), "place"},
		"a key in JSON":                    {mutation("native_key: {json: variables.id}"), "place"},
		"a key of GraphQL":                 {withOperation("native_key: {graphql: input.id}"), "place"},
		"a secret argument":                {mutation("secret: [graphql.args.a]"), "place"},
		"two results":                      {mutation("on_skip: {json: {}, graphql: {}}"), "value"},
		"an undo without a word on errors": {mutation("compensate: {post: /graphql, json: {id: {cel: object}}, reconcile: [{none: why}]}"), "undo"},
		"steps":                            {mutation("send: [{prepare: a, post: /a, keep: {id: response.json.id}}, {commit: , post: /b}]"), "send"},
		"two operations with one field": {connectorHead + "  - {name: a, match: {method: POST, graphql: {operation: mutation, field: [x, y]}}, effect: deny}\n" +
			"  - {name: b, match: {method: POST, graphql: {operation: mutation, field: y}}, effect: deny}\n", "overlap"},
		"two operations with two fields": {connectorHead + "  - {name: a, match: {method: POST, graphql: {operation: mutation, field: x}}, effect: deny}\n" +
			"  - {name: b, match: {method: POST, graphql: {operation: mutation, field: y}}, effect: deny}\n" +
			"  - {name: c, match: {method: POST, graphql: {operation: query}}, effect: read}\n", ""},
		"before the operation": {connectorHead + "  - {name: a, before: [b], match: {method: POST, path: /g}, effect: read}\n" +
			"  - {name: b, match: {method: POST, path: /g, graphql: {operation: query}}, effect: read}\n", ""},
		"nothing is left for it": {connectorHead + "  - {name: a, before: [b], match: {method: POST, graphql: {operation: mutation}}, effect: ignore}\n" +
			"  - {name: b, match: {method: POST, path: /g, graphql: {operation: mutation, field: x}}, effect: deny}\n", "unreached"},
	} {
		_, findings := Load([]File{{Name: "t.yaml", Data: []byte(c.file)}}, nil, Defaults{})
		if c.code == "" && len(findings) > 0 || c.code != "" && (len(findings) == 0 || findings[0].Code != c.code) {
			t.Errorf("%s: %v", name, findings)
		}
	}
}

// A value that an expression reads of GraphQL may be a secret place of the JSON.
func TestASecretOfGraphQLIsHashed(t *testing.T) {
	t.Parallel()
	c := load(t, withOperation("match: {method: POST, path: /graphql, graphql: {operation: mutation}}", "describe: \"Take {graphql.args.pin}\"", "identity: {pin: graphql.args.pin}", "secret: [json.variables.pin]"))
	d := derive(t, c, graphQLRequest(t, graphQLBody(`mutation($pin: Int) { f(pin: $pin) }`, `,"variables":{"pin":4711}`)))
	if got := identityOf(d) + d.Target; strings.Contains(got, "4711") {
		t.Errorf("told: %s", got)
	}
}

// FuzzGraphQL looks for a request that panics, takes long, or is a read although a keyword says that something changes.
func FuzzGraphQL(f *testing.F) {
	for _, seed := range []string{
		`{ a }`, `query A($x: Int = 1) { a(x: $x) { ...F } } fragment F on T { b @skip(if: true) }`, `mutation { a: create(input: {title: "x", l: [1, 2.5e3, null, E, $v]}) }`,
		`mutation M($v: [Int!]! = [1]) { ...F @include(if: true) } fragment F on M { ... { remove(id: """a""") } }`, "# x\n\"d\" query { a }", `mutation { ...F } fragment F on M { ...F }`,
	} {
		f.Add(seed, `{"v":{"a":[1]}}`, "M")
	}
	c := load(f, graphQLRules)
	f.Fuzz(func(t *testing.T, document, variables, name string) {
		v, err := parseJSON([]byte(variables))
		if err != nil {
			v = &jsonValue{}
		}
		body := jsonValue{}
		body.set("query", stringValue(strings.ToValidUTF8(document, "?")))
		body.set("variables", *v)
		body.set("operationName", stringValue(strings.ToValidUTF8(name, "?")))
		req := request(t, "POST https://api.test/graphql", string(appendMasked(nil, &body, nil)), "Content-Type: application/json")
		began := time.Now()
		m := c.Match(req)
		switch {
		case m.Refusal != nil:
		case m.Effect == EffectRead && !strings.ContainsAny(document, "{"):
			t.Fatal("a read of nothing")
		case m.Effect == EffectMutation:
			if !strings.Contains(document, "mutation") {
				t.Fatal("a mutation that isn't there")
			}
			if _, refusal := m.Operation.Derive(req, m); refusal == nil {
				out, refusal := m.Operation.Outgoing(req, Mutation{VendorKey: "k", Marker: "m"})
				if refusal == nil && m.Operation.NativeKey != nil {
					if own, _ := m.Operation.ClientKey(out); own != "k" {
						t.Fatalf("the key of %s is %q", out.Body(), own)
					}
				}
				m.Operation.Judge(req, "", Mutation{}, &Response{Status: 200, Body: []byte(variables), Complete: true})
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Fatalf("took %v", took)
		}
	})
}
