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
