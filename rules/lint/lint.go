// Package lint warns of rules that load, and under which a mutation may be doubled, lost or judged wrongly. Such rules
// break a condition of the promise of docs/semantics.md.
//
// It looks at a loaded set alone. A set without warnings may still be wrong about its API.
//
// # Failure behaviour
//
// There are no errors. What depends on a script's request can't be told from the rule, and is not warned of.
package lint

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"keep-proxy/rules"
)

// Check returns what it warns of.
func Check(set *rules.Set) rules.Findings {
	return each(set, func(l *linter) {
		for _, op := range l.connector.Operations {
			l.operation(op)
			if op.Undo != nil {
				l.asking(op.Undo.Operation)
			}
		}
	})
}

// Accounts warns of mutations whose credentials come from the script, where nothing says whose data they change. Two
// tenants of an API get the same keys. Rules know no credentials. What always tells is whether a connector's
// credentials come from the configuration on every request.
func Accounts(set *rules.Set, always func(connector string) bool) rules.Findings {
	return each(set, func(l *linter) {
		if !always(l.connector.Name) {
			l.account()
		}
	})
}

// each looks at each connector.
func each(set *rules.Set, look func(*linter)) rules.Findings {
	var out rules.Findings
	for _, c := range set.Compiled() {
		l := &linter{connector: c}
		look(l)
		out = append(out, slices.DeleteFunc(l.findings, l.accepted)...)
	}
	slices.SortStableFunc(out, func(a, b rules.Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// accepted reports whether the file answers a warning, for the connector or for the operation that it is about.
func (l *linter) accepted(f rules.Finding) bool {
	if l.connector.Accept[f.Code] != "" {
		return true
	}
	return slices.ContainsFunc(l.connector.Operations, func(op *rules.Operation) bool {
		return op.Accept[f.Code] != "" && strings.HasPrefix(f.Key+".", op.Facts().At.Key+".")
	})
}

// linter looks at one connector.
type linter struct {
	connector *rules.Connector
	findings  rules.Findings
}

// warn adds a finding, once for each place and code: the account is the same for every operation.
func (l *linter) warn(code string, at rules.Where, problem, fix string) {
	f := rules.Finding{
		Severity: rules.SeverityWarning, Code: code, File: l.connector.File, Line: at.Line, Column: at.Column,
		Key: at.Key, Value: at.Value, Problem: problem, Fix: fix,
	}
	if !slices.Contains(l.findings, f) {
		l.findings = append(l.findings, f)
	}
}

// account warns of mutations of which nothing says whose data they change.
func (l *linter) account() {
	c := l.connector
	if c.HasAccount || !slices.ContainsFunc(c.Operations, func(op *rules.Operation) bool { return op.Effect == rules.EffectMutation }) {
		return
	}
	at := c.At()
	at.Key, at.Value = "account", ""
	l.warn("account", at, "credentials come from the script and nothing says whose data they change: two accounts of "+c.Name+" share their keys",
		"add account: with an expression such as header[?'x-account'].orValue(''), or configure credentials with use: always")
}

// operation looks at one operation.
func (l *linter) operation(op *rules.Operation) {
	f := op.Facts()
	if other := op.Hidden(); other != nil {
		l.warn("unreached", f.At.Under("match"), "nothing ever gets to "+op.Name+": all that fits it fits "+other.Name+
			", which goes first, and is judged by its rule",
			"say before: ["+other.Name+"] in "+op.Name+" and not the other way round, or narrow "+other.Name)
	}
	l.anyMethod(op, f)
	for _, m := range f.Matches {
		if m.When != nil && op.Effect != rules.EffectDeny {
			l.graphQL(m.When)
		}
	}
	switch op.Effect {
	case rules.EffectRead, rules.EffectIgnore:
		l.passing(f)
	case rules.EffectMutation:
		l.oneThing(f)
		l.toldByHeader(op, f)
		l.identity(op, f)
		l.credentials(op, f)
		l.natural(op, f)
		l.nativeKey(op, f)
		l.asking(op)
		l.watch(op)
		l.noResult(op, f)
	case rules.EffectDeny:
	}
}

// noResult warns of a mutation whose lost answer nobody finds, where the rule gives none in its place.
func (l *linter) noResult(op *rules.Operation, f rules.Facts) {
	if !op.Reconciles() && !op.StandsInForResult() {
		l.warn("no-result", f.At, "if a person says that it happened, nobody knows its answer: the script gets 424 no-result",
			"add on_no_result: with what a script can go on from, such as {status: 200}, or accept: [{no-result: why}]")
	}
}

// anyMethod warns of a match that takes every method, where that is hardly meant.
func (l *linter) anyMethod(op *rules.Operation, f rules.Facts) {
	every := func(m rules.MatchFacts) bool { return len(m.Methods) == 0 && !reads(m.When, "method") }
	i := slices.IndexFunc(f.Matches, every)
	switch {
	case i < 0:
	case op.Effect == rules.EffectMutation:
		l.warn("any-method", f.Matches[i].At, "has no method, and so takes GET, HEAD and OPTIONS for mutations, too: one is answered with what another did",
			"add method: POST, or a list of those that change something")
	case op.Effect == rules.EffectRead || op.Effect == rules.EffectIgnore:
		l.warn("any-method", f.Matches[i].At, "has no method, and so lets every one pass unrecorded, DELETE among them",
			"add method: with those that are meant, such as [GET, HEAD] or POST")
	}
}

// oneThing warns of matches that hardly are spellings of one thing. Which of them fits is part of neither a mutation's
// key nor its payload.
func (l *linter) oneThing(f rules.Facts) {
	first := ""
	for _, m := range f.Matches {
		switch word := lastWord(m.Path); {
		case word == "":
		case first == "":
			first = word
		case word != first:
			l.warn("spelling", m.At, "the paths end in "+quoted(first)+" and "+quoted(word)+
				", and are spellings of one thing here: a request of one is answered with what a request of another did, and not sent",
				"make an operation for each, unless they are two names of the same")
			return
		}
	}
}

var variable = regexp.MustCompile(`\{[^}]*\}`)

// lastWord is the last literal part of a path pattern; "" for none.
func lastWord(pattern string) string {
	for _, segment := range slices.Backward(strings.Split(pattern, "/")) {
		if word := variable.ReplaceAllString(segment, ""); word != "" {
			return word
		}
	}
	return ""
}

// volatileFields are header fields that clients make anew for each request, or that tell only the client. By them, a
// re-run would find nothing that it did before.
var volatileFields = []string{
	"traceparent", "tracestate", "baggage", "sentry-trace", "x-amzn-trace-id", "x-cloud-trace-context", "x-datadog-trace-id",
	"x-b3-traceid", "x-b3-spanid", "x-b3-parentspanid", "b3", "date", "x-amz-date", "x-request-id", "x-correlation-id",
	"x-client-request-id", "amz-sdk-invocation-id", "idempotency-key", "x-idempotency-key", "user-agent",
}

// identity warns of a key that is another one at each run, or that we replace. It also warns of a key that tells no
// more than two mutations apart.
func (l *linter) identity(op *rules.Operation, f rules.Facts) {
	tells, subkey := false, false
	var first *rules.Expr
	for _, e := range f.Telling {
		if e.What == "account" {
			continue
		}
		subkey = subkey || e.What == "subkey"
		if strings.HasPrefix(e.What, "identity.") && len(e.Refs()) > 0 {
			tells = tells || !e.AlwaysBool()
			first = cmp.Or(first, e.Expr)
		}
		if whole := strings.TrimSpace(e.Source()); whole == "json" || whole == "method" {
			l.warn("identity", e.At(), "takes "+whole+" as a whole", "name the fields that say what is changed")
		}
		l.volatile(op, f, e)
	}
	if first != nil && !tells && !subkey {
		at := first.At()
		at.Key, at.Value = f.At.Under("identity").Key, ""
		l.warn("identity", at, "is true or false, whatever the request changes: all mutations of an item but two share their keys",
			"name the value that says what is changed, such as json.order")
	}
	for _, e := range f.Telling {
		if e.ReadsKey && op.NativeKey.WhenPresent == rules.PresentReplace {
			l.warn("replaced", op.NativeKey.Where(), "the key goes to "+f.KeyAt+", which "+e.What+
				" reads: the API gets it in place of what the script writes there",
				"if the API needs the script's own value, name the place that it documents for idempotency keys; else this is sound")
			return
		}
	}
}

// volatile warns of an expression that reads what is another at each run.
func (l *linter) volatile(op *rules.Operation, f rules.Facts, e rules.TellingFacts) {
	if k := op.NativeKey; k != nil && k.WhenPresent != rules.PresentRefuse && k.In != "header" && e.HoldsKey {
		l.warn("volatile", e.At(), e.What+" reads all of what holds the native key "+f.KeyAt+
			", which most clients make anew at each run: a re-run would be sent again",
			"name the values beside it that say what is changed, such as json.order")
		return
	}
	for _, r := range e.Refs() {
		if r.Root == "header" && slices.Contains(volatileFields, strings.ToLower(r.Name())) && !e.ReadsKey {
			l.warn("volatile", e.At(), e.What+" reads the header field "+r.Name()+
				", which most clients make anew at each run: a re-run would be new work, and be sent again",
				"name what stays the same in a rewritten script, such as json.order")
			return
		}
	}
}

// credentials warns of what is stored in clear and has the name of a credential.
func (l *linter) credentials(op *rules.Operation, f rules.Facts) {
	for _, e := range f.Telling {
		for _, r := range e.Refs() {
			root := strings.TrimSuffix(r.Root, "_all")
			switch {
			case e.Hashed || r.Veiled || root != "header" && root != "query":
			case rules.NamedLikeCredential(r.Name()):
				place := root + "['" + r.Name() + "']"
				l.warn("credential", e.At(), "the "+e.What+" reads "+place+", which has the name of a credential, and stores it in clear",
					"add "+place+" under secret: of the operation, if it is one")
			case root == "query" && r.Name() == "":
				l.warn("credential", e.At(), "the "+e.What+" may read all of the query, and stores it in clear, a credential among it",
					"name the members that it needs")
			}
		}
	}
	for _, name := range f.Headers {
		if rules.NamedLikeCredential(name) && !op.HidesField(name) {
			l.warn("credential", f.At.Under("payload.headers"),
				quoted(name)+" has the name of a credential, and is stored as it is, since it is payload",
				"add header['"+name+"'] under secret:, if it is one")
		}
	}
}

// natural warns of a resend that may undo what others set meanwhile.
func (l *linter) natural(op *rules.Operation, f rules.Facts) {
	natural := func(s rules.Strategy) bool { return s.Natural }
	if slices.ContainsFunc(op.Strategies, natural) && (op.BlockScope == "item" || op.BlockScope == "mutation") {
		l.warn("resend", f.At.Under("reconcile"), "with block_scope "+op.BlockScope+" others may set the same meanwhile, and natural would undo what they set",
			"leave block_scope at workflow, or let natural be only where nothing else sets the same")
	}
}
