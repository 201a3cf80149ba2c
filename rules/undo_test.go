package rules

import (
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
)

// undoing makes things that can be taken back by the given compensate.
func undoing(compensate string) string {
	return `
  - name: make
    match: {method: POST, path: "/shops/{shop}/things"}
    effect: mutation
    identity: {of: json.of}
    secret: [json.pin]
    marker: {json: keep_id}
    reconcile:
      - probe:
          get: /things
          candidates: response.json
          ours: found.keep_id == mutation.marker
          tie: marker
          id: found.id
          created: timestamp(found.at)
    compensate: ` + compensate + "\n"
}

func TestAnUndoNamesTheObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		compensate, object, want, body string
	}{
		"in its path": {
			`{delete: "/shops/{path.shop}/things/{object}"}`, "t 1/2", "DELETE https://api.test/shops/s1/things/t%201%2F2", "",
		},
		"in its query": {
			`{post: /undo, query: {id: {cel: object}, of: {cel: json.of}}, reconcile: [{none: why}]}`, "t1", "POST https://api.test/undo?id=t1&of=o1", "",
		},
		"in its body": {
			`{patch: "/things", json: {id: {cel: object}, why: {cel: mutation.marker}, state: void}, reconcile: [{none: why}]}`, "t1",
			"PATCH https://api.test/things", `{"id":"t1","why":"` + CaseMarker + `","state":"void"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, undoing(c.compensate))
			told := caseMutation()
			told.Object = c.object
			req, err := op.Undo.Request(Env{Request: request(t, "POST https://api.test/shops/s1/things", `{"of":"o1"}`), Mutation: told})
			if err != nil {
				t.Fatal(err)
			}
			if got := req.Method + " " + req.URL(); got != c.want || string(req.Body()) != c.body {
				t.Errorf("sends %s with %s, want %s with %s", got, req.Body(), c.want, c.body)
			}
		})
	}
}

func TestAnUndoThatCanNotBeMadeIsNoRequest(t *testing.T) {
	t.Parallel()
	_, op := operation(t, undoing(`{delete: "/shops/{path.shop}/things/{object}"}`))
	made := request(t, "POST https://api.test/shops/s1/things", `{"of":"o1"}`)
	for _, object := range []string{"", "..", ".", "a\x00b"} {
		told := caseMutation()
		told.Object = object
		if req, err := op.Undo.Request(Env{Request: made, Mutation: told}); err == nil {
			t.Errorf("for %q it sends %s", object, req.URL())
		}
	}
	if _, err := op.Undo.Request(Env{Mutation: Mutation{Object: "t1"}}); err == nil {
		t.Error("an undo of no request")
	}
}

func TestWhatIsNotThereIsUndone(t *testing.T) {
	t.Parallel()
	_, op := operation(t, undoing(`{post: "/things/{object}/void", outcome: [{when: "response.status == 410", then: uncertain},
      {when: "response.json.?object.orValue('') == object", then: applied}], reconcile: [{none: why}]}`))
	told := caseMutation()
	told.Object = "t1"
	env := Env{Request: request(t, "POST https://api.test/shops/s1/things", `{"of":"o1"}`), Mutation: told}
	for status, want := range map[int]verdict.OpinionKind{404: verdict.OpinionApplied, 410: verdict.OpinionUncertain, 200: verdict.OpinionNone, 500: verdict.OpinionNone, 403: verdict.OpinionNone} {
		if o := op.Undo.Judge(env, answered(status, `{}`)); o.Kind != want {
			t.Errorf("%d is %q (%s), want %q", status, o.Kind, o.Reason, want)
		}
	}
	if o := op.Undo.Judge(env, answered(409, `{"object":"t1"}`)); o.Kind != verdict.OpinionApplied {
		t.Errorf("the rule's own condition is %q (%s)", o.Kind, o.Reason)
	}
}

func TestAnUndoIsAMutationOfItsOwn(t *testing.T) {
	t.Parallel()
	_, op := operation(t, undoing(`{delete: "/things/{object}", auto: true}`)+"    settle: 10m\n    timeout: 7s\n")
	u := op.Undo
	if !u.Auto || !u.Idempotent || u.Operation.Name != "make/undo" || u.Operation.Settle != 10*time.Minute || u.Operation.Timeout != 7*time.Second {
		t.Errorf("the undo is %+v of %+v", u, u.Operation)
	}
	if s := u.Operation.Strategies; len(s) != 1 || s[0].Kind != StrategyResend || u.Operation.MaxDispatches != DefaultUndoTries {
		t.Errorf("it is found out by %+v in %d sendings", s, u.Operation.MaxDispatches)
	}
	_, op = operation(t, undoing(`{post: "/things/{object}/void", max_dispatches: 2, reconcile: [{probe: {get: "/things/{object}",
      expect: "response.status in [200, 404]", observe: [{when: "response.status == 404", is: applied}, {when: "response.json.id == object", is: absent}], absence_is_proof: true}}]}`))
	told := caseMutation()
	told.Object = "t1"
	asking, err := op.Undo.Operation.Strategies[0].Probe.Begin(Env{Request: request(t, "POST https://api.test/shops/s1/things", `{}`), Mutation: told})
	if err != nil {
		t.Fatal(err)
	}
	if ask, _ := asking.Next(); ask.Target != "/things/t1" {
		t.Errorf("asks for %s", ask.Target)
	}
	asking.Answer(answered(200, `{"id":"t1"}`))
	if o := asking.Observation(func(string) bool { return false }, Clocks{}); o.Seen != SeenAbsent || !o.AbsenceIsProof {
		t.Errorf("sees %+v", o)
	}
	if op.Undo.Auto || op.Undo.Idempotent || op.Undo.Operation.MaxDispatches != 2 {
		t.Errorf("the undo is %+v", op.Undo)
	}
}

func TestProblemsOfCompensateAreNamed(t *testing.T) {
	t.Parallel()
	const none = `, reconcile: [{none: why}]`
	for _, c := range []struct{ name, compensate, code, part string }{
		{"no request", `{auto: true}`, "missing", "makes no request"},
		{"two requests", `{delete: "/a/{object}", put: "/a/{object}"}`, "value", "one request"},
		{"no object", `{delete: "/things/{json.of}"}`, "undo", "does not name the object"},
		{"an object as text", `{post: "/a/{object}", json: {id: "{object}"}` + none + `}`, "literal", "sent literally"},
		{"no way to find out", `{post: "/a/{object}"}`, "no-reconcile", "answer is lost"},
		{"an empty list", `{post: "/a/{object}", reconcile: []}`, "no-reconcile", "empty"},
		{"a resend without a key", `{post: "/a/{object}", reconcile: [{resend: {}}]}`, "resend", "needs a native_key"},
		{"a program", `{post: "/a/{object}", reconcile: [{exec: [cmd]}]}`, "value", "by a program"},
		{"a probe after none", `{post: "/a/{object}", reconcile: [{none: why}, {none: why}]}`, "value", "none must be the last"},
		{"objects of its own", `{post: "/a/{object}", reconcile: [{probe: {get: /a, candidates: response.json, ours: "true", tie: unique, id: found.id, created: found.at}}]}`, "undo", "not by objects"},
		{"evidence of its own", `{post: "/a/{object}", reconcile: [{probe: {get: /a, observe: [{when: "true", is: applied}], id: response.json.id}}]}`, "undo", "not by objects"},
		{"a secret", `{post: "/a/{object}", json: {pin: {cel: json.pin}}` + none + `}`, "undo-secret", "secret place"},
		{"a path variable that no pattern has", `{delete: "/{path.region}/{object}"}`, "variable", "no pattern has {region}"},
		{"an unknown key", `{delete: "/a/{object}", automatic: true}`, "unknown-key", "unknown key"},
		{"an answer in the request", `{delete: "/a/{response.json.id}/{object}"}`, "expression", "undeclared reference"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set, findings := Load([]File{{Name: "f.yaml", Data: []byte(connectorHead + undoing(c.compensate))}}, nil, Defaults{})
			if set != nil {
				t.Fatal("it loads")
			}
			for _, f := range findings {
				if f.Code == c.code && strings.Contains(f.Problem, c.part) && f.Line > 0 && f.Fix != "" {
					return
				}
			}
			t.Errorf("no finding [%s] %s among\n%v", c.code, c.part, findings)
		})
	}
	// Which one is the oldest must be told, and what is taken back can't be named elsewhere.
	noTimes := strings.Replace(undoing(`{delete: "/a/{object}"}`), "          created: timestamp(found.at)\n", "", 1)
	for file, part := range map[string]string{
		noTimes:                          "oldest is kept",
		withOperation("subkey: object"):  "undeclared reference",
		undoing("x") + "    drift: warn": "must be a map",
	} {
		if !strings.HasPrefix(file, "apiVersion") {
			file = connectorHead + file
		}
		if _, findings := Load([]File{{Name: "f.yaml", Data: []byte(file)}}, nil, Defaults{}); !strings.Contains(findings.Error(), part) {
			t.Errorf("not told that %q:\n%v", part, findings)
		}
	}
}
