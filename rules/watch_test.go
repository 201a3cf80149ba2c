package rules

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// watching is an operation whose 202 is followed.
func watching(watch string) string { return simpleMutation + "    watch: " + watch + "\n" }

// What may still be under way can't be believed absent.
func TestWhatIsFollowedSettlesNoSoonerThanItMayTake(t *testing.T) {
	t.Parallel()
	for watch, want := range map[string]time.Duration{
		"{get: /jobs, until: response.json.done, max: 48h}": 48 * time.Hour,
		"{get: /jobs, until: response.json.done, max: 1m}":  DefaultSettle,
	} {
		if _, op := operation(t, watching(watch)); op.Watch == nil || op.Settle != want {
			t.Errorf("%s: settle %v, want %v", watch, op.Settle, want)
		}
	}
	ten := 10 * time.Minute
	set := load(t, connectorHead+watching("{get: /jobs, until: response.json.done, max: 48h}"),
		Settings{Connector: "test", Overrides: map[string]Override{"make": {Settle: &ten}}})
	if op := set.Connectors()[0].Operations[0]; op.Settle != 48*time.Hour {
		t.Errorf("overridden: settle %v", op.Settle)
	}
}

// A look says that it is over only by a whole answer, as expected, of which one condition is true.
func TestALookIsPendingUnlessItIsClear(t *testing.T) {
	t.Parallel()
	_, op := operation(t, watching(`{get: "/jobs/{response.json.id}", expect: "response.status in [200, 404]", max: 1h,
      until: response.json.done, failed_when: "response.status == 404 || response.json.bad"}`))
	w := op.Watch
	env := Env{Request: request(t, "POST https://api.test/things/x", `{"name":"n"}`), Mutation: sample()}
	ask, err := w.Ask(env, answered(http.StatusAccepted, `{"id":"j 1"}`))
	if err != nil || ask.Target != "/jobs/j%201" || ask.Method != http.MethodGet {
		t.Fatalf("asks %+v, %v", ask, err)
	}
	for _, id := range []string{`".."`, `""`, `null`} {
		if ask, err := w.Ask(env, answered(http.StatusAccepted, `{"id":`+id+`}`)); err == nil {
			t.Errorf("for %s it asks %s", id, ask.Target)
		}
	}
	cut := answered(http.StatusOK, `{"done":true,"bad":false}`)
	cut.Complete = false
	for _, c := range []struct {
		name string
		resp *Response
		want Watched
		part string
	}{
		{"done", answered(200, `{"done":true,"bad":false}`), WatchDone, "until is true"},
		{"failed", answered(200, `{"done":false,"bad":true}`), WatchFailed, "failed_when is true"},
		{"failed by its status", answered(404, `{"done":false}`), WatchFailed, "failed_when is true"},
		{"neither", answered(200, `{"done":false,"bad":false}`), WatchPending, "neither"},
		{"both", answered(200, `{"done":true,"bad":true}`), WatchPending, "both true"},
		{"not expected", answered(500, `{"done":true,"bad":false}`), WatchPending, "not what the rule expects"},
		{"of another form", answered(200, `{"done":true}`), WatchPending, "can't be evaluated"},
		{"cut", cut, WatchPending, "no whole answer"},
		{"no answer", nil, WatchPending, "no whole answer"},
	} {
		if seen, why := w.Judge(env, c.resp, Clocks{}); seen != c.want || !strings.Contains(why, c.part) {
			t.Errorf("%s: %v (%s), want %v (…%s…)", c.name, seen, why, c.want, c.part)
		}
	}
}

// An end that rests on the time of the claim is none where that can't be told.
func TestALookThatGoesByTheClaimNeedsItsTime(t *testing.T) {
	t.Parallel()
	told := Clocks{Measured: true, SameBoot: true}
	env := Env{Request: request(t, "POST https://api.test/things/x", `{"name":"n"}`), Mutation: sample()}
	for _, c := range []struct {
		name, watch string
		body        string
		clocks      Clocks
		want        Watched
	}{
		{"judged by it", `until: "response.json.n > 0 && string(mutation.claimed_at) != ''"`, `{"n":1,"bad":false}`, told, WatchDone},
		{"untold", `until: "response.json.n > 0 && string(mutation.claimed_at) != ''"`, `{"n":1,"bad":false}`, Clocks{Measured: true}, WatchPending},
		{"no Date", `until: "response.json.n > 0 && string(mutation.claimed_at) != ''"`, `{"n":1,"bad":false}`, Clocks{SameBoot: true}, WatchPending},
		{"asked by it, done", `until: response.json.n > 0, query: {since: {cel: string(mutation.claimed_at)}}`, `{"n":1,"bad":false}`, Clocks{}, WatchDone},
		{"asked by it, failed", `until: response.json.n > 0, query: {since: {cel: string(mutation.claimed_at)}}`, `{"n":0,"bad":true}`, Clocks{}, WatchPending},
		{"not by it", `until: response.json.n > 0`, `{"n":0,"bad":true}`, Clocks{}, WatchFailed},
	} {
		_, op := operation(t, watching(`{get: /jobs, max: 1h, failed_when: response.json.bad, `+c.watch+`}`))
		if seen, why := op.Watch.Judge(env, answered(200, c.body), c.clocks); seen != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, seen, why, c.want)
		}
	}
}

// Conditions read one page, so that what isn't on it, or is of it alone, has not failed.
func TestNothingHasFailedByOnePageOfSeveral(t *testing.T) {
	t.Parallel()
	_, op := operation(t, watching(`{get: /jobs, max: 1h, until: "'j1' in response.json.done", failed_when: "!('j1' in response.json.all)"}`))
	env := Env{Request: request(t, "POST https://api.test/things/x", `{"name":"n"}`), Mutation: sample()}
	for _, c := range []struct {
		name, link, body string
		want             Watched
	}{
		{"failed on the only page", "", `{"done":[],"all":["j2"]}`, WatchFailed},
		{"failed on the last page", `</jobs?page=1>; rel="prev"`, `{"done":[],"all":["j2"]}`, WatchFailed},
		{"not on the first page", `</jobs?page=2>; rel="next"`, `{"done":[],"all":["j2"]}`, WatchPending},
		{"with links that can't be read", `/jobs?page=2`, `{"done":[],"all":["j2"]}`, WatchPending},
		{"done on the first page", `</jobs?page=2>; rel="next"`, `{"done":["j1"],"all":["j1"]}`, WatchDone},
	} {
		resp := answered(200, c.body)
		if c.link != "" {
			resp.Header.Set("Link", c.link)
		}
		if seen, why := op.Watch.Judge(env, resp, Clocks{}); seen != c.want {
			t.Errorf("%s: %v (%s), want %v", c.name, seen, why, c.want)
		}
	}
}

// Of a DELETE the end is that something is gone, which one page of several doesn't show.
func TestNoDeletionIsDoneByOnePageOfSeveral(t *testing.T) {
	t.Parallel()
	_, op := operation(t, watching(`{get: /things, max: 1h, until: "!('x' in response.json.all)", expect: "response.status in [200, 410]"}`))
	for _, c := range []struct {
		name, method, link, body string
		want                     Watched
	}{
		{"gone from the only page", "DELETE", "", `{"all":["y"]}`, WatchDone},
		{"gone from the last page", "DELETE", `</things?page=1>; rel="prev"`, `{"all":["y"]}`, WatchDone},
		{"not on the first page", "DELETE", `</things?page=2>; rel="next"`, `{"all":["y"]}`, WatchPending},
		{"with links that can't be read", "DELETE", `/things?page=2`, `{"all":["y"]}`, WatchPending},
		{"of what takes nothing away", "POST", `</things?page=2>; rel="next"`, `{"all":["y"]}`, WatchDone},
	} {
		resp := answered(200, c.body)
		if c.link != "" {
			resp.Header.Set("Link", c.link)
		}
		env := Env{Request: request(t, c.method+" https://api.test/things/x", `{"name":"n"}`), Mutation: sample()}
		if seen, why := op.Watch.Judge(env, resp, Clocks{}); seen != c.want || seen == WatchPending && !strings.Contains(why, "by its Link field") {
			t.Errorf("%s: %v (%s), want %v", c.name, seen, why, c.want)
		}
	}
}

// A look goes where the answer says, as it is, but to no other host and to nothing that changes anything.
func TestALookGoesWhereTheAnswerLeads(t *testing.T) {
	t.Parallel()
	const watch = `{get: "{response.header['operation-location']}", max: 1h, until: response.json.done}`
	file := strings.Replace(connectorHead, "hosts: [api.test]", `hosts: [api.test, jobs.test, "{shop}.shops.test"]`, 1) +
		watching(watch) + `
  - name: change
    match: {method: GET, path: "/change/{id}"}
    effect: mutation
    identity: {id: path.id}
    reconcile: [{none: why}]
    manual_check: look
  - name: never
    match: {method: GET, path: /never}
    effect: deny
  - name: tell
    match: {method: GET, path: /tell}
    effect: read
`
	op := load(t, file).Connectors()[0].Operations[0]
	for _, c := range []struct{ base, given, want string }{
		{"", "https://api.test/jobs/1?api-version=2&t=a%2Fb%7e&c=MII+x", "https://api.test/jobs/1?api-version=2&t=a%2Fb%7e&c=MII+x"},
		{"", "https://API.test:443/jobs/a%2Fb", "https://api.test/jobs/a%2Fb"},
		{"", "https://jobs.test/1", "https://jobs.test/1"},
		{"", "/jobs/1?x=y", "https://api.test/jobs/1?x=y"},
		{"", "jobs/1", "https://api.test/things/jobs/1"},
		{"", "../jobs/1#state", "https://api.test/jobs/1"},
		{"", "?state", "https://api.test/things/x?state"},
		{"", "//jobs.test/1", "https://jobs.test/1"},
		{"", "https://api.test/tell", "https://api.test/tell"},
		{"", "https://elsewhere.test/jobs/1", ""},
		{"", "//elsewhere.test/jobs/1", ""},
		{"", "https://api.test:8443/jobs/1", ""},
		{"", "http://api.test/jobs/1", ""},
		{"", "https://user@api.test/jobs/1", ""},
		{"", "https://api.test/jobs/1?sig=<secret>", ""},
		{"", "<secret>", ""},
		{"", "", ""},
		{"", "ftp://api.test/jobs/1", ""},
		{"", "https:jobs/1", ""},
		{"", "https://api.test/jobs/\x00", ""},
		{"", "https://api.test/change/1", ""},
		{"", "https://api.test/CHANGE/1/", ""},
		{"", "https://api.test/never", ""},
		{"https://a.shops.test", "https://a.shops.test/jobs/1", "https://a.shops.test/jobs/1"},
		{"https://a.shops.test", "https://b.shops.test/jobs/1", ""},
		{"", "https://b.shops.test/jobs/1", ""},
	} {
		base := c.base
		if base == "" {
			base = "https://api.test"
		}
		env := Env{Request: request(t, "POST "+base+"/things/x", `{"name":"n"}`), Mutation: sample()}
		accepted := answered(http.StatusAccepted, "")
		if c.given != "" {
			accepted.Header.Set("Operation-Location", c.given)
		}
		ask, err := op.Watch.Ask(env, accepted)
		if c.want == "" {
			if err == nil {
				t.Errorf("%q: asks %s%s", c.given, ask.Authority, ask.Target)
			}
			if err != nil && c.given != "" && strings.Contains(err.Error(), c.given) {
				t.Errorf("%q is told: %v", c.given, err)
			}
			continue
		}
		if err != nil || ask.Scheme+"://"+ask.Authority+ask.Target != c.want || ask.Method != http.MethodGet || strings.Contains(ask.Shown, "jobs") {
			t.Errorf("%q: asks %+v, %v", c.given, ask, err)
		}
	}
}

func TestWhatOnlyAcceptsIsFollowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		get    string
		status int
		header string
		body   string
		want   bool
	}{
		{"/jobs", 202, "", "{}", true},
		{"/jobs", 201, "/jobs/1", "{}", false},
		{"{response.header['location']}", 202, "", "{}", true},
		{"{response.header['location']}", 201, "/jobs/1", "{}", true},
		{"{response.header['location']}", 201, "https://elsewhere.test/", "{}", true}, // A person is asked about it.
		{"{response.header['location']}", 201, "", "{}", false},
		{"{response.header[?'location']}", 201, "", "{}", false},
		{"{response.header['location']}", 200, "/jobs/1", "{}", false},
		{"{response.json.status_url}", 201, "", `{"status_url":"/jobs/1"}`, true},
		{"{response.json.status_url}", 201, "", `{"id":1}`, false},
		{"{response.json.status_url}", 201, "", `{"status_url":`, true}, // It may be there.
	} {
		_, op := operation(t, watching(`{get: "`+c.get+`", max: 1h, until: response.json.done}`))
		resp := answered(c.status, c.body)
		if c.header != "" {
			resp.Header.Set("Location", c.header)
		}
		env := Env{Request: request(t, "POST https://api.test/things/x", `{"name":"n"}`), Mutation: sample()}
		if got := op.Watch.Follows(env, resp); got != c.want {
			t.Errorf("%s, %d, %q, %s: %t", c.get, c.status, c.header, c.body, got)
		}
	}
	if _, op := operation(t, simpleMutation); op.Watch.Follows(Env{}, answered(http.StatusAccepted, "{}")) {
		t.Error("a rule without watch follows")
	}
}
