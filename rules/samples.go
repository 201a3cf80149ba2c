package rules

import (
	"bytes"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Sample is a request by which an operation can be tried.
type Sample struct {
	Operation *Operation
	// Case is the name of the case that it is of.
	Case    string
	Request Raw
	// Changed is the same mutation with another payload; nil if no such request is known.
	Changed *Raw
	// ManualCheck is the rule's text for a person, with its insertions as they are written.
	ManualCheck string
}

// Samples are a request of each mutating operation, in the order of the operations: that of the first case that is
// sent. Operations without such a case are the others.
func (c *Connector) Samples() (samples []Sample, others []*Operation) {
	for _, op := range c.Operations {
		if op.Effect != EffectMutation {
			continue
		}
		if s, ok := c.sampleOf(op); ok {
			samples = append(samples, s)
			continue
		}
		others = append(others, op)
	}
	return samples, others
}

// sampleOf is the first case of the operation that isn't refused.
func (c *Connector) sampleOf(op *Operation) (Sample, bool) {
	for _, one := range c.cases {
		if one.expect.refused != "" {
			continue
		}
		if c.derived(one.request, op) == nil {
			continue
		}
		s := Sample{Operation: op, Case: one.name, Request: one.request, Changed: c.changed(one.request, op)}
		if op.manualCheck != nil {
			s.ManualCheck = op.manualCheck.source
		}
		return s, true
	}
	return Sample{}, false
}

// changed is the request with a member that it doesn't have, unless that makes another mutation of it.
func (c *Connector) changed(raw Raw, op *Operation) *Raw {
	before := c.derived(raw, op)
	added := raw
	switch body := bytes.TrimSpace(raw.Body); {
	case bytes.HasPrefix(body, []byte("{")) && len(body) > len("{}"):
		added.Body = append([]byte(`{"keep_trial":"changed",`), body[1:]...)
	case strings.Contains(raw.Header.Get("Content-Type"), "x-www-form-urlencoded"):
		added.Body = append(bytes.Clone(raw.Body), "&keep_trial=changed"...)
	default:
		return nil
	}
	after := c.derived(added, op)
	if before == nil || after == nil || before.Subkey != after.Subkey || before.PayloadDigest == after.PayloadDigest ||
		!maps.EqualFunc(before.Identity, after.Identity, func(a, b jsontext.Value) bool { return bytes.Equal(a, b) }) {
		return nil
	}
	return &added
}

// derived is what the operation makes of the request, nil for nothing.
func (c *Connector) derived(raw Raw, op *Operation) *Derived {
	req, refusal := Normalise(raw)
	if refusal != nil {
		return nil
	}
	m := c.matchAt(c.fileHosts, req)
	if m.Operation != op {
		return nil
	}
	if c.AccountRead != nil {
		req = req.WithAccount(c, caseAccount)
	}
	d, refusal := op.Derive(req, m)
	if refusal != nil {
		return nil
	}
	return d
}
