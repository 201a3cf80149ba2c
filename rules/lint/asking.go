package lint

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"keep-proxy/internal/verdict"
	"keep-proxy/rules"
)

// asking looks at how answers of the API are judged, for an operation or an undo.
func (l *linter) asking(op *rules.Operation) {
	f := op.Facts()
	l.gateways(op, f)
	for _, probe := range f.Probes {
		l.sinceClaim(probe)
		l.anyones(f, probe)
		l.leavesOut(f, probe)
		for _, read := range probe {
			l.read(f, read)
		}
	}
}

// gateways warns of an outcome that is sure of a gateway's answer in place of the API's own. The request may have been
// passed on.
func (l *linter) gateways(op *rules.Operation, f rules.Facts) {
	nothing, refused := rules.Normalise(rules.Raw{Method: http.MethodGet, Scheme: "https", Authority: "nothing", Target: "/"})
	if refused != nil {
		return
	}
	for _, status := range []int{http.StatusBadGateway, http.StatusGatewayTimeout} {
		opinion := op.Judge(nothing, "", rules.Mutation{}, &rules.Response{
			Status: status, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html></html>"), Complete: true,
		})
		if opinion.Kind != verdict.OpinionApplied && opinion.Kind != verdict.OpinionFailed {
			continue
		}
		at := f.At.Under("outcome")
		for _, e := range slices.Backward(f.Outcome) {
			if strings.HasSuffix(opinion.Reason, e.Source()) {
				at = e.At()
			}
		}
		l.warn("gateway", at, "is true of a gateway's own "+strconv.Itoa(status)+
			", which says nothing of what the API did with the request: it would be "+opinion.Kind.String(),
			"name the statuses that the API answers itself, such as response.status == 400; leave 502 and 504 to the default table")
		return
	}
}

// saysNothing is what APIs answer that tell errors with 200.
const saysNothing = `{"ok":false,"success":false,"error":"e","message":"m"}`

// saysNothingWith are statuses that tell nothing of the object that is asked for. A 403 may hide it, and the rest are
// about the asking.
var saysNothingWith = []int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusBadGateway}

func answerOfNothing(status int) *rules.Response {
	return &rules.Response{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(saysNothing), Complete: true}
}

// believed warns of what is found in an answer that says nothing of it.
func (l *linter) believed(e *rules.Expr, what string, status int, fix string) {
	l.warn("absence", e.At(), "finds "+what+" in an answer of "+strconv.Itoa(status)+
		" that says nothing of it, such as {\"ok\":false} or {\"error\":…}, which would be believed", fix)
}

// read looks at one read of a probe.
func (l *linter) read(f rules.Facts, p rules.ProbeFacts) {
	if p.AbsenceIsProof && p.Listing && !p.Paged {
		l.warn("pages", p.At, "absence_is_proof without pages takes one page for the whole listing", "add pages:, unless the API gives everything at once")
	}
	if p.Tie == rules.TieMarker && len(f.Markers) > 0 && p.Ours != nil &&
		!slices.ContainsFunc(f.Markers, func(name string) bool { return strings.Contains(p.Ours.Source(), name) }) {
		l.warn("tie", p.Ours.At(), "ours does not look at "+quoted(f.Markers[0])+", where the marker is written",
			"compare what the API calls that place with mutation.marker; if the API gives it another name, a case for a hit shows that it is found")
	}
	// Many APIs say with 200 that they had too many requests or know no such token.
	for _, status := range saysNothingWith {
		decides, seen := p.Sees(answerOfNothing(status))
		what := "absence"
		switch {
		case decides == nil, status == http.StatusOK && !decides.ReadsAnswerBody():
			continue // that the object is there may be all that is asked
		case seen == rules.SeenAbsent && p.AbsenceIsProof:
		case seen == rules.SeenApplied && status != http.StatusOK:
			what = "the effect"
		default:
			continue
		}
		l.believed(decides, what, status, "read what must be there without a default, or add expect: with what only such an answer has, "+
			"such as response.status == 200 && has(response.json.kind)")
		return
	}
}

// watch warns of a watch that finds an end in an answer that says nothing of what was accepted. An error
// that comes with 200 may be that of what was accepted, and so a failure.
func (l *linter) watch(op *rules.Operation) {
	if op.Watch == nil {
		return
	}
	for _, status := range saysNothingWith {
		decides, seen := op.Watch.Sees(answerOfNothing(status))
		what, fix := "the effect", "name in expect: the statuses with which the API tells of what it accepted, such as response.status in [200, 404]"
		switch {
		case decides == nil, status == http.StatusOK && (seen == rules.WatchFailed || !decides.ReadsAnswerBody()):
			continue
		case status == http.StatusOK:
			fix = "read what must be there without a default, such as response.json.state == 'done'"
		case seen == rules.WatchFailed:
			what = "a failure"
		}
		l.believed(decides, what, status, fix)
		return
	}
}

// anyones warns of a probe that is the same for every mutation of the operation. What it finds, another mutation may
// have made, and each would be taken to have taken effect. The host needs no warning: a probe asks that of the
// mutation.
func (l *linter) anyones(f rules.Facts, probe []rules.ProbeFacts) {
	differ := slices.IndexFunc(f.Telling, func(e rules.TellingFacts) bool {
		ofRequest := func(r rules.Ref) bool { return r.Root != "host" && r.Root != "authority" }
		return strings.HasPrefix(e.What, "identity.") && slices.ContainsFunc(e.Refs(), ofRequest)
	})
	if differ < 0 {
		return
	}
	for _, read := range probe {
		if slices.ContainsFunc(slices.Concat(read.Narrowing, read.Observed), tellsApart) {
			return
		}
	}
	source := f.Telling[differ].Source()
	l.warn("anyones", probe[0].At, "asks and judges by nothing of the mutation, and so finds the same for all that differ in "+
		quoted(source)+": one would be taken for done by what another did",
		"ask by what tells them apart, or compare it with the answer, such as found.x == "+source)
}

// leavesOut warns of a weak tie that doesn't look at a part of the payload. Somebody else's object may differ there.
func (l *linter) leavesOut(f rules.Facts, probe []rules.ProbeFacts) {
	weak := slices.IndexFunc(probe, func(p rules.ProbeFacts) bool { return p.Ours != nil && p.Tie.Weak() })
	if weak < 0 {
		return
	}
	var read []rules.Ref
	for _, p := range probe {
		for _, e := range p.Narrowing {
			read = append(read, e.Refs()...)
		}
	}
	for _, named := range f.Named {
		looksAt := func(r rules.Ref) bool {
			n := min(len(r.Names), len(named.Names))
			return r.Root == named.Root && slices.Equal(r.Names[:n], named.Names[:n]) || r.Root == "body_sha256" ||
				r.Root == "mutation" && slices.Contains([]string{"kept", "marker", "vendor_key"}, r.Name())
		}
		if !slices.ContainsFunc(read, looksAt) {
			what := strings.Join(named.Names, ".")
			l.warn("payload", probe[weak].Ours.At(), "doesn't look at "+named.Root+"."+what+
				": an object that somebody else made with another value there may be taken for this mutation's",
				"compare all of the payload that the API shows, such as found."+what+" == "+named.Root+"."+what)
			return
		}
	}
}

// tellsApart reports whether the value can differ between two mutations that were claimed at once.
func tellsApart(e *rules.Expr) bool {
	return slices.ContainsFunc(e.Refs(), func(r rules.Ref) bool {
		switch r.Root {
		case "json", "graphql", "form", "form_all", "multipart", "jsonrpc", "mail", "aws", "body_md5", "query", "query_all", "path", "host", "header",
			"body_sha256", "account", "object":
			return true
		case "mutation":
			return r.Name() != "claimed_at" && r.Name() != "generation"
		}
		return false
	})
}

// reads reports whether an expression reads one of the variables.
func reads(e *rules.Expr, roots ...string) bool {
	return e != nil && slices.ContainsFunc(e.Refs(), func(r rules.Ref) bool { return slices.Contains(roots, r.Root) })
}

// readsName reports whether it reads root.name, or the root as a whole.
func readsName(e *rules.Expr, root, name string) bool {
	return e != nil && slices.ContainsFunc(e.Refs(), func(r rules.Ref) bool { return r.Root == root && (r.Name() == name || r.Name() == "") })
}

func quoted(s string) string { return strconv.Quote(s) }
