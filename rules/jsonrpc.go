package rules

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/internal/verdict"
)

// parseCall reads the body as one call. JSON that is none holds nothing.
func (c *content) parseCall() view {
	if c.problem != nil || c.jsonProblem != nil || !isRPC(c.json) {
		return view{}
	}
	if name, found := variantAmong(c.json.names, []string{"jsonrpc", "method", "params", "id"}); found {
		return view{problem: refuseVariant("JSON body", name)}
	}
	method, called := c.json.member("method")
	id, given := c.json.member("id")
	if !called && !isAnswer(c.json) || called && method.kind != jsonString || given && id.kind != jsonString && id.kind != jsonNumber && id.kind != jsonNull {
		return view{problem: refuse(ProblemAmbiguous, "the call of JSON-RPC has no method, or an id that is neither a text nor a number")}
	}
	tree := &jsonValue{kind: jsonObject}
	for i, name := range c.json.names {
		if name != "notification" { // That would hide ours.
			tree.names, tree.items = append(tree.names, name), append(tree.items, c.json.items[i])
		}
	}
	tree.put("notification", boolValue(!given))
	return view{tree: tree}
}

// isRPC knows an object of JSON-RPC 2.0.
func isRPC(v *jsonValue) bool {
	if v == nil {
		return false
	}
	version, _ := v.member("jsonrpc")
	return version != nil && version.kind == jsonString && version.text == "2.0"
}

// isAnswer knows the answer to a call.
func isAnswer(v *jsonValue) bool {
	return !slices.Contains(v.names, "method") && (slices.Contains(v.names, "result") || slices.Contains(v.names, "error"))
}

// anAnswer stands among the methods of a match that takes answers.
const anAnswer = ""

// refuseBatch is the refusal of a list of calls. One record can't say what became of each.
var refuseBatch = refuse(ProblemDenied,
	"the body is a list of JSON-RPC calls, of which not each is a read that a rule declares; send each call by itself")

// maxBatch bounds the calls of a list.
const maxBatch = 100

// takesCall reports whether the body is a call of one of the methods that the match names.
func (m *matcher) takesCall(req *Request) (bool, *Refusal) {
	s := &scope{req: req}
	v := s.json()
	if s.problem != nil {
		return false, s.problem
	}
	if v != nil && v.kind == jsonArray {
		return false, refuseBatch
	}
	call := s.view("jsonrpc")
	if call.tree == nil {
		return false, call.problem
	}
	if isAnswer(call.tree) {
		return slices.Contains(m.rpc, anAnswer), nil
	}
	method, _ := call.tree.member("method")
	return method.text != anAnswer && slices.Contains(m.rpc, method.text), nil
}

// matchBatch takes a list of calls for its last one, if all of them are reads.
func (c *Connector) matchBatch(m *Match, req *Request) {
	calls, last := req.read().json.items, Match{}
	header := maps.Clone(req.Header)
	delete(header, "Content-Encoding")
	for i := range calls[:min(len(calls), maxBatch+1)] {
		last = Match{Connector: c, Host: m.Host}
		if calls[i].kind == jsonObject && i < maxBatch {
			call := req.WithBody(appendMasked(nil, &calls[i], nil))
			call.Header = header
			c.match(&last, call, false)
		}
		if last.Refusal != nil || !last.Effect.passes() {
			break
		}
	}
	m.Operation, m.Effect, m.Path = last.Operation, last.Effect, last.Path
	if last.Refusal != nil || !last.Effect.passes() {
		m.Operation, m.Effect, m.Refusal = nil, EffectDeny, refuseBatch
	}
}

// judgeCall doubts a success that is not the result of the call: many APIs answer an error with 200.
func (op *Operation) judgeCall(s *scope) verdict.Opinion {
	call := s.view("jsonrpc").tree
	if s.resp.Status < 200 || s.resp.Status > 299 || s.resp.Status == 202 && op.Watch != nil || call == nil {
		return op.noneHolds()
	}
	id, asks := call.member("id")
	if !asks { // A notification has no answer (§4.1).
		return op.noneHolds()
	}
	doubt := "it can't be read"
	if answer, problem := s.resp.json(); problem == nil {
		doubt = "it isn't the one to this call"
		if its, given := idOf(answer); given && sameValue(its, id) {
			failure, _ := answer.member("error")
			if _, done := answer.member("result"); done && (failure == nil || failure.kind == jsonNull) {
				return op.noneHolds()
			}
			doubt = "it holds an error, which may come after the effect"
		}
	}
	return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the answer is no result of the JSON-RPC call: " + doubt}
}

// idOf is the id of a call or of its answer.
func idOf(v *jsonValue) (*jsonValue, bool) {
	if !isRPC(v) {
		return nil, false
	}
	return v.member("id")
}

// CallID is the id of a call as canonical JSON. It is nil for a notification, and where the rule knows no calls.
func (op *Operation) CallID(req *Request) jsontext.Value {
	if id, given := idOf(req.read().json); op.rpc && given {
		return canonicalValue(id)
	}
	return nil
}

// Readdress gives an answer to a call the id of another call that it is given to; nil where it has that, or is no answer.
func Readdress(body []byte, id jsontext.Value) []byte {
	answer, err := parseJSON(body)
	if err != nil {
		return nil
	}
	if its, given := idOf(answer); !given || its.kind == jsonNull || string(canonicalValue(its)) == string(id) {
		return nil
	}
	changed, err := editJSON(body, []placeStep{{name: "id"}}, func(jsontext.Value) (jsontext.Value, error) { return id, nil })
	if err != nil {
		return nil
	}
	return changed
}

// asJSON is the place in JSON that the variable jsonrpc shows.
func (p place) asJSON() place {
	switch {
	case p.root == "jsonrpc":
		p.root = "json"
	case (p.root == "stored" || p.root == "response") && len(p.steps) > 0 && p.steps[0].name == "jsonrpc":
		p.steps = slices.Clone(p.steps)
		p.steps[0].name = "json"
	}
	return p
}

// jsonRPC reads which calls fit.
func (d *decoder) jsonRPC(m fields, op *Operation, out *matcher) {
	v := m.At("jsonrpc")
	if !v.Given() {
		return
	}
	inner, _ := d.Map(v, levelJSONRPC)
	out.rpc = d.texts(inner.At("method"))
	if d.boolean(inner.At("answer")) {
		out.rpc = append(out.rpc, anAnswer)
	}
	switch {
	case len(out.rpc) == 0:
		d.Fail("missing", v, "names no method", "write jsonrpc: {method: tools/call}, or a list of methods")
	case op.Effect == EffectMutation && slices.Contains(out.rpc, anAnswer):
		d.Fail("value", v, "an answer is no mutation: nothing answers it", "leave answer out, or write effect: read")
	}
}
