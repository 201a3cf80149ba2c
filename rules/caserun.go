package rules

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
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
func (c *testCase) run(connector *Connector) []mistake {
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
	req, refusal := Normalize(r.request)
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
	d, refusal := m.Operation.Derive(req, m)
	if refusal == nil && m.Operation.Send == nil {
		_, refusal = m.Operation.Outgoing(req, caseMutation())
	}
	if refusal != nil {
		r.refused(refusal)
		return
	}
	r.differs("refused", r.expect.refused, "")
	r.derived(d)
	r.played(m.Operation, Env{Request: req, Mutation: caseMutation(), Account: d.Account})
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
func (r *caseRun) judged(o Opinion) {
	r.compares("verdict", "class")
	verdict := o.Kind.String()
	reason := ""
	switch {
	case o.Kind == OpinionNone:
		// Who reads "default" for the first time can't know who decides then.
		verdict, reason = "default", " (no condition of the rule is true, so that the table by status decides)"
	case o.Reason != "":
		reason = " (" + o.Reason + ")"
	}
	if problem := differs("verdict", r.expect.verdict, verdict); problem != "" {
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
	for j, answer := range r.probe {
		if _, more := asking.Next(); !more {
			r.problems = append(r.problems, "the probe ends after "+plural(j, "answer", "answers"))
			break
		}
		asking.Answer(answer)
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
		r.problems = append(r.problems, differs("observation", r.expect.observation, o.Seen.String())+" ("+o.Reason+")")
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
