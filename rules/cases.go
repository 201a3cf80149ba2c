package rules

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// The record that cases are run with. Cases may name these values.
const (
	CaseID        = "mut_case"
	CaseMarker    = "0123456789abcdef01234567"
	CaseVendorKey = "00000000-0000-8000-8000-000000000001"
	CaseClaimedAt = "2026-01-02T03:04:05Z"
)

// caseFraction is how far into the second of CaseClaimedAt the claim was. Claims are never
// at the beginning of one, and a case shows what follows for an API that gives times in
// whole seconds: what it made in that second looks older than the claim.
const caseFraction = 500 * time.Millisecond

// caseMutation is the record that cases are run with.
func caseMutation() Mutation {
	at, _ := time.Parse(time.RFC3339, CaseClaimedAt)
	return Mutation{ID: CaseID, Marker: CaseMarker, VendorKey: CaseVendorKey, ClaimedAt: at.Add(caseFraction)}
}

// testCase is one case of a connector.
type testCase struct {
	name    string
	key     string
	node    *yaml.Node
	request Raw
	// send are answers to the preparing steps of a sending in steps; undo is the object
	// that is taken back.
	send []*Response
	undo string
	// response or probe is set for cases about answers.
	response *Response
	probe    []*Response
	expect   expectation
}

// expectation is what a case expects; an empty field expects nothing.
type expectation struct {
	operation   string
	identity    *jsonValue
	subkey      *string
	account     *string
	refused     string
	verdict     string
	class       string
	observation string
	result      *Response
	// sent are the requests that go out, nil where nothing is expected of them.
	sent []Raw
	kept *jsonValue
}

// cases reads the list of cases.
func (d *decoder) cases(n *yaml.Node, key string) []*testCase {
	var out []*testCase
	for i, item := range d.elements(n, key) {
		k := index(key, i)
		m := d.object(item, k, levelCase)
		if item.Kind != yaml.MappingNode {
			continue
		}
		c := &testCase{key: k, node: item, name: k}
		if v, ok := d.need(item, m, k, "name"); ok {
			c.name, _ = d.text(v, join(k, "name"))
		}
		if v, ok := d.need(item, m, k, "request"); ok {
			c.request = d.caseRequest(v, join(k, "request"))
		}
		for j, answer := range d.optional(m["send"], join(k, "send")) {
			c.send = append(c.send, d.caseAnswer(answer, index(join(k, "send"), j)))
		}
		if v := m["undo"]; v != nil && d.plain(v, join(k, "undo")) {
			c.undo = v.Value
		}
		if m["response"] != nil {
			c.response = d.caseAnswer(m["response"], join(k, "response"))
		}
		for j, answer := range d.optional(m["probe"], join(k, "probe")) {
			c.probe = append(c.probe, d.caseAnswer(answer, index(join(k, "probe"), j)))
		}
		if v, ok := d.need(item, m, k, "expect"); ok {
			c.expect = d.expectation(v, join(k, "expect"))
		}
		out = append(out, c)
	}
	return out
}

// caseRequest reads a request: method, url, headers and body.
func (d *decoder) caseRequest(n *yaml.Node, key string) Raw {
	m := d.object(n, key, levelCaseAsk)
	raw := Raw{Method: http.MethodGet, Header: d.caseHeaders(m["headers"], join(key, "headers"))}
	if m["method"] != nil {
		raw.Method, _ = d.text(m["method"], join(key, "method"))
	}
	if v, ok := d.need(n, m, key, "url"); ok {
		if url, ok := d.text(v, join(key, "url")); ok {
			if raw.Scheme, raw.Authority, raw.Target, ok = splitURL(url, raw.Method); !ok {
				d.fail("value", join(key, "url"), v, "is no absolute URL", "write it with https://")
			}
		}
	}
	raw.Body = d.caseBody(m["body"], join(key, "body"))
	raw.HasBody = len(raw.Body) > 0
	return raw
}

// caseAnswer reads an answer: status, headers and body.
func (d *decoder) caseAnswer(n *yaml.Node, key string) *Response {
	m := d.object(n, key, levelCaseAnswer)
	out := &Response{Status: http.StatusOK, Complete: true, Header: d.caseHeaders(m["headers"], join(key, "headers"))}
	if m["status"] != nil {
		out.Status = d.number(m["status"], join(key, "status"), 200, 599)
	}
	out.Body = d.caseBody(m["body"], join(key, "body"))
	return out
}

// caseHeaders reads header fields.
func (d *decoder) caseHeaders(n *yaml.Node, key string) http.Header {
	out := http.Header{}
	if n == nil {
		return out
	}
	d.members(n, key, "headers", func(name string, _, v *yaml.Node) {
		for _, value := range d.texts(v, join(key, name)) {
			out.Add(name, value)
		}
	})
	return out
}

// caseBody reads a body: text as it is, anything else as JSON.
func (d *decoder) caseBody(n *yaml.Node, key string) []byte {
	if n == nil {
		return nil
	}
	if n.Kind == yaml.ScalarNode {
		return []byte(n.Value)
	}
	if v := d.literal(n, key); v != nil {
		return appendMasked(nil, v, nil)
	}
	return nil
}

// literal reads a value in which nothing is an expression.
func (d *decoder) literal(n *yaml.Node, key string) *jsonValue {
	t := d.template(n, key, inRequest)
	if t == nil {
		return nil
	}
	if len(t.exprs()) > 0 {
		d.fail("type", key, n, "a case holds no expressions", "write the value out")
		return nil
	}
	v, _, err := t.build(nil)
	if err != nil {
		return nil
	}
	return &v
}

// expectation reads what a case expects.
func (d *decoder) expectation(n *yaml.Node, key string) expectation {
	m := d.object(n, key, levelExpect)
	var e expectation
	if n.Kind == yaml.MappingNode && len(n.Content) == 0 {
		d.fail("empty", key, n, "expects nothing", "name what must come out, such as operation and identity")
	}
	for name, into := range map[string]*string{"operation": &e.operation, "refused": &e.refused} {
		if m[name] != nil {
			*into, _ = d.text(m[name], join(key, name))
		}
	}
	for name, into := range map[string]**string{"subkey": &e.subkey, "account": &e.account} {
		if v := m[name]; v != nil && d.plain(v, join(key, name)) {
			*into = &v.Value
		}
	}
	if m["identity"] != nil {
		e.identity = d.literal(m["identity"], join(key, "identity"))
	}
	if m["verdict"] != nil {
		e.verdict = d.word(m["verdict"], join(key, "verdict"), "default", "applied", "failed", "uncertain")
	}
	if m["class"] != nil {
		e.class = d.word(m["class"], join(key, "class"), string(ClassTransient), string(ClassPermission), string(ClassPrecondition), string(ClassLogic))
	}
	if m["observation"] != nil {
		e.observation = d.word(m["observation"], join(key, "observation"), "applied", "absent", "duplicate", "retry")
	}
	for i, request := range d.optional(m["sent"], join(key, "sent")) {
		e.sent = append(e.sent, d.caseRequest(request, index(join(key, "sent"), i)))
	}
	if m["kept"] != nil {
		e.kept = d.literal(m["kept"], join(key, "kept"))
	}
	if m["result"] != nil {
		e.result = d.caseAnswer(m["result"], join(key, "result"))
	}
	return e
}

// RunCases runs the cases of every connector and returns one finding, an error,
// for each difference from what they expect. Cases run with the record that
// CaseID, CaseMarker, CaseVendorKey and CaseClaimedAt describe, no object
// belongs to another mutation, and clocks agree.
func (s *Set) RunCases() Findings {
	var out Findings
	for _, c := range s.connectors {
		for _, one := range c.cases {
			for _, problem := range one.run(c) {
				out = append(out, Finding{
					Severity: SeverityError, Code: "case", File: c.File, Line: one.node.Line, Column: one.node.Column,
					Key: one.key, Value: printable(one.name), Problem: problem.problem, Fix: problem.fix,
				})
			}
		}
	}
	sortFindings(out)
	return out
}

// Cases counts the connector's cases.
func (c *Connector) Cases() int { return len(c.cases) }

// differs says how a value differs from what was expected; "" when it doesn't.
func differs(what, want, got string) string {
	if want == got {
		return ""
	}
	return fmt.Sprintf("%s is %s, expected %s", what, strconv.Quote(got), strconv.Quote(want))
}
