package proxy

import (
	"context"
	"errors"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// changed is testRules with a part of it written otherwise.
func changed(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(testRules) }

func (w *world) end(r *run) {
	w.t.Helper()
	if _, err := w.ledger.EndRun(w.t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
		w.t.Fatal(err)
	}
}

func TestAChangedRuleMeetsItsPast(t *testing.T) {
	t.Parallel()
	const body = `{"to":"x","n":1}`
	for _, c := range []struct {
		name, now, body string
		replayed        bool
	}{
		{"its identity has another name", changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`), body, true},
		{"its identity has one name more", changed(`identity: {to: json.to}
    payload`, `identity: {to: json.to, n: json.n}
    payload`), body, true},
		{"it was renamed", changed("name: pay\n", "name: transfer\n    was: [pay]\n"), body, true},
		{"it was renamed, and doesn't say so", changed("name: pay\n", "name: transfer\n"), body, true},
		{"it was changed, and this is another mutation", changed(`identity: {to: json.to}
    payload`, `drift: allow
    identity: {payee: json.to}
    payload`), `{"to":"y","n":1}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			_, answer := w.payThen(c.now, body, c.body, "/pay")
			if c.replayed {
				wantAnswer(t, answer, 201, `{"id":1}`, true)
				w.wantSends("/pay", 1)
				return
			}
			wantAnswer(t, answer, 201, `{"id":1}`, false)
			w.wantSends("/pay", 2)
		})
	}
}

// An operation of another name is this one's past only if its version took the request for it,
// not if it alone would fit.
func TestAnotherNameIsThePastOfWhatItWasTakenForAlone(t *testing.T) {
	t.Parallel()
	const first = "  - name: urgent\n    before: [pay]\n    match: {method: POST, path: /pay, when: \"json[?'urgent'].orValue(false)\"}\n" +
		"    effect: mutation\n    describe: \"Pay {json.to} at once\"\n    identity: {to: json.to}\n    max_body: 4KiB\n" +
		"    reconcile:\n      - none: \"the test API can't be asked\"\n    manual_check: \"look\"\n"
	then := changed("operations:\n", "operations:\n"+first)
	now := strings.NewReplacer("name: urgent\n", "name: express\n", "name: pay\n", "name: plain\n", "before: [pay]", "before: [plain]").Replace(then)
	w := newWorld(t, created)
	w.use(then)
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.end(r)
	w.use(now)
	again := w.open("a")
	wantAnswer(t, again.post("/pay", `{"to":"x","urgent":true}`), 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
	wantAnswer(t, again.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, true)
	w.end(again)
	w.use(then)
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x","urgent":true}`), 201, `{"id":1}`, true)
	w.wantSends("/pay", 2)
}

// The variables of a host are in the key, and the hosts may be the operator's.
func TestOtherHostsInForceMeetTheirPast(t *testing.T) {
	t.Parallel()
	with := func(hosts ...string) []rules.Settings { return []rules.Settings{{Connector: "api", Hosts: hosts}} }
	const named, other, none = "127.0.0.{last}:PORT", "127.0.{a}.{b}:PORT", "127.0.0.1:PORT"
	for name, c := range map[string]struct{ file, then, now string }{
		"the settings name the one host":    {named, "", none},
		"the settings named the one host":   {none, named, ""},
		"the settings had other variables":  {none, other, named},
		"the settings have other variables": {named, "", other},
		"the rules were changed as well":    {named, other, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			_, port, _ := strings.Cut(w.authority, ":")
			at := func(pattern string) string { return strings.ReplaceAll(pattern, "PORT", port) }
			set := func(pattern string) {
				if w.settings = nil; pattern != "" {
					w.settings = with(at(pattern))
				}
			}
			file := changed("HOST", at(c.file))
			set(c.then)
			w.use(file)
			r := w.open("a")
			wantAnswer(t, r.post("/pay", `{"to":"x","n":1}`), 201, `{"id":1}`, false)
			w.end(r)
			set(c.now)
			if strings.HasPrefix(name, "the rules") {
				file = strings.Replace(file, "identity: {to: json.to}", "identity: {payee: json.to}", 1)
			}
			w.use(file)
			wantAnswer(t, w.open("a").post("/pay", `{"to":"x","n":1}`), 201, `{"id":1}`, true)
			w.wantSends("/pay", 1)
		})
	}
}

// Rules that change while a run is open hold from the next request on, and what was
// made before is found.
func TestRulesMayChangeWhileARunIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	w.use(changed(`identity: {to: json.to}
    payload`, `identity: {payee: json.to}
    payload`))
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "repeated", 422, "second intent")
	wantAnswer(t, r.post("/pay", `{"to":"y"}`), 201, `{"id":1}`, false)
	w.wantSends("/pay", 2)
}

// Two mutations that a changed rule takes for one are neither sent nor replayed.
func TestTwoRecordsThatFitAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	fine := changed(`identity: {to: json.to}
    payload`, `identity: {to: json.to, n: json.n}
    payload`)
	w.use(fine)
	r := w.open("a")
	wantAnswer(t, r.post("/pay", `{"to":"x","n":1}`), 201, `{"id":1}`, false)
	w.use(testRules)
	wantAnswer(t, r.post("/pay", `{"to":"x","n":2}`), 201, `{"id":1}`, false)
	wantProblem(t, r.post("/pay", `{"to":"x","n":1}`), "ambiguous-record", 403, "two records fit")
	w.wantSends("/pay", 2)
}

func unreadable(context.Context, string) (*rules.Connector, error) {
	return nil, errors.New("can't be read")
}

func TestARuleThatCantBeReadAnyMoreRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) {
		c.Pinned = unreadable
	})
	_, answer := w.payThen(changed("name: pay\n", "name: transfer\n    was: [pay]\n"), `{"to":"x"}`, `{"to":"x"}`, "/pay")
	wantProblem(t, answer, "ambiguous-record", 403, "nothing was sent")
	w.wantSends("/pay", 1)
}

func TestDriftIsNoticed(t *testing.T) {
	t.Parallel()
	rule := func(drift string) string {
		return changed("describe: \"Pay {json.to}\"", "describe: \"Pay {json.to}\"\n    drift: "+drift)
	}
	for drift, refused := range map[string]bool{"warn": false, "allow": false, "refuse": true} {
		t.Run(drift, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			w.use(rule(drift))
			second, answer := w.payThen(rule(drift), `{"to":"x"}`, `{"to":"y"}`, "/pay")
			if !refused {
				wantAnswer(t, answer, 201, `{"id":1}`, false)
				return
			}
			wantProblem(t, answer, "drift", 422, `identity.to was \"x\", is \"y\"`)
			if s := second.state().State; s != ledger.RunPausedAttention {
				t.Errorf("run is %s", s)
			}
			w.wantSends("/pay", 1)
		})
	}
	t.Run("a batch that is run again from its beginning", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, created)
		w.use(rule("refuse"))
		first := w.open("a")
		for _, to := range []string{"a", "b"} {
			wantAnswer(t, first.post("/pay", `{"to":"`+to+`"}`), 201, `{"id":1}`, false)
		}
		w.end(first)
		second := w.open("a")
		for i, to := range []string{"a", "b", "c"} {
			wantAnswer(t, second.post("/pay", `{"to":"`+to+`"}`), 201, `{"id":1}`, i < 2)
		}
		w.wantSends("/pay", 3)
	})
}

func TestSubkeysFromTheScript(t *testing.T) {
	t.Parallel()
	rule := func(word string) string {
		return changed("describe: \"Pay {json.to}\"", "describe: \"Pay {json.to}\"\n    subkey_header: "+word)
	}
	const body = `{"to":"x"}`
	t.Run("forbidden", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, created)
		wantProblem(t, w.open("a").post("/pay", body, "Keep-Subkey", "1"), "identity", 422, "takes no Keep-Subkey")
		w.wantSends("/pay", 0)
	})
	t.Run("required", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, created)
		w.use(rule("required"))
		wantProblem(t, w.open("a").post("/pay", body), "identity", 422, "needs the header field Keep-Subkey")
		w.wantSends("/pay", 0)
	})
	t.Run("optional", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, created)
		w.use(rule("optional"))
		r := w.open("a")
		for _, header := range [][]string{nil, {"Keep-Subkey", "1"}, {"Keep-Subkey", "2"}} {
			wantAnswer(t, r.post("/pay", body, header...), 201, `{"id":1}`, false)
		}
		wantProblem(t, r.post("/pay", body, "Keep-Subkey", "2"), "repeated", 422, "second intent")
		wantProblem(t, r.post("/pay", body, "Keep-Subkey", strings.Repeat("x", 256)), "identity", 422, "1 to 255 bytes")
		w.wantSends("/pay", 3)
		page, err := w.ledger.Mutations(t.Context(), ledger.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range page.Items {
			if want := []string{"2", "1", ""}[i]; m.Subkey != want || m.Request.Header["Keep-Subkey"] != nil {
				t.Errorf("kept %q, %v; want %q", m.Subkey, m.Request.Header, want)
			}
		}
	})
}

func TestTheRuleAnswersForWhatHasNoResult(t *testing.T) {
	t.Parallel()
	rule := changed("    max_body: 4KiB\n", `    max_body: 4KiB
    on_skip: {status: 404, json: {skipped: {cel: json.to}}}
    on_no_result: {status: 202, header: {x-known: "no"}, json: {id: {cel: mutation.id}}}
`)
	for _, c := range []struct {
		name   string
		decide ledger.Resolve
		status int
		body   string
		detail string
	}{
		{"skipped", ledger.Resolve{Action: ledger.OnSkip}, 404, `{"skipped":"x"}`, "on_skip"},
		{"no result", ledger.Resolve{Action: ledger.OnHappened, NoResult: true}, 202, `{"id":"m-`, "on_no_result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lost)
			w.use(rule)
			wantProblem(t, w.open("a").post("/pay", `{"to":"x"}`), "unknown-outcome", 424, "unknown")
			m := w.mutation("a")
			c.decide.Key, c.decide.Version, c.decide.Actor, c.decide.Reason = m.Key, m.Version, "ada", "test"
			if _, err := w.ledger.Resolve(t.Context(), c.decide); err != nil {
				t.Fatal(err)
			}
			r := w.open("a")
			got := r.post("/pay", `{"to":"x"}`)
			if got.err != nil || got.status != c.status || !strings.HasPrefix(got.body, c.body) || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s %v", got.status, got.body, got.err)
			}
			if s := got.header.Get("Proxy-Status"); s != `keep-proxy; details="`+c.detail+`"` {
				t.Errorf("Proxy-Status: %s", s)
			}
			if m := w.mutation("a"); m.Escalated() {
				t.Errorf("escalated: %+v", m.Escalation)
			}
			wantProblem(t, r.post("/pay", `{"to":"x"}`), "repeated", 422, "second intent")
			w.wantSends("/pay", 1)
		})
	}
}

// skipped is a world whose first mutation was lost, and which a person decided to go on
// without.
func (w *world) skipped(rule string) {
	w.t.Helper()
	w.use(rule)
	wantProblem(w.t.(*testing.T), w.open("a").post("/pay", payX), "unknown-outcome", 424, "unknown")
	m := w.mutation("a")
	_, err := w.ledger.Resolve(w.t.Context(), ledger.Resolve{Key: m.Key, Version: m.Version, Action: ledger.OnSkip, Actor: "ada", Reason: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestASkippedMutationWithoutAnAnswerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost)
	w.skipped(changed("    max_body: 4KiB\n", "    max_body: 4KiB\n    on_skip: {status: 404, json: {skipped: {cel: json.missing}}}\n"))
	wantProblem(t, w.open("a").post("/pay", payX), "skipped", 403, "the rule's own answer (on_skip) can't be made of this request. Nothing was sent.")
	w.wantSends("/pay", 1)
}

// A request that waits while its rule is changed is not sent by the old one: another caller may
// have been sent by the new one meanwhile.
func TestARequestThatWaitedIsNotSentByARuleOfBefore(t *testing.T) {
	t.Parallel()
	rated := strings.Replace(testRules, "reads: safe-methods\n", ratedRules, 1)
	for name, c := range map[string]struct {
		now  string
		sent bool
	}{
		"the operation was renamed":      {strings.Replace(rated, "name: pay\n", "name: transfer\n    was: [pay]\n", 1), false},
		"the connector is there no more": {strings.Replace(rated, "connector: api\n", "connector: other\n", 1), false},
		"the same rules were read again": {rated, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, q := newRatedWorld(t, created)
			answer := w.open("a").posting("/pay", `{"to":"x"}`)
			<-q.waiting
			w.use(c.now)
			q.admit <- struct{}{}
			if c.sent {
				wantAnswer(t, <-answer, 201, `{"id":1}`, false)
				return
			}
			wantProblem(t, <-answer, "draining", 503, "were changed while this request waited; nothing was sent")
			w.noRecords("a")
			w.wantSends("/pay", 0)
		})
	}
}
