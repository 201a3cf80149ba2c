package rules

// Sample is a request by which an operation can be tried.
type Sample struct {
	Operation *Operation
	// Case is the name of the case that it is of.
	Case    string
	Request Raw
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
		req, refusal := Normalise(one.request)
		if refusal != nil {
			continue
		}
		m := c.matchAt(c.fileHosts, req)
		if m.Refusal != nil || m.Operation != op {
			continue
		}
		return Sample{Operation: op, Case: one.name, Request: one.request}, true
	}
	return Sample{}, false
}
