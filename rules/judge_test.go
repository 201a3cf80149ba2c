package rules

import (
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

const judged = `outcome:
      - {when: "response.status == 409 && response.json.code == 'ours'", then: applied}
      - {when: "header_of(response, 'Retry-After') != '' && response.status == 403", then: failed, class: transient}
      - {when: "response.status == 422 && response.json.?code.orValue('') == ''", then: failed, class: logic}
      - {when: "response.status == 500 && json.sure == 'no' && mutation.generation == 0 && account == 'acc'", then: uncertain}
    success: response.json.ok == true`

func TestJudge(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, keys string
		resp       Response
		want       verdict.OpinionKind
		class      verdict.Class
		part       string
	}{
		{"a condition on status and body", judged, Response{Status: 409, Body: []byte(`{"code":"ours"}`), Complete: true}, verdict.OpinionApplied, "", "response.json.code == 'ours'"},
		{"a condition on the header", judged, Response{Status: 403, Header: map[string][]string{"Retry-After": {"5"}}, Complete: true}, verdict.OpinionFailed, verdict.Transient, "Retry-After"},
		{"a condition that no answer decides", judged, Response{Status: 403, Complete: true}, verdict.OpinionNone, "", ""},
		{"a member that is missing", judged, Response{Status: 409, Body: []byte(`{}`), Complete: true}, verdict.OpinionUncertain, "", "can't be evaluated"},
		{"a body that was cut, where it decides", judged, Response{Status: 409, Body: []byte(`{"code"`)}, verdict.OpinionUncertain, "", "not complete"},
		{"a body that was cut, behind a default", judged, Response{Status: 422}, verdict.OpinionUncertain, "", "not complete"},
		{"a body that is absent, behind a default", judged, Response{Status: 422, Complete: true}, verdict.OpinionFailed, verdict.Logic, "422"},
		{"a body that repeats a name that is read", judged, Response{Status: 422, Body: []byte(`{"code":"","code":""}`), Complete: true}, verdict.OpinionUncertain, "", "repeats"},
		{"a body that repeats another name", judged, Response{Status: 422, Body: []byte(`{"a":1,"a":2}`), Complete: true}, verdict.OpinionFailed, verdict.Logic, "422"},
		{"a body in an unknown encoding", judged, Response{Status: 422, Header: map[string][]string{"Content-Encoding": {"br"}}, Body: []byte(`x`), Complete: true}, verdict.OpinionUncertain, "", "Content-Encoding"},
		{"a condition on request, record and account", judged, Response{Status: 500, Complete: true}, verdict.OpinionUncertain, "", "json.sure"},
		{"success", judged, Response{Status: 200, Body: []byte(`{"ok":true}`), Complete: true}, verdict.OpinionNone, "", ""},
		{"no success", judged, Response{Status: 200, Body: []byte(`{"ok":false}`), Complete: true}, verdict.OpinionUncertain, "", "success condition is false"},
		{"success that can't be told", judged, Response{Status: 200, Body: []byte(`ok`), Complete: true}, verdict.OpinionUncertain, "", "success condition can't be evaluated"},
		{"success of a body that was cut", judged, Response{Status: 201}, verdict.OpinionUncertain, "", "success condition can't be evaluated"},
		{"success is about 2xx alone", judged, Response{Status: 302, Complete: true}, verdict.OpinionNone, "", ""},
		{"success that is no truth", "success: response.json.ok", Response{Status: 200, Body: []byte(`{"ok":"yes"}`), Complete: true}, verdict.OpinionUncertain, "", "neither true nor false"},
		{"text that is no JSON", "success: response.text.contains('unpack ok')", Response{Status: 200, Body: []byte("0030\x01000eunpack ok\n"), Complete: true}, verdict.OpinionNone, "", ""},
		{"text that says otherwise", "success: response.text.contains('unpack ok')", Response{Status: 200, Body: []byte("unpack failed"), Complete: true}, verdict.OpinionUncertain, "", "false"},
		{"text of JSON that repeats a name", "success: response.text.contains('ok')", Response{Status: 200, Body: []byte(`{"ok":1,"ok":2}`), Complete: true}, verdict.OpinionNone, "", ""},
		{"no text at all", "success: response.text == ''", Response{Status: 200, Complete: true}, verdict.OpinionNone, "", ""},
		{"text in another encoding", "success: response.text.contains('ok')", Response{Status: 200, Body: []byte("ok \xff"), Complete: true}, verdict.OpinionUncertain, "", "can't be evaluated"},
		{"text of an unknown coding", "success: response.text.contains('ok')", Response{Status: 200, Header: http.Header{"Content-Encoding": {"br"}}, Body: []byte("ok"), Complete: true}, verdict.OpinionUncertain, "", "can't be evaluated"},
		{"nothing said", "", Response{Status: 200, Complete: true}, verdict.OpinionNone, "", ""},
		{"otherwise", "outcome: [{when: response.status == 201, then: applied}, {otherwise: uncertain}]", Response{Status: 400, Complete: true}, verdict.OpinionUncertain, "", "otherwise"},
		{"before otherwise", "outcome: [{when: response.status == 201, then: applied}, {otherwise: uncertain}]", Response{Status: 201, Complete: true}, verdict.OpinionApplied, "", "201"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, op := operation(t, mutationWith(tc.keys))
			got := op.Judge(request(t, "POST https://api.test/things", `{"sure":"no"}`), "acc", Mutation{}, &tc.resp)
			if got.Kind != tc.want || got.Class != tc.class || !strings.Contains(got.Reason, tc.part) || (tc.part == "") != (got.Reason == "") {
				t.Errorf("opinion %v %q %q, want %v %q …%s…", got.Kind, got.Class, got.Reason, tc.want, tc.class, tc.part)
			}
		})
	}
}

func TestJudgesBodyWheneverTheBodyCanDecide(t *testing.T) {
	t.Parallel()
	cases := []struct {
		keys string
		want bool
	}{
		{"", false},
		{"outcome: [{when: response.status == 409, then: uncertain}]", false},
		{"outcome: [{when: \"header_of(response, 'x') == 'y' && response.header.a == 'b' && response.complete\", then: applied}]", false},
		{"outcome: [{when: response.json.a == 1, then: applied}]", true},
		{"outcome: [{when: response.?json.?a.orValue(1) == 1, then: applied}]", true},
		{"outcome: [{when: \"response['json'].a == 1\", then: applied}]", true},
		{"outcome: [{when: \"response[['json'][0]].a == 1\", then: applied}]", true},
		{"outcome: [{when: \"[response].exists(r, r.json.a == 1)\", then: applied}]", true},
		{"outcome: [{when: response.text == 'a', then: applied}]", true},
		{"success: response.status == 200", true},
	}
	for _, tc := range cases {
		_, op := operation(t, mutationWith(tc.keys))
		if got := op.JudgesBody(); got != tc.want {
			t.Errorf("%s: JudgesBody = %v, want %v", tc.keys, got, tc.want)
		}
	}
}

func TestABodyDecidesUnlessEachConditionOnItIsFalseByTheHead(t *testing.T) {
	t.Parallel()
	cases := []struct {
		keys string
		want bool
	}{
		{"", false},
		{"outcome: [{when: response.status == 200, then: failed, class: logic}]", false},
		{"outcome: [{when: \"response.status == 400 && response.json.a == 1\", then: uncertain}]", false},
		{"outcome: [{when: \"response.json.a == 1 && response.status == 400\", then: uncertain}]", true},
		{"outcome: [{when: \"response.status == 200 && response.json.a == 1\", then: uncertain}]", true},
		{"outcome: [{when: \"response.status == 200 || response.json.a == 1\", then: uncertain}]", true},
		{"outcome: [{when: \"response.complete && response.json.a == 1\", then: uncertain}]", true},
		{"outcome: [{when: response.?json.?a.orValue(1) == 2, then: uncertain}]", true},
		{"outcome: [{when: response.complete, then: failed, class: logic}]", true},
		{"outcome: [{when: \"response.complete && response.header[?'x-refused'].hasValue()\", then: failed, class: logic}]", true},
		{"success: response.status == 200", true},
	}
	for _, tc := range cases {
		_, op := operation(t, mutationWith(tc.keys))
		if got := op.BodyDecides(request(t, "POST https://api.test/things", `{}`), "", Mutation{}, &Response{Status: 200}); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.keys, got, tc.want)
		}
	}
}

func TestACutBodyCannotHideBehindAnotherSpelling(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"response.text == ''", "response.?text.orValue('') == ''", "!('text' in response)",
		"response.?json.?a.orValue(1) == 1", "has(response.json) == false", "!('json' in response)",
		"response[['json'][0]].?a.orValue(1) == 1", "[response].exists(r, r.?json.?a.orValue(1) == 1)",
	} {
		_, op := operation(t, mutationWith("outcome: [{when: \""+when+"\", then: failed, class: logic}]"))
		got := op.Judge(request(t, "POST https://api.test/things", ""), "", Mutation{}, &Response{Status: 200, Body: []byte(`{"a"`)})
		if got.Kind != verdict.OpinionUncertain {
			t.Errorf("%s on a cut body: %v (%s)", when, got.Kind, got.Reason)
		}
	}
}
