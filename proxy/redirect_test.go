package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// movedRules has an API whose repositories were renamed.
const movedRules = `apiVersion: keep/v1
connector: api
version: 1
title: Test API
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: issue
    match: {method: [POST, PUT], path: "/repos/{repo}/issues"}
    effect: mutation
    identity: {repo: path.repo, title: json.title}
    native_key: {header: Idempotency-Key, format: uuid}
    reconcile: [{none: "the test API can't be asked"}]
    manual_check: look
  - name: own
    match: {method: POST, path: /own}
    effect: mutation
    identity: {title: json.title}
    reconcile: [{none: "the test API can't be asked"}]
    manual_check: look
  - name: mark
    match: {method: POST, path: /marks}
    effect: mutation
    identity: {title: json.title}
    native_key: {query: key, format: uuid}
    reconcile: [{none: "the test API can't be asked"}]
    manual_check: look
  - name: hook
    match: {method: POST, path: "/hooks/{token}"}
    effect: mutation
    identity: {title: json.title}
    secret: [path.token]
    reconcile: [{none: "the test API can't be asked"}]
    manual_check: look
  - name: never
    match: {method: POST, path: /never}
    effect: deny
`

const (
	oldIssues = "/repos/old/issues"
	newIssues = "/repositories/1/issues"
	anIssue   = `{"title":"It broke","body":"x"}`
)

// newMoved is a world in which these addresses moved to those. Any other one makes a thing.
func newMoved(t *testing.T, moved map[string]string, change ...func(*Config)) *world {
	t.Helper()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		to, away := moved[r.URL.Path]
		if !away {
			created(rw, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		rw.Header().Set("Location", strings.ReplaceAll(to, "HERE", "https://"+r.Host))
		rw.WriteHeader(http.StatusTemporaryRedirect)
	}, change...)
	w.use(movedRules)
	return w
}

// wantOnce asserts that the item has one record, which was applied by one sending to the address. Its run is done with
// it. A later run gets its answer, and nothing is sent.
func wantOnce(t *testing.T, r *run, own, sentTo, body string) {
	t.Helper()
	m := r.mutation("a")
	if m.State != ledger.Applied || m.Operation != "issue" || !strings.HasSuffix(m.Request.URL, own) || !strings.HasSuffix(m.SentTo, sentTo) {
		t.Errorf("%s of %s is %s, sent to %s", m.Operation, m.Request.URL, m.State, m.SentTo)
	}
	r.wantSends(sentTo, 1)
	asked := r.sends.of(own)
	if _, err := r.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeDone, true); err != nil {
		t.Errorf("the run can't be finished: %v", err)
	}
	wantAnswer(t, r.open("a").post(own, body), 201, `{"id":1}`, true)
	if now := r.sends.of(own); now != asked || r.sends.of(sentTo) != 1 {
		t.Errorf("the re-run sent something: %d to %s", now-asked, own)
	}
}

func TestARequestToTheLocationOfARedirectIsItsMutation(t *testing.T) {
	t.Parallel()
	long := `{"title":"It broke","body":"` + strings.Repeat("x", 300<<10) + `"}`
	for name, c := range map[string]struct {
		moved map[string]string
		// asked are the addresses that the client asks, one after another.
		asked []string
		body  string
	}{
		"relative":                      {map[string]string{oldIssues: newIssues}, []string{oldIssues, newIssues}, anIssue},
		"absolute":                      {map[string]string{oldIssues: "HERE" + newIssues}, []string{oldIssues, newIssues}, anIssue},
		"relative to the path":          {map[string]string{oldIssues: "../../repositories/1/issues"}, []string{oldIssues, newIssues}, anIssue},
		"with a fragment":               {map[string]string{oldIssues: newIssues + "#top"}, []string{oldIssues, newIssues}, anIssue},
		"one that is an operation's":    {map[string]string{oldIssues: "/own"}, []string{oldIssues, "/own"}, anIssue},
		"one of the same operation":     {map[string]string{oldIssues: "/repos/new/issues"}, []string{oldIssues, "/repos/new/issues"}, anIssue},
		"after another redirect":        {map[string]string{oldIssues: "/middle", "/middle": newIssues}, []string{oldIssues, "/middle", newIssues}, anIssue},
		"after the old address again":   {map[string]string{oldIssues: newIssues}, []string{oldIssues, oldIssues, newIssues}, anIssue},
		"with long content":             {map[string]string{oldIssues: newIssues}, []string{oldIssues, newIssues}, long},
		"in another spelling":           {map[string]string{oldIssues: "/repositorie%73/1/issues"}, []string{oldIssues, newIssues}, anIssue},
		"with the payload in new words": {map[string]string{oldIssues: newIssues}, []string{oldIssues, newIssues}, `{ "body":"x", "title":"It broke" }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMoved(t, c.moved)
			r := w.open("a")
			last := len(c.asked) - 1
			for i, path := range c.asked {
				body := c.body
				if i == 0 && name == "with the payload in new words" {
					body = anIssue
				}
				want, answer := http.StatusTemporaryRedirect, ""
				if i == last {
					want, answer = http.StatusCreated, `{"id":1}`
				}
				wantAnswer(t, r.post(path, body), want, answer, false)
				if s := r.state(); s.State != ledger.RunRunning {
					t.Fatalf("the run is %s after %s", s.State, path)
				}
			}
			wantOnce(t, r, oldIssues, c.asked[last], c.body)
		})
	}
}

func TestWhatIsNoMutationOfARedirectIsJudgedAsEver(t *testing.T) {
	t.Parallel()
	away := map[string]string{
		oldIssues: newIssues, "/repos/denied/issues": "/never", "/repos/secret/issues": newIssues + "?access_token=s3cret",
		"/repos/far/issues": "https://other.test" + newIssues, "/marks": "/marks/1", "/hooks/t0ken": "/hooked", "/repos/plain/issues": "/own",
	}
	for name, c := range map[string]struct {
		old, to, body string
		send          func(r *run, to, body string) got
		problem       string // "" for an answer of the upstream
		operation     string // whose mutation there is beside
	}{
		"another payload":                    {old: oldIssues, to: newIssues, body: `{"title":"It broke","body":"y"}`, problem: "unmatched"},
		"another identity":                   {old: oldIssues, to: newIssues, body: `{"title":"Another","body":"x"}`, problem: "unmatched"},
		"no identity":                        {old: oldIssues, to: newIssues, body: `{"body":"x"}`, problem: "unmatched"},
		"another address":                    {old: oldIssues, to: "/repositories/2/issues", body: anIssue, problem: "unmatched"},
		"another query":                      {old: oldIssues, to: newIssues + "?a=b", body: anIssue, problem: "unmatched"},
		"an address that is denied":          {old: "/repos/denied/issues", to: "/never", body: anIssue, problem: "denied"},
		"an address with a secret":           {old: "/repos/secret/issues", to: newIssues + "?access_token=s3cret", body: anIssue, problem: "unmatched"},
		"an address of no connector":         {old: "/repos/far/issues", to: newIssues, body: anIssue, problem: "unmatched"},
		"a mutation with its key in a query": {old: "/marks", to: "/marks/1", body: anIssue, problem: "unmatched"},
		"a mutation with a secret address":   {old: "/hooks/t0ken", to: "/hooked", body: anIssue, problem: "unmatched"},
		"no redirect before":                 {old: "/own", to: newIssues, body: anIssue, problem: "unmatched"},
		"another payload at an operation":    {old: "/repos/plain/issues", to: "/own", body: `{"title":"It broke","body":"y"}`, operation: "own"},
		"another item": {old: oldIssues, to: newIssues, body: anIssue, problem: "unmatched", send: func(r *run, to, body string) got {
			return r.open("b").post(to, body)
		}},
		"another method": {old: oldIssues, to: newIssues, body: anIssue, problem: "unmatched", send: func(r *run, to, body string) got {
			return send(r.client, http.MethodPut, r.upstream.URL+to, body)
		}},
		"an override of its method": {old: oldIssues, to: newIssues, body: anIssue, problem: "unmatched", send: func(r *run, to, body string) got {
			return r.post(to, body, "X-HTTP-Method-Override", "DELETE")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newMoved(t, away)
			r := w.open("a")
			_ = r.post(c.old, anIssue)
			before := w.sends.of(strings.SplitN(c.to, "?", 2)[0])
			var g got
			if c.send != nil {
				g = c.send(r, c.to, c.body)
			} else {
				g = r.post(c.to, c.body)
			}
			if g.err != nil || g.problem() != c.problem {
				t.Fatalf("got %d %s %v, want %q", g.status, g.body, g.err, c.problem)
			}
			sent := w.sends.of(strings.SplitN(c.to, "?", 2)[0]) - before
			if sent > 0 == (c.problem != "") {
				t.Errorf("%d requests were sent", sent)
			}
			all, err := w.ledger.Mutations(t.Context(), ledger.Filter{Item: "a", Operation: "own"})
			if err != nil || (len(all.Items) > 0) != (c.operation == "own" || c.old == "/own") {
				t.Errorf("%d mutations of their own, %v", len(all.Items), err)
			}
		})
	}
}

// Two names of one thing may have been redirected to one address.
func TestEachMutationIsKnownAtAnAddressOfSeveral(t *testing.T) {
	t.Parallel()
	w := newMoved(t, map[string]string{oldIssues: newIssues, "/repos/older/issues": newIssues})
	r := w.open("a")
	for _, c := range []struct{ own, body string }{
		{oldIssues, anIssue}, {oldIssues, `{"title":"Another"}`}, {"/repos/older/issues", anIssue},
	} {
		wantAnswer(t, r.post(c.own, c.body), 307, "", false)
	}
	for _, body := range []string{`{"title":"Another"}`, anIssue} {
		wantAnswer(t, r.post(newIssues, body), 201, `{"id":1}`, false)
	}
	w.wantSends(newIssues, 2)
	wantAnswer(t, r.post("/repos/older/issues", `{"title":"Third"}`), 307, "", false)
	wantAnswer(t, r.post(newIssues, `{"title":"Third"}`), 201, `{"id":1}`, false)
	applied, err := w.ledger.Mutations(t.Context(), ledger.Filter{Item: "a", States: []ledger.State{ledger.Applied}})
	if err != nil || len(applied.Items) != 3 {
		t.Errorf("%d are applied, %v", len(applied.Items), err)
	}
}

// What is unknown at the second address stops as ever, and is not sent there again.
func TestALostAnswerOfASecondAddressIsUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == newIssues {
			lost(rw, r)
		}
		rw.Header().Set("Location", newIssues)
		rw.WriteHeader(http.StatusPermanentRedirect)
	})
	w.use(movedRules)
	r := w.open("a")
	wantAnswer(t, r.post(oldIssues, anIssue), 308, "", false)
	first := w.mutation("a")
	wantProblem(t, r.post(newIssues, anIssue), "unknown-outcome", 424, "")
	m := w.mutation("a")
	if m.State != ledger.Indeterminate || !strings.HasSuffix(m.SentTo, newIssues) || m.Generation != first.Generation+1 || m.VendorKey == first.VendorKey {
		t.Errorf("it is %s, sent to %s under generation %d", m.State, m.SentTo, m.Generation)
	}
	wantProblem(t, r.post(newIssues, anIssue), "run-aborted", 424, "")
	if _, err := w.tryOpen("a"); err == nil {
		t.Error("a run was let in")
	}
	w.wantSends(newIssues, 1)
}

// Clients try again where they were sent to.
func TestARetryAtASecondAddressIsTheSame(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != newIssues:
			rw.Header().Set("Location", newIssues)
			rw.WriteHeader(http.StatusTemporaryRedirect)
		case asked.Add(1) == 1:
			rw.WriteHeader(http.StatusTooManyRequests)
		default:
			created(rw, r)
		}
	})
	w.use(movedRules)
	r := w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne })
	wantAnswer(t, r.post(oldIssues, anIssue), 307, "", false)
	wantAnswer(t, r.post(newIssues, anIssue), 429, "", false)
	wantAnswer(t, r.post(newIssues, anIssue), 201, `{"id":1}`, false)
	if m := w.mutation("a"); m.State != ledger.Applied || len(m.Dispatches) != 3 || r.state().State != ledger.RunRunning {
		t.Errorf("it is %s after %d sendings", m.State, len(m.Dispatches))
	}
	if _, err := w.ledger.EndRun(context.Background(), r.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, w.open("a").post(newIssues, anIssue), 201, `{"id":1}`, true)
	w.wantSends(newIssues, 2)
}

// byAuthority is a credential for one authority alone.
type byAuthority struct{ authority atomic.Value }

func (b *byAuthority) Always(_, _, authority string) (string, string, bool, error) {
	return "Authorization", "secret", authority == b.authority.Load(), nil
}

// Another host of the connector may be where it is done, unless another credential is for that.
func TestASecondAddressMayBeOnAnotherHostOfTheConnector(t *testing.T) {
	t.Parallel()
	for name, differs := range map[string]bool{"under the same credential": false, "under another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := httptest.NewTLSServer(http.HandlerFunc(created))
			t.Cleanup(there.Close)
			credentials := &byAuthority{}
			w := newMoved(t, map[string]string{oldIssues: there.URL + newIssues}, func(c *Config) { c.Credentials = credentials })
			w.use(strings.Replace(movedRules, `["HOST"]`, `["HOST", "`+strings.TrimPrefix(there.URL, "https://")+`"]`, 1))
			if differs {
				credentials.authority.Store(w.authority)
			}
			r := w.open("a")
			wantAnswer(t, r.post(oldIssues, anIssue), 307, "", false)
			g := send(r.client, http.MethodPost, there.URL+newIssues, anIssue)
			if differs {
				wantProblem(t, g, "unmatched", 403, "")
				return
			}
			wantAnswer(t, g, 201, `{"id":1}`, false)
			if m := w.mutation("a"); m.State != ledger.Applied || m.SentTo != there.URL+newIssues {
				t.Errorf("it is %s, sent to %s", m.State, m.SentTo)
			}
		})
	}
}

// What another connector has to say of its own host comes first.
func TestAnAddressOfAnotherConnectorIsItsOwn(t *testing.T) {
	t.Parallel()
	there := httptest.NewTLSServer(http.HandlerFunc(created))
	t.Cleanup(there.Close)
	w := newMoved(t, map[string]string{oldIssues: there.URL + "/own"})
	other := strings.NewReplacer("connector: api", "connector: other", "HOST", strings.TrimPrefix(there.URL, "https://")).Replace(movedRules)
	set, findings := rules.Load([]rules.File{
		{Name: "api.yaml", Data: []byte(strings.ReplaceAll(movedRules, "HOST", w.authority))}, {Name: "other.yaml", Data: []byte(other)},
	}, nil, rules.Defaults{})
	if set == nil {
		t.Fatal(findings)
	}
	w.rules.Store(set)
	r := w.open("a")
	wantAnswer(t, r.post(oldIssues, anIssue), 307, "", false)
	wantAnswer(t, send(r.client, http.MethodPost, there.URL+"/own", anIssue), 201, `{"id":1}`, false)
	all, err := w.ledger.Mutations(t.Context(), ledger.Filter{Item: "a", States: []ledger.State{ledger.Applied}})
	if err != nil || len(all.Items) != 1 || all.Items[0].Connector != "other" || all.Items[0].SentTo != "" {
		t.Errorf("%+v, %v", all.Items, err)
	}
}
