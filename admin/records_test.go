package admin_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/admin/client"
	"keep-proxy/admin/wire"
	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

func TestShowMutation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	m := w.apply(w.claim(transfer(&run.Run)), 201, `{"id":"tr_1"}`)
	got, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if string(got.Identity["n"]) != "1" {
		t.Errorf("identity %v, want the number 1", got.Identity)
	}
	if string(got.Request.Body.Content) != `{"amount":7}` || string(got.Result.Body.Content) != `{"id":"tr_1"}` {
		t.Errorf("bodies %q and %q", got.Request.Body.Content, got.Result.Body.Content)
	}
	if got.Result.Status != 201 || got.Result.Source != "answer" || got.ResultState != "known" {
		t.Errorf("result %+v, state %s", got.Result, got.ResultState)
	}
	if !slices.Equal(got.Request.Headers["X-Twice"], []string{"a", "b"}) {
		t.Errorf("headers %v", got.Request.Headers)
	}
	d := got.Dispatches[0]
	if len(got.Dispatches) != 1 || d.BytesWritten != 412 || d.Status != 201 || !d.Head || !d.BodyComplete || d.Verdict != "applied" || d.Generation != got.Generation {
		t.Errorf("dispatches %+v", got.Dispatches)
	}
	var steps []string
	for _, e := range got.Events {
		steps = append(steps, e.What+":"+e.From+">"+e.To)
	}
	if want := []string{"claim:>in_flight", "success:in_flight>applied"}; !slices.Equal(steps, want) {
		t.Errorf("events %v, want %v", steps, want)
	}
	if len(got.Actions) != 0 {
		t.Errorf("actions %v on a mutation with its result", got.Actions)
	}
	byPrefix, err := w.client.Mutation(t.Context(), m.ID[:8])
	if err != nil || byPrefix.ID != m.ID {
		t.Errorf("by prefix: %+v, %v", byPrefix, err)
	}
}

func TestALongHistoryIsShownFromBothEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	m := w.apply(w.claim(transfer(&run.Run)), 201, `{"id":"tr_1"}`)
	for range 2500 {
		w.ledger.Replayed("", m, "", true)
	}
	// A command is durable only with the notes before it.
	if _, err := w.client.EndRun(t.Context(), run.ID, wire.EndRun{Reason: "x", Actor: "ada"}); err != nil {
		t.Fatal(err)
	}
	all, err := w.ledger.Events(t.Context(), m.ID, 0, 1<<20)
	if err != nil || len(all) < 2500 {
		t.Fatalf("%d events, %v", len(all), err)
	}
	got, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	n := len(got.Events)
	if n != 1000 || got.EventsLeftOut != len(all)-1000 || got.Events[0].Seq != all[0].Seq || got.Events[499].Seq != all[499].Seq ||
		got.Events[500].Seq != all[len(all)-500].Seq || got.Events[n-1].Seq != all[len(all)-1].Seq {
		t.Errorf("of %d events %d are shown, from %d to %d, and %d are said to be left out",
			len(all), n, got.Events[0].Seq, got.Events[n-1].Seq, got.EventsLeftOut)
	}
}

func TestMutationFieldsOnTheWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, m := w.unknown("order-1")
	got := w.do(ask{path: "/v1/mutations/" + m.ID})
	for _, want := range []string{
		`"state":"indeterminate"`, `"committed":false`, `"watching":false`, `"connector":"bank"`, `"connector_version":3`, `"operation":"transfer"`,
		`"target":"Transfer 7 to Ann"`, `"account":"acct-1"`, `"identity":{"n":1}`, `"workflow":"billing"`, `"item":"order-1"`, `"attempt":1`,
		`"class":"indeterminate"`, `"created_at":"2026-03-01T12:00:00Z"`, `"tries":0`, `"headers":{"Content-Type":"application/json","X-Twice":["a","b"]}`,
		`"body":"{\"amount\":7}"`, `"bytes_written":412`, `"head":false`, `"body_complete":false`, `"error":"connection reset by peer"`,
		`"verdict":"uncertain"`, `"observations":[]`, `"key":"` + m.Key.String() + `"`,
	} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%s isn't in\n%s", want, indent(got.body))
		}
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", got.header)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	long := strings.Repeat("y", 1<<20+1)
	stored, err := w.store.WriteBody(t.Context(), strings.NewReader(long))
	if err != nil {
		t.Fatal(err)
	}
	m := w.claim(transfer(&run.Run))
	m = w.finish(ledger.EndDispatch{
		Key:      m.Key,
		Dispatch: ledger.Dispatch{ID: m.Current().ID, Verdict: ledger.VerdictApplied, Wire: ledger.Wire{Head: true, Status: 200, BodyComplete: true}},
		Result:   &ledger.Result{Status: 200, Body: stored},
	})
	shown, err := w.client.Mutation(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if b := shown.Result.Body; b.Missing != wire.MissingOmitted || b.Size != int64(len(long)) || b.SHA256 != stored.SHA256 {
		t.Errorf("a body over 1 MiB is shown as %+v", b)
	}
	for _, c := range []struct {
		name  string
		fetch func() (io.ReadCloser, error)
		want  string
	}{
		{"the request's", func() (io.ReadCloser, error) { return w.client.Body(t.Context(), m.ID, "request") }, `{"amount":7}`},
		{"the result's", func() (io.ReadCloser, error) { return w.client.Body(t.Context(), m.ID, "result") }, long},
	} {
		t.Run(c.name, func(t *testing.T) {
			body, err := c.fetch()
			if err != nil {
				t.Fatal(err)
			}
			defer body.Close()
			if got, err := io.ReadAll(body); err != nil || string(got) != c.want {
				t.Errorf("%d bytes, %v; want %d", len(got), err, len(c.want))
			}
		})
	}
	got := w.do(ask{path: "/v1/mutations/" + m.ID + "/result/body"})
	if got.header.Get("Content-Type") != "application/octet-stream" || got.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("a stored answer could be shown by a browser: %v", got.header)
	}
	w.refused(ask{path: "/v1/mutations/" + m.ID + "/answer/body"}, 404, "not-found", `no "answer"`)
	_, lost := w.unknown("order-2")
	w.refused(ask{path: "/v1/mutations/" + lost.ID + "/result/body"}, 404, "not-found", "no stored result")
}

func TestNothingThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct {
		name, method, path, body string
		words                    []string
	}{
		{"a mutation", "GET", "/v1/mutations/m-0", "", []string{`no mutation "m-0"`, "GET /v1/mutations"}},
		{"a mutation to decide on", "POST", "/v1/mutations/m-0/resolve", `{"action":"skip","actor":"a","reason":"r","version":1}`, []string{`no mutation "m-0"`}},
		{"a body", "GET", "/v1/mutations/m-0/request/body", "", []string{`no mutation "m-0"`}},
		{"a run", "GET", "/v1/runs/r-0", "", []string{`no run "r-0"`}},
		{"a run to keep", "POST", "/v1/runs/r-0/heartbeat", "", []string{"no such record"}},
		{"a run to finish", "POST", "/v1/runs/r-0/finish", `{"outcome":"done"}`, []string{"no such record"}},
		{"a run to end", "POST", "/v1/runs/r-0/end", `{"actor":"a","reason":"r"}`, []string{"no such record"}},
		{"an item", "GET", "/v1/items/i-0", "", []string{`no item "i-0"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: c.method, path: c.path, body: c.body}, 404, "not-found", c.words...)
		})
	}
}

func TestListMutations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	_, lost := w.unknown("order-1")
	w.clock.advance(time.Hour)
	// The stop is lifted so that another run may begin.
	if _, err := w.client.Resolve(t.Context(), lost.ID, wire.Resolve{Action: wire.ActionSkip, Actor: "ann", Reason: "r", Version: lost.Version}); err != nil {
		t.Fatal(err)
	}
	run := w.open("order-2")
	applied := w.apply(w.claim(transfer(&run.Run)), 200, "ok")
	second := transfer(&run.Run)
	second.n = 2
	unknown := w.lose(w.claim(second))

	for _, c := range []struct {
		name   string
		filter client.Filter
		want   []string
	}{
		{"all, newest first", client.Filter{}, []string{unknown.ID, applied.ID, lost.ID}},
		{"by state", client.Filter{States: []string{"skipped", "applied"}}, []string{applied.ID, lost.ID}},
		{"by item", client.Filter{Item: "order-1"}, []string{lost.ID}},
		{"by run", client.Filter{Run: run.ID}, []string{unknown.ID, applied.ID}},
		{"by another connector", client.Filter{Connector: "stripe"}, nil},
		{"by connector and operation", client.Filter{Connector: "bank", Operation: "transfer"}, []string{unknown.ID, applied.ID, lost.ID}},
		{"by another operation", client.Filter{Connector: "bank", Operation: "notice"}, nil},
		{"by another workflow", client.Filter{Workflow: "other"}, nil},
		{"since a time", client.Filter{Since: start.Add(time.Minute).Format(time.RFC3339)}, []string{unknown.ID, applied.ID}},
		{"unresolved", client.Filter{Unresolved: true}, []string{unknown.ID}},
		{"escalated", client.Filter{Escalated: true}, []string{unknown.ID}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			page, err := w.client.Mutations(t.Context(), c.filter)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range page.Items {
				got = append(got, m.ID)
				if m.Events != nil || m.Request.Body.Missing != wire.MissingOmitted {
					t.Errorf("a listing holds the body or events of %s", m.ID)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	t.Run("page by page", func(t *testing.T) {
		t.Parallel()
		var got []string
		f := client.Filter{Limit: 2}
		for {
			page, err := w.client.Mutations(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range page.Items {
				got = append(got, m.ID)
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				break
			}
		}
		if want := []string{unknown.ID, applied.ID, lost.ID}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
	t.Run("an empty page is a list", func(t *testing.T) {
		t.Parallel()
		if got := w.do(ask{path: "/v1/mutations?connector=none"}).body; got != `{"items":[]}` {
			t.Errorf("got %s", got)
		}
	})
	t.Run("states with commas, since as a duration", func(t *testing.T) {
		t.Parallel()
		got := w.do(ask{path: "/v1/mutations?state=applied,indeterminate&since=30m"}).body
		if !strings.Contains(got, applied.ID) || !strings.Contains(got, unknown.ID) || strings.Contains(got, lost.ID) {
			t.Errorf("got %s", indent(got))
		}
	})
}

func TestListingsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct {
		name, path string
		words      []string
	}{
		{"a misspelt parameter", "/v1/mutations?conector=bank", []string{"query:conector: unknown parameter", `did you mean "connector"?`}},
		{"a parameter of another listing", "/v1/items?connector=bank", []string{"query:connector: unknown parameter", "known are cursor, item, limit, since, state, workflow"}},
		{"a state of another listing", "/v1/items?state=applied", []string{`query:state: unknown state "applied"`, "open, failed, needs_attention, done, skipped"}},
		{"a parameter where none is taken", "/v1/status?verbose=1", []string{"query:verbose", "unknown parameter"}},
		{"an unknown state", "/v1/mutations?state=done", []string{`query:state: unknown state "done"`, "needs_reconcile"}},
		{"a limit over the longest page", "/v1/mutations?limit=1001", []string{"query:limit: no number from 1 to 1000"}},
		{"a limit of nothing", "/v1/runs?limit=0", []string{"query:limit"}},
		{"a time in words", "/v1/mutations?since=yesterday", []string{"query:since", "2006-01-02T15:04:05Z or 24h"}},
		{"a time to come", "/v1/mutations?since=-1h", []string{"query:since"}},
		{"neither true nor false", "/v1/mutations?unresolved=yes", []string{"query:unresolved"}},
		{"running: maybe", "/v1/runs?running=maybe", []string{"query:running"}},
		{"escalated: maybe", "/v1/mutations?escalated=maybe", []string{"query:escalated"}},
		{"given twice", "/v1/mutations?item=a&item=b", []string{"query:item: given more than once"}},
		{"two faults", "/v1/mutations?limit=x&state=y", []string{"and 1 more"}},
		{"a class of statuses in capitals", "/v1/requests?status=4XX", []string{`query:status: "4XX" is no status`, "4xx"}},
		{"a status that is none", "/v1/requests?status=404x", []string{"query:status"}},
		{"an effect that is none", "/v1/requests?effect=write", []string{`query:effect: unknown effect "write"`, "unknown effect"}},
		{"a percent sign that begins no escape", "/v1/mutations?item=100%&unresolved=true", []string{"query: ", "can't be read", "percent-encode"}},
		{"a semicolon", "/v1/audit?run=r-1;r-2", []string{"query: ", "can't be read"}},
		{"another listing's cursor", "/v1/mutations?cursor=zz", []string{"query:cursor"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{path: c.path}, 400, "bad-request", c.words...)
		})
	}
}

func TestRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first, second := w.open("order-1"), w.open("order-2")

	kept, err := w.client.Heartbeat(t.Context(), first.ID, wire.Heartbeat{TTL: wire.Duration(3 * time.Hour)})
	if err != nil || !kept.ExpiresAt.Equal(start.Add(3*time.Hour)) {
		t.Errorf("heartbeat: %+v, %v", kept, err)
	}
	if got := w.do(ask{method: http.MethodPost, path: "/v1/runs/" + first.ID + "/heartbeat"}); got.status != 200 || !strings.Contains(got.body, `"expires_at":"2026-03-01T13:00:00Z"`) {
		t.Errorf("a heartbeat without a body takes the configured time limit; got %d %s", got.status, got.body)
	}
	ended, err := w.client.EndRun(t.Context(), second.ID, wire.EndRun{Reason: "stuck", Actor: "ann"})
	if err != nil || ended.State != "aborted" || ended.Reason != "stuck" {
		t.Errorf("end: %+v, %v", ended, err)
	}
	if last := w.lastEvent(); last.Actor != "person:ann" || last.Why != "stuck" {
		t.Errorf("history says %+v", last)
	}
	_, err = w.client.Heartbeat(t.Context(), second.ID, wire.Heartbeat{})
	problemIn(t, err, 409, "run-ended", "open a new one")
	_, err = w.client.FinishRun(t.Context(), second.ID, wire.FinishRun{Outcome: "done"})
	problemIn(t, err, 409, "run-unfinished", "it is aborted")

	done, err := w.client.FinishRun(t.Context(), first.ID, wire.FinishRun{Outcome: "done", KeepOpen: true})
	if err != nil || done.State != "finished" {
		t.Errorf("finish: %+v, %v", done, err)
	}
	third := w.open("order-1")
	running, err := w.client.Runs(t.Context(), client.Filter{Running: true})
	if err != nil || len(running.Items) != 1 || running.Items[0].ID != third.ID {
		t.Errorf("running: %+v, %v", running, err)
	}
	all, err := w.client.Runs(t.Context(), client.Filter{Item: "order-1"})
	if err != nil || len(all.Items) != 2 || all.Items[0].ID != third.ID {
		t.Errorf("runs of the item: %+v, %v", all, err)
	}
	if body := w.do(ask{path: "/v1/runs/" + first.ID}).body; strings.Contains(body, "token") {
		t.Errorf("a run shows its token's digest: %s", body)
	}
}

func TestRunsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	for _, c := range []struct {
		name, path, body string
		words            []string
	}{
		{"an outcome of its own", "finish", `{"outcome":"ok"}`, []string{`/outcome: unknown value "ok"`, "done, failed"}},
		{"no outcome", "finish", `{}`, []string{"/outcome: unknown value"}},
		{"a failed run's item kept open", "finish", `{"outcome":"failed","keep_open":true}`, []string{"/keep_open"}},
		{"an end without a reason", "end", `{"actor":"ann"}`, []string{"/reason"}},
		{"an end by nobody", "end", `{"reason":"r"}`, []string{"/actor"}},
		{"a heartbeat for ever", "heartbeat", `{"ttl":"9000h"}`, []string{"/ttl", "out of bounds"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: http.MethodPost, path: "/v1/runs/" + run.ID + "/" + c.path, body: c.body}, 400, "bad-request", c.words...)
		})
	}
}

func TestFinishNamesWhatIsUnsettled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	i := transfer(&run.Run)
	m := w.claim(i)
	failed := w.finish(ledger.EndDispatch{Key: m.Key, Dispatch: ledger.Dispatch{
		ID: m.Current().ID, Verdict: ledger.VerdictFailed, Class: verdict.Transient,
		Wire: ledger.Wire{Head: true, Status: 429, BodyComplete: true},
	}})
	_, err := w.client.FinishRun(t.Context(), run.ID, wire.FinishRun{Outcome: "done"})
	problemIn(t, err, 409, "run-unfinished", "it is failing")
	if failed.State != ledger.Failed {
		t.Errorf("state %s", failed.State)
	}
}

func TestFinishListsWhatWasRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	for _, path := range []string{"/a", "/b"} {
		err := w.ledger.Refuses(t.Context(), run.ID, ledger.Refused{
			Code: "unmatched", Class: verdict.Logic, Detail: "No rule declares it.", Method: "POST", Host: "api.example", Path: path,
			Exchange: ledger.Exchange{Digest: "digest" + path},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	got := w.do(ask{method: http.MethodPost, path: "/v1/runs/" + run.ID + "/finish", body: `{"outcome":"done"}`})
	for _, want := range []string{`run-unfinished`, "POST api.example/a was refused (unmatched), and 1 more", `"path":"/b"`, `"detail":"No rule declares it."`} {
		if got.status != 409 || !strings.Contains(got.body, want) {
			t.Errorf("%d without %s: %s", got.status, want, got.body)
		}
	}
	shown, err := w.client.Run(t.Context(), run.ID)
	if err != nil || len(shown.Refused) != 2 || shown.Refused[1].Path != "/b" || strings.Contains(got.body, "digest") {
		t.Errorf("the run is shown as %+v, %v; finishing says %s", shown, err, got.body)
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run, m := w.unknown("order-1")
	list, err := w.client.Items(t.Context(), client.Filter{Workflow: "billing"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("items: %+v, %v", list, err)
	}
	got, err := w.client.Item(t.Context(), list.Items[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Item != "order-1" || got.State != "open" || got.Attempt != 1 || !slices.Equal(got.Runs, []string{run.ID}) {
		t.Errorf("item %+v", got)
	}
	want := []wire.MutationRef{{ID: m.ID, Connector: "bank", Operation: "transfer", Target: "Transfer 7 to Ann", State: "indeterminate"}}
	if diff := different(got.Mutations, want); diff != "" {
		t.Error(diff)
	}
}

// A host is told what became of a mutation, and not what is in it.
func TestAHostIsShownNoContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	run := w.open("order-1")
	m := w.claim(transfer(&run.Run))
	m = w.finish(ledger.EndDispatch{
		Key:      m.Key,
		Dispatch: ledger.Dispatch{ID: m.Current().ID, Verdict: ledger.VerdictApplied, Wire: ledger.Wire{Head: true, Status: 201, BodyComplete: true}},
		Result:   &ledger.Result{Status: 201, Header: ledger.Header{"Set-Cookie": {"session=s3cret"}}},
	})
	contents := []string{"s3cret", "X-Twice"}
	for _, path := range []string{"/v1/mutations", "/v1/mutations/" + m.ID} {
		shown := w.do(ask{path: path, token: "host-token"})
		if shown.status != 200 || !strings.Contains(shown.body, `"headers":{}`) {
			t.Errorf("%s: %d %s", path, shown.status, shown.body)
		}
		for _, word := range contents {
			if strings.Contains(shown.body, word) {
				t.Errorf("%s: a host is shown %s", path, word)
			}
			if all := w.do(ask{path: path, token: "viewer-token"}); !strings.Contains(all.body, word) {
				t.Errorf("%s: a viewer isn't shown %s", path, word)
			}
		}
	}
}
