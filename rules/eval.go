package rules

import (
	"fmt"
	"strconv"

	"cel.dev/cel-go/common/types"
)

// Evaluate computes an expression as a rule would: of a request, and of an answer to it unless that is nil. It gives the
// value as JSON, "absent" for an absent optional, or the error, which is CEL's own.
func (s *Set) Evaluate(source string, req *Request, resp *Response) (string, error) {
	at := inRequest
	if resp != nil {
		at = inAnswer
	}
	known := caseMutation()
	values := &scope{req: req, path: map[string]string{}, host: map[string]string{}}
	var params parameterValues
	if m := s.Match(req); m.Operation != nil {
		values, params = m.Operation.bind(req), m.Connector.values
	} else if m.Connector != nil {
		params = m.Connector.values
	}
	e, err := compileExpr(source, at, params)
	if err != nil {
		return "", err
	}
	values.mutation, values.resp = &known, newAnswer(resp)
	if wait, _, _ := e.prog.Eval(values); wait != nil && wait.Type() == types.DurationType {
		return strconv.Quote(fmt.Sprint(wait.Value())), nil // For retry_after alone, so no value of others.
	}
	v, present, err := e.eval(values)
	switch refusal := values.take(); {
	case refusal != nil:
		return "", refusal
	case err != nil:
		return "", fmt.Errorf("%w%s", err, e.lacking(values))
	case !present:
		return "absent", nil
	}
	return string(appendMasked(nil, &v, nil)), nil
}
