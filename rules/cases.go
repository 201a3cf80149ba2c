package rules

import (
	"cmp"
	"fmt"
	"maps"
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

// caseFraction is how far into the second of CaseClaimedAt the claim was. Claims are never at the beginning of a
// second. An API that gives times in whole seconds makes an object look older than the claim. A case shows what
// follows.
const caseFraction = 500 * time.Millisecond

// caseMutation is the record that cases are run with.
func caseMutation() Mutation {
	at, _ := time.Parse(time.RFC3339, CaseClaimedAt)
	return Mutation{ID: CaseID, Marker: CaseMarker, VendorKey: CaseVendorKey, ClaimedAt: at.Add(caseFraction)}
}

// testCase is one case of a connector.
type testCase struct {
	name    string
	at      Where
	request Raw
	// parameters are set for the case alone.
	parameters map[string]Given
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
	// sent are the requests that go out, and asked those of the probe; nil where nothing is expected of them.
	sent, asked []Raw
	kept        *jsonValue
}

// cases reads the list of cases.
func (d *decoder) cases(v value) (out []*testCase) {
	for _, item := range d.list(v) {
		m, ok := d.Map(item, levelCase)
		if !ok {
			continue
		}
		c := &testCase{at: item.Place(), name: item.Key, request: d.caseRequest(d.need(m, "request"))}
		c.parameters = d.givens(m.At("parameters"))
		if name, ok := d.text(d.need(m, "name")); ok {
			c.name = name
		}
		c.send, c.probe = d.caseAnswers(m.At("send")), d.caseAnswers(m.At("probe"))
		if undo := d.plainText(m.At("undo")); undo != nil {
			c.undo = *undo
		}
		if m.Has("response") {
			c.response = d.caseAnswer(m.At("response"))
		}
		c.expect = d.expectation(d.need(m, "expect"))
		out = append(out, c)
	}
	return out
}

// plainText is a text that may be empty; nil for one that is missing.
func (d *decoder) plainText(v value) *string {
	if !d.Plain(v) {
		return nil
	}
	return &v.Value
}

// caseRequest reads a request: method, url, headers and body.
func (d *decoder) caseRequest(v value) Raw {
	m, ok := d.Map(v, levelCaseAsk)
	if !ok {
		return Raw{}
	}
	raw := Raw{Method: http.MethodGet, Header: d.caseHeaders(m.At("headers")), Body: d.caseBody(m.At("body"))}
	if method, ok := d.text(m.At("method")); ok {
		raw.Method = method
	}
	at := d.need(m, "url")
	if url, ok := d.text(at); ok {
		if raw.Scheme, raw.Authority, raw.Target, ok = splitURL(url, raw.Method); !ok {
			d.Fail("value", at, "is no absolute URL", "write it with https://")
		}
	}
	raw.HasBody = len(raw.Body) > 0
	return raw
}

// caseRequests reads one request, or a list of them.
func (d *decoder) caseRequests(v value) (out []Raw) {
	for _, item := range d.OneOrMore(v) {
		out = append(out, d.caseRequest(item))
	}
	return out
}

// caseAnswers reads one answer, or a list of them.
func (d *decoder) caseAnswers(v value) (out []*Response) {
	for _, item := range d.OneOrMore(v) {
		out = append(out, d.caseAnswer(item))
	}
	return out
}

// caseAnswer reads an answer: status, headers and body.
func (d *decoder) caseAnswer(v value) *Response {
	m, _ := d.Map(v, levelCaseAnswer)
	return &Response{
		Status: cmp.Or(d.number(m.At("status"), 200, 599), http.StatusOK), Complete: true,
		Header: d.caseHeaders(m.At("headers")), Body: d.caseBody(m.At("body")),
	}
}

// caseHeaders reads header fields.
func (d *decoder) caseHeaders(v value) http.Header {
	out := http.Header{}
	if v.Given() {
		d.Members(v, func(name string, _, member value) {
			for _, text := range d.texts(member) {
				out.Add(name, text)
			}
		})
	}
	return out
}

// caseBody reads a body: text as it is, anything else as JSON.
func (d *decoder) caseBody(v value) []byte {
	if v.Is(yaml.ScalarNode) {
		return []byte(v.Value)
	}
	if body := d.literal(v); body != nil {
		return appendMasked(nil, body, nil)
	}
	return nil
}

// literal reads a value in which nothing is an expression.
func (d *decoder) literal(v value) *jsonValue {
	t := d.template(v, inRequest)
	if t == nil {
		return nil
	}
	if len(t.exprs()) > 0 {
		d.Fail("type", v, "a case holds no expressions", "write the value out")
		return nil
	}
	out, _, err := t.build(nil)
	if err != nil {
		return nil
	}
	return &out
}

// expectation reads what a case expects.
func (d *decoder) expectation(v value) expectation {
	m, ok := d.Map(v, levelExpect)
	var e expectation
	if ok && len(v.Content) == 0 {
		d.Fail("empty", v, "expects nothing", "name what must come out, such as operation and identity")
	}
	e.operation, _ = d.text(m.At("operation"))
	e.refused, _ = d.text(m.At("refused"))
	e.subkey, e.account = d.plainText(m.At("subkey")), d.plainText(m.At("account"))
	e.identity, e.kept = d.literal(m.At("identity")), d.literal(m.At("kept"))
	e.verdict = word(d, m.At("verdict"), "", "default", "applied", "failed", "uncertain")
	e.class = string(word(d, m.At("class"), "", classes...))
	e.observation = word(d, m.At("observation"), "", "applied", "absent", "duplicate", "retry")
	e.sent, e.asked = d.caseRequests(m.At("sent")), d.caseRequests(m.At("asked"))
	if m.Has("result") {
		e.result = d.caseAnswer(m.At("result"))
	}
	return e
}

// RunCases runs the cases of every connector. It returns one finding, an error, for each difference from what they
// expect. Cases run with the record of CaseID, CaseMarker, CaseVendorKey and CaseClaimedAt. No object belongs to
// another mutation, and clocks agree.
func (s *Set) RunCases() Findings {
	var out Findings
	for _, c := range s.Connectors() {
		for _, one := range c.cases {
			for _, problem := range one.run(c.forCase(maps.Clone(one.parameters))) {
				out = append(out, Finding{
					Severity: SeverityError, Code: "case", File: c.File, Line: one.at.Line, Column: one.at.Column,
					Key: one.at.Key, Value: printable(one.name), Problem: problem.problem, Fix: problem.fix,
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
