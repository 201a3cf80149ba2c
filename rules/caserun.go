package rules

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"keep-proxy/internal/verdict"
)

// caseAccount is what the API says in cases of a connector that asks for the account.
const caseAccount = "case-account"

// caseRun is one case while it runs.
type caseRun struct {
	*testCase
	problems []string
	// compared are the keys of expect that were held against something.
	compared []string
}

// run runs the case against its own connector and says what differs.
func (c *testCase) run(connector *Connector, findings Findings) []mistake {
	if connector == nil {
		return []mistake{{"its parameters: " + findings[0].Problem, findings[0].Fix}}
	}
	if c.untold(connector) {
		return nil
	}
	r := &caseRun{testCase: c}
	r.play(connector)
	if len(r.problems) == 0 {
		return r.idle()
	}
	out := make([]mistake, len(r.problems))
	for i, problem := range r.problems {
		out[i] = mistake{problem, "correct the rule, or the case"}
	}
	return out
}

// play plays the case as far as it goes.
func (r *caseRun) play(connector *Connector) {
	req, refusal := Normalise(r.request)
	if refusal == nil {
		// Settings can replace the hosts; cases are the file's.
		m := connector.matchAt(connector.fileHosts, req)
		if refusal = m.Refusal; refusal == nil {
			r.matched(req, m)
			return
		}
	}
	r.refused(refusal)
}

// idle says which expectations were held against nothing. A case that tests nothing looks
// like one that holds.
func (r *caseRun) idle() []mistake {
	const request = "the request is refused, or is no mutation; correct it, or leave the expectation out"
	response, probe := "add response: with the answer to what goes out", "add probe: with what the API answers when it is asked"
	const early = "correct what the case ends at before it: the request is refused, is no mutation, or a preparing step has no answer under send:"
	if r.response != nil {
		response = early
	}
	if len(r.probe) > 0 {
		probe = early
	}
	e := r.expect
	var out []mistake
	for _, one := range []struct {
		key      string
		expected bool
		fix      string
	}{
		{"operation", e.operation != "", "the request is refused; leave the expectation out"},
		{"identity", e.identity != nil, request},
		{"subkey", e.subkey != nil, request},
		{"account", e.account != nil, request},
		{"sent", e.sent != nil, request},
		{"kept", e.kept != nil, "add send: with the answers to the preparing steps"},
		{"verdict", e.verdict != "", response},
		{"class", e.class != "", response},
		{"asked", e.asked != nil, probe},
		{"observation", e.observation != "", probe},
		{"result", e.result != nil, probe},
	} {
		if one.expected && !slices.Contains(r.compared, one.key) {
			out = append(out, mistake{"expect." + one.key + " is compared with nothing", one.fix})
		}
	}
	return out
}

// compares notes that these keys of expect are held against something.
func (r *caseRun) compares(keys ...string) { r.compared = append(r.compared, keys...) }

// refused compares a refusal, and says why it was one where none was expected.
func (r *caseRun) refused(refusal *Refusal) {
	if problem := differs("refused", r.expect.refused, string(refusal.Problem)); problem != "" {
		r.problems = append(r.problems, problem+" ("+refusal.Detail+")")
	}
}

// differs notes a difference.
func (r *caseRun) differs(what, want, got string) {
	if problem := differs(what, want, got); problem != "" {
		r.problems = append(r.problems, problem)
	}
}

// matched goes on with a request that was not refused.
func (r *caseRun) matched(req *Request, m Match) {
	if m.Connector != nil && m.Connector.AccountRead != nil {
		req = req.WithAccount(m.Connector, caseAccount)
	}
	if m.Unmatched {
		r.problems = append(r.problems, "the URL's host is none of the connector's")
		return
	}
	operation := ""
	if m.Operation != nil {
		operation = m.Operation.Name
	}
	r.compares("operation")
	if r.expect.operation != "" {
		r.differs("operation", r.expect.operation, operation)
	}
	if m.Effect != EffectMutation {
		r.differs("refused", r.expect.refused, "")
		return
	}
	mu := caseMutation()
	mu.Unmarked = m.Operation.Unmarked(req)
	if k := m.Operation.NativeKey; k != nil && k.WhenPresent == PresentKeepFirst {
		if own, sent := m.Operation.ClientKey(req); sent {
			mu.VendorKey = own
		}
	}
	d, refusal := m.Operation.Derive(req, m)
	if refusal == nil && m.Operation.Send == nil {
		_, refusal = m.Operation.Outgoing(req, mu)
	}
	if refusal != nil {
		r.refused(refusal)
		return
	}
	r.differs("refused", r.expect.refused, "")
	r.derived(d)
	r.played(m.Operation, Env{Request: req, Mutation: mu, Account: d.Account})
}

// derived compares the key's parts.
func (r *caseRun) derived(d *Derived) {
	r.compares("identity", "subkey", "account")
	if r.expect.identity != nil {
		r.differs("identity", string(canonicalValue(r.expect.identity)), string(identityText(d.Identity)))
	}
	if r.expect.subkey != nil {
		r.differs("subkey", *r.expect.subkey, d.Subkey)
	}
	if r.expect.account != nil {
		r.differs("account", *r.expect.account, d.Account)
	}
}

// identityText is the identity as one canonical object.
func identityText(identity map[string]jsontext.Value) []byte {
	v := jsonValue{kind: jsonObject}
	for name, text := range identity {
		one, err := parseJSON(text)
		if err != nil {
			continue
		}
		v.names = append(v.names, name)
		v.items = append(v.items, *one)
	}
	return canonicalValue(&v)
}

// judged compares the opinion; no opinion is "default".
func (r *caseRun) judged(o verdict.Opinion) {
	r.compares("verdict", "class")
	said := o.Kind.String()
	reason := ""
	switch {
	case o.Kind == verdict.OpinionNone:
		// Who reads "default" for the first time can't know who decides then.
		said, reason = "default", " (no condition of the rule is true, so that the table by status decides)"
	case o.Reason != "":
		reason = " (" + o.Reason + ")"
	}
	if problem := differs("verdict", r.expect.verdict, said); problem != "" {
		r.problems = append(r.problems, problem+reason)
		reason = ""
	}
	if problem := differs("class", r.expect.class, string(o.Class)); problem != "" {
		r.problems = append(r.problems, problem+reason)
	}
}

// probed plays the answers to the operation's first probe.
func (r *caseRun) probed(op *Operation, env Env) {
	i := slices.IndexFunc(op.Strategies, func(s Strategy) bool { return s.Probe != nil })
	if i < 0 {
		r.problems = append(r.problems, "the operation has no probe")
		return
	}
	asking, err := op.Strategies[i].Probe.Begin(env)
	if err != nil {
		r.problems = append(r.problems, "the probe can't begin: "+err.Error())
		return
	}
	var asked []*Request
	for j := 0; ; j++ {
		ask, more := asking.Next()
		if more {
			asked = append(asked, ask.request())
		}
		if j == len(r.probe) {
			break
		}
		if !more {
			r.problems = append(r.problems, "the probe ends after "+plural(j, "answer", "answers"))
			break
		}
		asking.Answer(r.probe[j])
	}
	r.went("asked", r.expect.asked, asked)
	if len(r.probe) == 0 {
		return
	}
	r.compares("observation", "result")
	if ask, more := asking.Next(); more {
		// That would be retry, whatever the rule makes of the answers.
		r.problems = append(r.problems, "the probe asks on after "+plural(len(r.probe), "answer", "answers")+", for "+printable(ask.Target)+
			": its answer is missing under probe")
		return
	}
	o := asking.Observation(func(string) bool { return false }, Clocks{Measured: true, SameBoot: true})
	if r.expect.observation != o.Seen.String() {
		r.problems = append(r.problems, differs("observation", r.expect.observation, o.Seen.String())+" ("+o.Reason+"), asked "+urls(asked))
	}
	r.resulted(o.Result)
}

// resulted compares the result, where the case expects one.
func (r *caseRun) resulted(got *Result) {
	want := r.expect.result
	if want == nil {
		return
	}
	if got == nil {
		r.problems = append(r.problems, "there is no result")
		return
	}
	r.differs("result status", strconv.Itoa(want.Status), strconv.Itoa(got.Status))
	for name := range want.Header {
		r.differs("result header "+name, want.Header.Get(name), got.Header.Get(name))
	}
	if len(want.Body) > 0 {
		r.differs("result body", canonicalText(want.Body), canonicalText(got.Body))
	}
}

// canonicalText is JSON in its canonical form, anything else as it is.
func canonicalText(body []byte) string {
	if c, err := CanonicalJSON(body); err == nil {
		return string(c)
	}
	return string(body)
}

// played continues with a request whose key is derived. It checks what is sent, or what the undo sends. Then it judges
// the case's answers.
func (r *caseRun) played(op *Operation, env Env) {
	switch {
	case r.undo != "":
		if later, ok := r.stored(op, env); ok {
			r.undone(op, later)
		}
		return
	case op.Send != nil:
		if !r.stepped(op, &env) {
			return
		}
	case len(r.send) > 0:
		r.problems = append(r.problems, "the operation isn't sent in steps")
	default:
		outgoing, refusal := op.Outgoing(env.Request, env.Mutation)
		if refusal != nil {
			r.refused(refusal)
			return
		}
		r.sent(outgoing)
	}
	if r.response != nil {
		r.judged(op.Judge(env.Request, env.Account, env.Mutation, r.response))
	}
	later, ok := r.stored(op, env)
	if ok && (len(r.probe) > 0 || r.expect.asked != nil) {
		r.probed(op, later)
	}
}

// stored is what the rule may read once the request is stored, with its secrets masked. It must still be one of this
// operation, and each probe that could begin before must still begin.
func (r *caseRun) stored(op *Operation, env Env) (Env, bool) {
	masked := op.Redact(env.Request)
	if masked.URL() == env.Request.URL() && string(masked.Body()) == string(env.Request.Body()) || !op.Reconciles() && op.Undo == nil {
		return env, true
	}
	const as = "as it is stored, with secrets masked, "
	later := env
	req, refusal := Rebuild(masked.Method, masked.URL(), masked.Header, masked.Body())
	if refusal == nil {
		later.Request = req
		m := op.Connector.matchAt(op.Connector.fileHosts, req)
		if refusal = m.Refusal; refusal == nil && m.Operation != op {
			refusal = refuse(ProblemUnmatched, "it is none of "+op.Name)
		}
	}
	if refusal != nil {
		r.problems = append(r.problems, as+"the request can't be asked about: "+refusal.Detail)
		return env, false
	}
	for _, p := range op.probes() {
		_, before := p.Begin(env)
		if _, err := p.Begin(later); err != nil && before == nil {
			r.problems = append(r.problems, as+"the request can't be asked about: "+err.Error())
			return env, false
		}
	}
	return later, true
}

// undone plays the taking back of an object, to which the case's answers are.
func (r *caseRun) undone(op *Operation, env Env) {
	if op.Undo == nil {
		r.problems = append(r.problems, "the operation has no compensate")
		return
	}
	env.Mutation.Object = r.undo
	request, err := op.Undo.Request(env)
	if err != nil {
		r.problems = append(r.problems, "it can't be undone: "+err.Error())
		return
	}
	r.sent(request)
	if r.response != nil {
		r.judged(op.Undo.Judge(env, r.response))
	}
	if len(r.probe) > 0 {
		r.probed(op.Undo.Operation, env)
	}
}

// stepped plays a sending in steps as far as the case answers them. It reports whether
// the commit was reached, to which the case's other answers are.
func (r *caseRun) stepped(op *Operation, env *Env) bool {
	kept := map[string]string{}
	var sent []*Request
	for i := range op.Send.Prepares() {
		step, refusal := op.Send.Prepare(i, *env)
		if refusal != nil {
			r.refused(refusal)
			return false
		}
		sent = append(sent, step)
		if i == len(r.send) {
			// Without its answer nothing is kept, and the rest isn't asked for.
			r.sent(sent...)
			return len(r.send) == 0
		}
		gave, err := op.Send.Keep(i, *env, r.send[i])
		if err != nil {
			r.sent(sent...)
			r.compares("verdict")
			if problem := differs("verdict", r.expect.verdict, verdict.OpinionFailed.String()); problem != "" {
				r.problems = append(r.problems, problem+" (the step "+op.Send.StepName(i)+" isn't gone on from: "+err.Error()+")")
			}
			return false
		}
		maps.Copy(kept, gave)
		env.Mutation.Kept = kept
	}
	if n := op.Send.Prepares(); len(r.send) > n {
		r.problems = append(r.problems, "the sending has "+plural(n, "preparing step", "preparing steps"))
	}
	r.keeps(kept)
	commit, refusal := op.Send.Commit(*env)
	if refusal != nil {
		r.refused(refusal)
		return false
	}
	r.sent(append(sent, commit)...)
	return true
}

// keeps compares what the preparing steps kept.
func (r *caseRun) keeps(kept map[string]string) {
	if r.expect.kept == nil {
		return
	}
	got := make(map[string]jsontext.Value, len(kept))
	for name, value := range kept {
		got[name] = jsontext.Value(value)
	}
	r.compares("kept")
	r.differs("kept", string(canonicalValue(r.expect.kept)), string(identityText(got)))
}

// sent compares what goes out, where the case expects something of it.
func (r *caseRun) sent(requests ...*Request) { r.went("sent", r.expect.sent, requests) }

// went compares requests, where the case expects some. Key is that of the expectation.
func (r *caseRun) went(key string, expected []Raw, requests []*Request) {
	if expected == nil {
		return
	}
	r.compares(key)
	if len(requests) != len(expected) {
		r.problems = append(r.problems, fmt.Sprintf("%s, expected %d", plural(len(requests), "request is "+key, "requests are "+key), len(expected)))
		return
	}
	for i, got := range requests {
		want := expected[i]
		what := fmt.Sprintf("%s[%d] ", key, i)
		asked, refusal := Normalise(want)
		if refusal != nil {
			r.problems = append(r.problems, what+"is no request: "+refusal.Detail)
			continue
		}
		r.differs(what+"method", asked.Method, got.Method)
		r.differs(what+"url", asked.URL(), got.URL())
		for _, name := range slices.Sorted(maps.Keys(asked.Header)) {
			r.differs(what+"header "+name, asked.Header.Get(name), got.Header.Get(name))
		}
		if len(want.Body) > 0 {
			r.differs(what+"body", canonicalText(want.Body), canonicalText(got.Body()))
		}
	}
}

// urls tells the requests of a probe.
func urls(asked []*Request) string {
	var out []string
	for _, ask := range asked {
		out = append(out, ask.Method+" "+ask.URL())
	}
	return strings.Join(out, ", ")
}
