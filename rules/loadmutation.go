package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"golang.org/x/net/http/httpguts"

	"keep-proxy/internal/verdict"
)

// mutation reads what only mutations have.
func (d *decoder) mutation(m fields, op *Operation, l *loading) {
	d.identity(m.At("identity"), op)
	op.subkey = d.expr(m.At("subkey"), inRequest)
	op.describe = d.textWith(m.At("describe"), inRecord)
	op.manualCheck = d.textWith(m.At("manual_check"), inRecord)
	d.replaying(m, op)
	// Unquoted, off is what YAML 1.1 took for false; here it is a word like the others.
	op.Verify = word(d, m.At("verify_on_replay"), op.Verify, VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman)
	op.OnAbsent = word(d, m.At("on_absent"), op.OnAbsent, OnAbsentFail, OnAbsentRedispatch, OnAbsentEscalate)
	op.BlockScope = d.blockScope(m.At("block_scope"), op.BlockScope)
	d.payload(m.At("payload"), op)
	d.nativeKey(m.At("native_key"), op)
	d.markers(m.At("marker"), op)
	op.insignificant = op.ignored.with(op.minor)
	d.outcomes(m.At("outcome"), op)
	op.outcome = append(op.outcome, op.Connector.outcome...)
	if op.graphQL {
		if closing, err := defaultGraphQL(); err == nil {
			op.outcome = append(op.outcome, closing)
		} else {
			d.Fail("expression", m, err.Error(), "report this: it is a fault of keep-proxy")
		}
	}
	op.success = d.judging(m.At("success"))
	d.numbers(m, op, l)
	d.watch(m.At("watch"), op)
	d.send(m.At("send"), op)
	if op.Stream = d.boolean(m.At("stream")); op.Stream && (m.Has("send") || !op.rpc) {
		d.Fail("value", m.At("stream"), "no event of a stream answers it: it is no call of JSON-RPC, or is sent in steps",
			"say match.jsonrpc, and leave send out")
	}
	d.strategies(m.At("reconcile"), op)
	d.verifiable(m.At("verify_on_replay"), op, l)
	d.compensate(m.At("compensate"), op)
	op.namesJSON = op.graphQL || op.reads("json", "aws")
	if op.reads("multipart") {
		op.view = "multipart"
	}
	if op.mails {
		op.view = "mail"
	}
	op.bytesOnly = !op.namesJSON && op.view == "" && !op.reads("form", "form_all", "aws") && (op.collations == nil || op.collations.body == 0)
}

// reads reports whether the rule reads, or names a place of, the request's body under one of the roots.
func (op *Operation) reads(roots ...string) bool {
	at := func(p place) bool { return slices.Contains(roots, p.root) }
	in := func(e *expr) bool { return e != nil && e.readsAny(roots...) }
	placed := func(root string) bool {
		return root == "json" && (op.insignificant.tree() != nil || op.collations.tree() != nil) ||
			len(op.insignificant.names[root]) > 0 || op.collations != nil && len(op.collations.names[root]) > 0
	}
	return slices.ContainsFunc(roots, placed) || slices.ContainsFunc(op.secret, at) ||
		op.NativeKey != nil && at(op.NativeKey.at) || slices.ContainsFunc(op.markers, func(mk *marker) bool { return at(mk.at) }) ||
		in(op.Connector.account) || slices.ContainsFunc(op.exprs(), in)
}

// identity reads the map of names to expressions, or the word none.
func (d *decoder) identity(v value, op *Operation) {
	switch {
	case !v.Given():
		d.Fail("missing", v, "identity is missing: nothing says what the mutation changes",
			"add identity: {name: expression}, or identity: none for one mutation per item and subkey")
		return
	case v.Is(yaml.ScalarNode) && v.Value != "none":
		d.Fail("type", v, "identity must be a map of names to expressions, or none", "write name: EXPRESSION lines below it")
		return
	case v.Is(yaml.ScalarNode):
		op.NoIdentity = word(d, v, "", "none") != ""
		return
	}
	d.Members(v, func(name string, _, member value) {
		if e := d.expr(member, inRequest); e != nil {
			op.identity = append(op.identity, namedExpr{name, e})
		}
	})
	if v.Is(yaml.MappingNode) && len(v.Content) == 0 {
		d.Fail("missing", v, "identity is empty", "name what the mutation changes, or write identity: none")
	}
	if op.identifies("mail", "bytes") {
		d.Fail("identity", v, "reads mail.bytes, which hold date and id of the message: each run would be another mutation",
			"read mail.to, mail.subject or mail.text")
	}
	if len(op.identity) > 0 && !slices.ContainsFunc(op.identity, func(e namedExpr) bool { return len(e.refs) > 0 }) {
		d.Fail("identity", v, "identity derives nothing from the request", "read at least one value of the request, or write identity: none")
	}
}

// telling are the expressions that say which mutation it is.
func (op *Operation) telling() (out []namedExpr) {
	for _, e := range op.identity {
		out = append(out, namedExpr{"identity." + e.name, e.expr})
	}
	out = append(out, namedExpr{"subkey", op.subkey}, namedExpr{"account", op.Connector.account})
	return slices.DeleteFunc(out, func(e namedExpr) bool { return e.expr == nil })
}

// replaying reads what a request that comes again meets.
func (d *decoder) replaying(m fields, op *Operation) {
	op.Repeat = word(d, m.At("repeat"), op.Repeat, RepeatRefuse, RepeatReplay)
	op.Drift = word(d, m.At("drift"), op.Drift, DriftWarn, DriftRefuse, DriftAllow)
	header := m.At("subkey_header")
	op.SubkeyHeader = word(d, header, op.SubkeyHeader, SubkeyForbidden, SubkeyOptional, SubkeyRequired)
	if header.Given() && m.Has("subkey") && op.SubkeyHeader != SubkeyForbidden {
		d.Fail("value", header, "the rule has a subkey of its own", "keep one of subkey and subkey_header")
	}
	for _, item := range d.OneOrMore(m.At("was")) {
		if name := d.shaped(item, operationName); name != "" {
			op.Was = append(op.Was, name)
		}
	}
	op.onSkip = d.result(m.At("on_skip"), inRecord, 599)
	op.onNoResult = d.result(m.At("on_no_result"), inRecord, 599)
}

// earlierNames checks that no operation took its earlier name from another one.
func (d *decoder) earlierNames(c *Connector) {
	taken := map[string]string{}
	for _, op := range c.Operations {
		for _, name := range op.Was {
			at := op.at
			at.Key = "operations"
			switch other := taken[name]; {
			case c.Operation(name) != nil:
				d.Fail("was", at, op.Name+" says that it was "+name+", which is an operation of this file",
					"a name belongs to one operation: rename the other one, or leave was out")
			case other != "":
				d.Fail("was", at, op.Name+" and "+other+" both say that they were "+name, "keep was in one of them")
			}
			taken[name] = op.Name
		}
	}
}

// where names the place as an expression does.
func (p place) where() string {
	if p.root == "json" || p.root == "graphql" || p.root == "aws" {
		return p.source
	}
	return p.root + "['" + p.steps[0].name + "']"
}

// identityReads is the key of an expression that tells mutations apart and reads a value at a place or below; "" for
// none.
func (op *Operation) identityReads(at place) string {
	for _, e := range op.telling() {
		if e.readsAt(at) {
			return e.name
		}
	}
	return ""
}

// readsAt reports whether an expression reads a value that is at a place or below it.
func (e *expr) readsAt(at place) bool {
	return slices.ContainsFunc(e.refs, func(r place) bool {
		root := r.root
		if root == at.root+"_all" {
			root = at.root
		}
		return len(r.steps) >= len(at.steps) && at.covers(root, r.steps)
	})
}

// classes are the classes of a failure that a rule may name.
var classes = verdict.Failures()

// outcomes reads the outcome list.
func (d *decoder) outcomes(v value, op *Operation) {
	items := d.OneOrMore(v)
	for i, item := range items {
		m, ok := d.Map(item, levelOutcome)
		if m.Has("otherwise") {
			op.otherwise = word(d, m.At("otherwise"), "", "uncertain") != ""
			if i != len(items)-1 || m.Len() != 1 {
				d.Fail("value", item, "otherwise must be the last entry, alone", "move it to the end of the list")
			}
			continue
		}
		if ok {
			d.outcome(m, op)
		}
	}
}

// sharedOutcomes reads the outcomes that stand behind those of each operation.
func (d *decoder) sharedOutcomes(v value, c *Connector) {
	var shared Operation
	d.outcomes(v, &shared)
	if shared.otherwise {
		d.Fail("value", v, "otherwise stands in an operation alone", "move it to the operations whose other answers say nothing")
	}
	c.outcome = shared.outcome
}

// outcome reads one entry.
func (d *decoder) outcome(m fields, op *Operation) {
	if !m.Has("when") || !m.Has("then") {
		d.Fail("missing", m, "an outcome needs when and then", "write {when: CONDITION, then: applied|failed|continues|uncertain}")
		return
	}
	o := &outcomeRule{when: d.condition(m.At("when"), inAnswer), kind: verdict.OpinionUncertain, retryAfter: d.expr(m.At("retry_after"), inAnswer)}
	then := word(d, m.At("then"), "", "applied", "failed", "continues", "uncertain")
	for _, kind := range []verdict.OpinionKind{verdict.OpinionApplied, verdict.OpinionFailed} {
		if kind.String() == then {
			o.kind = kind
		}
	}
	if o.continues = then == "continues"; o.continues {
		o.kind = verdict.OpinionFailed
	}
	class := m.At("class")
	o.class = word(d, class, "", classes...)
	switch {
	case o.continues && class.Given():
		d.Fail("value", class, "only a failure has a class", "leave it out, or write then: failed")
	case o.continues:
		o.class = verdict.Precondition
	case o.kind == verdict.OpinionFailed && !class.Given():
		d.Fail("missing", class, "a failure needs its class", "add class: transient, permission, precondition or logic")
	case o.retryAfter != nil && (o.kind == verdict.OpinionApplied || o.retryAfter.neverTime):
		d.Fail("value", m.At("retry_after"), "what didn't take effect has a duration or a time here", "write duration(TEXT) or timestamp(TEXT or SECONDS)")
	case o.kind != verdict.OpinionFailed && class.Given():
		d.Fail("value", class, "only a failure has a class", "leave it out, or write then: failed")
	}
	if o.when == nil {
		return
	}
	if o.kind != verdict.OpinionUncertain {
		d.answered(o.when, "response")
	}
	op.outcome = append(op.outcome, o)
}

// boundsOf reads what is known of the API's delays.
func (d *decoder) boundsOf(v value) *Bounds {
	m, ok := d.Map(v, levelBounds)
	b := &Bounds{Commit: d.duration(m.At("commit")), Lag: d.duration(m.At("lag"))}
	b.Source, _ = d.text(m.At("source"))
	if v.Given() && (!ok || m.Len() != len(levelBounds.Known)) {
		d.Fail("missing", v, "bounds needs commit, lag and source", "write {commit: 30s, lag: 5s, source: URL or where it was measured}")
		return nil
	}
	if !v.Given() {
		return nil
	}
	return b
}

// payload reads which differences count.
func (d *decoder) payload(v value, op *Operation) {
	op.ignored, op.minor = &placed{}, &placed{}
	for _, m := range op.matches {
		if m.mail != nil && m.mail.at.root != "body" {
			op.ignored.add(m.mail.at) // The mail is compared by what it says.
		}
	}
	if op.rpc {
		op.ignored.add(place{root: "json", steps: []placeStep{{name: "id"}}})
	}
	if a := op.Connector.AccountRead; a != nil && a.token != nil {
		op.ignored.add(*a.token) // Other credentials for the same account are no other payload.
	}
	m, _ := d.Map(v, levelPayload)
	for _, item := range d.OneOrMore(m.At("ignore")) {
		if p, ok := d.place(item, op.jsonRoot(), "form", "multipart", "mail", "query", "path", "host"); ok {
			op.ignored.add(p)
			op.ignores = true
		}
	}
	for _, item := range d.OneOrMore(m.At("minor")) {
		if p, ok := d.place(item, op.jsonRoot(), "form", "multipart", "mail", "query", "path", "host", "header"); ok {
			op.minor.add(p)
			op.hasMinor = true
		}
	}
	for _, item := range d.OneOrMore(m.At("headers")) {
		if name, ok := d.headerName(item); ok {
			op.headers = append(op.headers, name)
		}
	}
	slices.Sort(op.headers)
	op.headers = slices.Compact(op.headers)
	if m.Has("normalise") {
		d.Members(m.At("normalise"), func(name string, at, member value) { d.collate(name, at, member, op) })
	}
	if op.compare = d.expr(m.At("compare"), inCompare); op.compare != nil {
		d.compareSecret(op)
	}
}

// jsonRoot is what places in the request's JSON begin with. What a mutation of GraphQL does is compared, and not how its
// document is written.
func (op *Operation) jsonRoot() string {
	if op.graphQL {
		return "graphql"
	}
	return "json"
}

// collate reads in which ways the values at a place are brought into one form before they are compared.
func (d *decoder) collate(name string, at, v value, op *Operation) {
	p, ok := place{source: name, root: name}, name == "body"
	if !ok {
		p, ok = d.place(at, op.jsonRoot(), "form", "multipart", "mail", "query", "path", "header")
		if ok && p.root == "header" && !slices.Contains(op.headers, p.steps[0].name) {
			d.Fail("place", v, "the header field isn't payload", "add it to payload.headers")
			return
		}
	}
	var ways collation
	for _, item := range d.OneOrMore(v) {
		ways |= collationWords[word(d, item, "", slices.Sorted(maps.Keys(collationWords))...)]
	}
	if !ok || ways == 0 {
		return
	}
	if ways&collateHTML != 0 && ways&collateMarkdown != 0 {
		d.Fail("value", v, "a text is either HTML or Markdown", "name one of them; Markdown may hold HTML")
	}
	if op.collations == nil {
		op.collations = &collations{}
	}
	op.collations.add(p, ways)
}

// compareSecret refuses a compare that reads a secret place. What is stored is masked, so that two different secrets
// would look alike.
func (d *decoder) compareSecret(op *Operation) {
	reads, whole := expr{}, false
	for _, r := range op.compare.refs {
		switch {
		case r.root != "stored":
			reads.refs = append(reads.refs, r)
		case len(r.steps) > 0:
			reads.refs = append(reads.refs, place{root: r.steps[0].name, steps: r.steps[1:]})
		default:
			whole = true
		}
	}
	masked := slices.ContainsFunc(op.secret, func(p place) bool { return p.root != "response" })
	if masked && whole || reads.readsSecret(op.secret) {
		d.Fail("secret", op.compare.at, "reads a place that the rule keeps secret, which is masked in what is stored", "compare other places")
	}
}

// readsSecret reports whether an expression reads a secret place of a request.
func (e *expr) readsSecret(secret []place) bool { return slices.ContainsFunc(secret, e.reads) }

// volatileHeaders change at every run, or are not the mutation's.
var volatileHeaders = []string{
	"authorization", "proxy-authorization", "traceparent", "tracestate", "date", "host", "connection",
	"content-length", "transfer-encoding", "user-agent", "cookie",
}

// headerName reads the name of a header field that is payload.
func (d *decoder) headerName(v value) (string, bool) {
	s, ok := d.filled(v)
	name := strings.ToLower(s)
	switch {
	case !ok:
	case !httpguts.ValidHeaderFieldName(s):
		d.Fail("value", v, quoted(s)+" is no header name", "write a name such as x-request-source")
		return "", false
	case slices.Contains(volatileHeaders, name):
		d.Fail("value", v, name+" changes from run to run and can't be payload", "leave it out")
		return "", false
	}
	return name, ok
}

// verifiable checks that what is to be verified can be asked about without sending. It fills in the default where it
// can.
func (d *decoder) verifiable(v value, op *Operation, l *loading) {
	asks := slices.ContainsFunc(op.Strategies, func(s Strategy) bool { return s.Probe != nil || s.Exec != nil })
	switch {
	case op.Verify == "" && asks:
		op.Verify = l.defaults.Verify
	case op.Verify == "", d.pinned && !asks:
		op.Verify = VerifyOff
	case op.Verify != VerifyOff && !asks:
		d.Fail("verify", v, "nothing says how the API is asked before a replay", "add a probe to reconcile, or write verify_on_replay: \"off\"")
	}
	op.Verify = cmp.Or(op.Verify, VerifyOff)
}
