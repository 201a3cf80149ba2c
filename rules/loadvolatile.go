package rules

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// volatileFields are header fields that clients make anew for each request, or that tell the
// client and not what is changed: a re-run would be known by nothing that it did before.
var volatileFields = []string{
	"traceparent", "tracestate", "baggage", "sentry-trace", "x-amzn-trace-id", "x-cloud-trace-context", "x-datadog-trace-id",
	"x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "b3", "date", "x-amz-date", "x-request-id", "x-correlation-id",
	"x-client-request-id", "amz-sdk-invocation-id", "idempotency-key", "x-idempotency-key", "user-agent",
}

// volatile warns of a key that is another one at each run, and of one that tells no more than
// two mutations apart.
func (d *decoder) volatile(n *yaml.Node, key string, op *Operation) {
	for _, e := range op.identity {
		d.changing(e.expr, "identity."+e.name, op)
	}
	d.changing(op.subkey, "subkey", op)
	reads := slices.DeleteFunc(slices.Clone(op.identity), func(e namedExpr) bool { return len(e.refs) == 0 })
	if len(reads) > 0 && op.subkey == nil && !slices.ContainsFunc(reads, func(e namedExpr) bool { return !e.alwaysBool }) {
		d.warn("identity", key, n, "is true or false, whatever the request changes: all mutations of an item but two share their keys",
			"name the value that says what is changed, such as json.order")
	}
}

// changing warns of an expression that reads a volatile field. One that is the native key's
// has a finding of its own.
func (d *decoder) changing(e *expr, what string, op *Operation) {
	if e == nil {
		return
	}
	if k := op.NativeKey; k != nil && k.WhenPresent != PresentRefuse && k.In != "header" && e.reads(k.at) && !e.readsAt(k.at) {
		at := d.standing(e, nil, what)
		d.warn("volatile", at.key, at.node,
			what+" reads all of what holds the native key "+k.at.where()+", which most clients make anew at each run: a re-run would be sent again",
			"name the values beside it that say what is changed, such as json.order")
		return
	}
	for _, r := range e.refs {
		if r.root != "header" || len(r.steps) == 0 || !slices.Contains(volatileFields, strings.ToLower(r.steps[0].name)) ||
			op.NativeKey != nil && e.readsAt(op.NativeKey.at) {
			continue
		}
		at := d.standing(e, nil, what)
		d.warn("volatile", at.key, at.node,
			what+" reads the header field "+r.steps[0].name+", which most clients make anew at each run: a re-run would be new work, and be sent again",
			"name what stays the same in a rewritten script, such as json.order")
		return
	}
}
