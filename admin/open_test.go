package admin_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

func TestOpenRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	got, err := w.client.OpenRun(t.Context(), wire.OpenRun{
		Workflow: "billing", Item: "order 1/ü", Title: "Order 1", Mutations: "one", OnFailure: "return", TTL: wire.Duration(5 * time.Minute),
		Labels: map[string]string{"team": "a"}, BlockScope: "item", ResumeHint: "make bill",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Run{
		ID: got.ID, Version: 1, Workflow: "billing", Item: "order 1/ü", Attempt: 1, State: "running", Title: "Order 1", Mutations: "one",
		OnFailure: "return", BlockScope: "item", ResumeHint: "make bill", OpenedAt: start, ExpiresAt: start.Add(5 * time.Minute),
		Labels: map[string]string{"team": "a"},
	}
	if diff := different(got.Run, want); diff != "" {
		t.Errorf("run: %s", diff)
	}
	stored, _, err := w.ledger.StandingByToken(digest(got.Token))
	if err != nil || stored.ID != got.ID {
		t.Errorf("the token's digest finds run %q, %v", stored.ID, err)
	}
	if len(got.Token) != 43 || got.CAPEM != string(place{}.CAPEM()) {
		t.Errorf("token of %d characters, CA %q", len(got.Token), got.CAPEM)
	}
	if got.ProxyURL != "http://run:"+got.Token+"@127.0.0.1:8080" {
		t.Errorf("proxy_url %q", got.ProxyURL)
	}
	checkEnviron(t, got.Env, got.Token)
	for name, value := range map[string]string{"KEEP_RUN_ID": got.ID, "KEEP_WORKFLOW": "billing", "KEEP_ITEM": "order 1/ü", "KEEP_ATTEMPT": "1"} {
		if got.Env[name] != value {
			t.Errorf("%s=%q, want %q", name, got.Env[name], value)
		}
	}
}

func TestOpenRunTakesDefaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) { c.RunTTL = 2 * time.Hour })
	got, err := w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "billing", Once: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	r := got.Run
	if r.Mutations != "many" || r.OnFailure != "abort" || !r.ExpiresAt.Equal(start.Add(2*time.Hour)) || !r.Once || r.Item != "once:"+r.ID {
		t.Errorf("run %+v", r)
	}
}

func TestOpenRunWithTargetsPastTheProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := wire.OpenRun{Workflow: "billing", Item: "order-1", Reach: []string{"db.internal:5432", "[2001:db8::1]:6379"}}
	got, err := w.client.OpenRun(t.Context(), q, "key-1")
	if err != nil || !slices.Equal(got.ConnectorPorts, []uint16{80, 443}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if again, err := w.client.OpenRun(t.Context(), q, "key-1"); err != nil || different(again, got) != "" {
		t.Errorf("the repeat: %+v, %v; want %+v", again, err, got)
	}
	if log := w.log.String(); strings.Count(log, got.ID) != 1 || !strings.Contains(log, `"info"`) ||
		!strings.Contains(log, `["db.internal:5432","[2001:db8::1]:6379"]`) {
		t.Errorf("the log tells of one opening, not: %s", log)
	}
	q.Reach = q.Reach[:1]
	_, err = w.client.OpenRun(t.Context(), q, "key-1")
	problemIn(t, err, http.StatusUnprocessableEntity, "idempotency-key", got.ID)
}

// checkEnviron asserts the variables of every client that docs name.
func checkEnviron(t *testing.T, env map[string]string, token string) {
	t.Helper()
	proxy := "http://127.0.0.1:8080"
	if token != "" {
		proxy = "http://run:" + token + "@127.0.0.1:8080"
	}
	want := map[string]string{
		"HTTP_PROXY": proxy, "http_proxy": proxy, "HTTPS_PROXY": proxy, "https_proxy": proxy, "ALL_PROXY": proxy, "all_proxy": proxy,
		"ws_proxy": proxy, "WS_PROXY": proxy, "wss_proxy": proxy, "WSS_PROXY": proxy,
		"grpc_proxy": proxy, "CARGO_HTTP_PROXY": proxy, "npm_config_proxy": proxy, "NPM_CONFIG_PROXY": proxy,
		"npm_config_https_proxy": proxy, "NPM_CONFIG_HTTPS_PROXY": proxy,
		"NO_PROXY": "", "no_proxy": "", "no_grpc_proxy": "", "npm_config_noproxy": "", "NPM_CONFIG_NOPROXY": "", "PIP_PROXY": "",
		"NODE_EXTRA_CA_CERTS": "/data/ca.pem", "DENO_CERT": "/data/ca.pem", "NODE_USE_ENV_PROXY": "1", "UV_NATIVE_TLS": "1",
		"CLOUDSDK_PROXY_TYPE": "http", "CLOUDSDK_PROXY_ADDRESS": "127.0.0.1", "CLOUDSDK_PROXY_PORT": "8080",
		"CLOUDSDK_PROXY_USERNAME": "", "CLOUDSDK_PROXY_PASSWORD": "",
	}
	for name := range strings.FieldsSeq(`SSL_CERT_FILE NIX_SSL_CERT_FILE CURL_CA_BUNDLE REQUESTS_CA_BUNDLE HTTPLIB2_CA_CERTS
		PIP_CERT TWINE_CERT GIT_SSL_CAINFO AWS_CA_BUNDLE CARGO_HTTP_CAINFO CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE
		GRPC_DEFAULT_SSL_ROOTS_FILE_PATH PERL_LWP_SSL_CA_FILE npm_config_cafile NPM_CONFIG_CAFILE
		BUNDLE_SSL_CA_CERT COMPOSER_CAFILE HEX_CACERTS_PATH`) {
		want[name] = "/data/bundle.pem"
	}
	if token != "" {
		want["CLOUDSDK_PROXY_USERNAME"], want["CLOUDSDK_PROXY_PASSWORD"] = "run", token
	}
	for name, value := range want {
		if got, ok := env[name]; !ok || got != value {
			t.Errorf("%s=%q (there: %t), want %q", name, got, ok, value)
		}
	}
	for name := range env {
		if _, ok := want[name]; !ok && !strings.HasPrefix(name, "KEEP_") {
			t.Errorf("unexpected variable %s", name)
		}
	}
}

func TestEnvironmentWithoutARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	got, err := w.client.Environment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkEnviron(t, got.Env, "")
	if got.ProxyURL != "http://127.0.0.1:8080" {
		t.Errorf("proxy_url %q", got.ProxyURL)
	}
}

func TestOpenRunRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	busy := w.open("busy")
	w.lose(w.claim(intent{item: "elsewhere", n: 9, policy: ledger.Policy{BlockScope: ledger.BlockItem}, run: w.open("elsewhere").ID, body: "x"}))
	done := w.open("done")
	if _, err := w.client.FinishRun(t.Context(), done.ID, wire.FinishRun{Outcome: "done"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, body string
		status     int
		kind       string
		words      []string
	}{
		{"an empty body", ``, 400, "bad-request", []string{"body: it is empty; send a JSON object"}},
		{"no JSON", `{"workflow":`, 400, "bad-request", []string{"ends in the middle"}},
		{"a list", `[]`, 400, "bad-request", []string{"object"}},
		{"null", `null`, 400, "bad-request", []string{"it is null; send a JSON object"}},
		{"two values", `{"workflow":"w","once":true} {}`, 400, "bad-request", []string{"no valid JSON at byte"}},
		{"a name twice", `{"workflow":"w","once":true,"workflow":"v"}`, 400, "bad-request", []string{"duplicate", "/workflow"}},
		{"a bad escape", `{"workflow":"\q","once":true}`, 400, "bad-request", []string{"no valid JSON at byte"}},
		{"half a surrogate", `{"workflow":"\ud800","once":true}`, 400, "bad-request", []string{"no valid JSON at byte"}},
		{"bytes that are no UTF-8", "{\"workflow\":\"\xff\",\"once\":true}", 400, "bad-request", []string{"no valid JSON at byte"}},
		{"a name in other case", `{"Workflow":"w","once":true}`, 400, "bad-request", []string{"/Workflow: unknown name", `did you mean "workflow"?`}},
		{"a number for a name", `{"workflow":1,"once":true}`, 400, "bad-request", []string{"/workflow", "give a string"}},
		{"no workflow", `{"once":true}`, 400, "bad-request", []string{"/workflow: missing"}},
		{"no item", `{"workflow":"w"}`, 400, "bad-request", []string{"/item: missing", "once: true"}},
		{"item and once", `{"workflow":"w","item":"i","once":true}`, 400, "bad-request", []string{"/once", "give one of them"}},
		{"an item kept for once", `{"workflow":"w","item":"once:x"}`, 400, "bad-request", []string{"kept for runs with once"}},
		{"a negative attempt", `{"workflow":"w","item":"i","attempt":-1}`, 400, "bad-request", []string{"/attempt"}},
		{"mutations: some", `{"workflow":"w","once":true,"mutations":"some"}`, 400, "bad-request", []string{`/mutations: unknown value "some"`, "none, one, many"}},
		{"on_failure: ignore", `{"workflow":"w","once":true,"on_failure":"ignore"}`, 400, "bad-request", []string{"/on_failure", "abort, return"}},
		{"block_scope: nothing", `{"workflow":"w","once":true,"block_scope":"nothing"}`, 400, "bad-request", []string{"/block_scope", "workflow, item, mutation"}},
		{"a time limit without a unit", `{"workflow":"w","once":true,"ttl":"60"}`, 400, "bad-request", []string{"/ttl", "like 90s"}},
		{"a time limit that is a number", `{"workflow":"w","once":true,"ttl":90}`, 400, "bad-request", []string{"/ttl: JSON value must be string", `give a string such as "90s"`}},
		{"a time limit that is over", `{"workflow":"w","once":true,"ttl":"-1s"}`, 400, "bad-request", []string{"/ttl: -1s is out of bounds"}},
		{"a label of our own", `{"workflow":"w","once":true,"labels":{"keep.request":"x"}}`, 400, "bad-request", []string{"/labels/keep.request", "own"}},
		{"a label's value of a mebibyte", `{"workflow":"w","once":true,"labels":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`, 413, "too-large", []string{"1048576 bytes"}},
		{"a label's value that is nearly as long", `{"workflow":"w","once":true,"labels":{"a":"` + strings.Repeat("x", 1<<20-100) + `"}}`, 400, "bad-request", []string{"/labels/a: longer than"}},
		{"a label's long name", `{"workflow":"w","once":true,"labels":{"` + strings.Repeat("x", 1<<19) + `":"a"}}`, 400, "bad-request", []string{"longer than"}},
		{"a name with a line break", `{"workflow":"w\n","once":true}`, 400, "bad-request", []string{"/workflow: white space at an end"}},
		{"a name over its bound", `{"workflow":"` + strings.Repeat("w", 257) + `","once":true}`, 400, "bad-request", []string{"longer than 256 bytes"}},
		{"many items and one", `{"workflow":"w","item":"i","items":"many"}`, 400, "bad-request", []string{"/items: given together"}},
		{"an if_done that is unknown", `{"workflow":"w","once":true,"if_done":"shrug"}`, 400, "bad-request", []string{"/if_done", "skip, fail, run"}},
		{"a body over the limit", `{"workflow":"` + strings.Repeat("w", 1<<20) + `"}`, 413, "too-large", []string{"1048576 bytes"}},
		{"a target without a port", `{"workflow":"w","once":true,"reach":["db:5432","db"]}`, 400, "bad-request", []string{"/reach/1: not host:port"}},
		{"a target that is a pattern", `{"workflow":"w","once":true,"reach":["*.internal:5432"]}`, 400, "bad-request", []string{"/reach/0"}},
		{"a target that is a connector's host", `{"workflow":"w","once":true,"reach":["db:5432","bank.example:443"]}`, 400, "bad-request", []string{"/reach/1", "bank.example:443 is a connector's host"}},
		{"too many targets", `{"workflow":"w","once":true,"reach":["a:1"` + strings.Repeat(`,"a:1"`, 100) + `]}`, 400, "bad-request", []string{"/reach: more than 100"}},
		{"a busy item", `{"workflow":"billing","item":"busy"}`, 409, "item-busy", []string{"takeover", busy.ID}},
		{"a stopped item", `{"workflow":"billing","item":"elsewhere"}`, 423, "blocked", []string{"unresolved (indeterminate) and stops the item", "keep-proxy resolve m-"}},
		{"a done item", `{"workflow":"billing","item":"done"}`, 409, "item-done", []string{`item "done" is done`}},
		{"an attempt that nobody raised", `{"workflow":"billing","item":"new","attempt":2}`, 409, "attempt", []string{"at attempt 1, not 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(ask{method: http.MethodPost, path: "/v1/runs", body: c.body}, c.status, c.kind, c.words...)
		})
	}
}

func TestOpenRunReportsAllFaultsTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	p := w.refused(ask{method: http.MethodPost, path: "/v1/runs", body: `{"connectors":[],"wrkflow":"w","max_in_flight":1}`}, 400, "bad-request", "and 2 more")
	if len(p.Errors) != 3 {
		t.Errorf("faults %+v, want 3", p.Errors)
	}
}

func TestOpenRunWantsJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refused(ask{
		method: http.MethodPost, path: "/v1/runs", body: `{"workflow":"w","once":true}`,
		header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
	}, 415, "media-type", "application/json", "application/x-www-form-urlencoded")
}

func TestOpenRunOfADoneItemReadsIfItIsAskedTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.open("order-1")
	if _, err := w.client.FinishRun(t.Context(), first.ID, wire.FinishRun{Outcome: "done"}); err != nil {
		t.Fatal(err)
	}
	for ifDone, mutations := range map[string]string{"": "", "fail": "", "skip": "", "run": "none"} {
		got, err := w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "billing", Item: "order-1", IfDone: ifDone}, "")
		switch {
		case mutations == "" && err == nil:
			t.Errorf("if_done %q opened a run of a done item", ifDone)
		case mutations != "" && (err != nil || got.Run.Mutations != mutations):
			t.Errorf("if_done %q: %+v, %v", ifDone, got, err)
		}
	}
}

func TestOpenRunTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	first := w.open("order-1")
	if _, err := w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "billing", Item: "order-1", Takeover: true}, ""); err != nil {
		t.Fatal(err)
	}
	got, err := w.client.Run(t.Context(), first.ID)
	if err != nil || got.State != "aborted" || got.Reason != "taken over by another run" {
		t.Errorf("the first run: %+v, %v", got, err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	q := wire.OpenRun{Workflow: "billing", Once: true, Labels: map[string]string{"team": "a"}}
	first, err := w.client.OpenRun(t.Context(), q, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Run.Labels) != 1 {
		t.Errorf("labels %v, want the caller's own alone", first.Run.Labels)
	}

	t.Run("a repeat gets the same run and token", func(t *testing.T) {
		again, err := w.client.OpenRun(t.Context(), q, "key-1")
		if err != nil || different(again, first) != "" {
			t.Errorf("got %+v, %v; want %+v", again, err, first)
		}
	})
	t.Run("also once the run has ended", func(t *testing.T) {
		if _, err := w.client.EndRun(t.Context(), first.ID, wire.EndRun{Reason: "enough", Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
		again, err := w.client.OpenRun(t.Context(), q, "key-1")
		if err != nil || again.ID != first.ID || again.Token != first.Token || again.Run.State != "aborted" {
			t.Errorf("got %+v, %v", again, err)
		}
	})
	t.Run("another request with the key is refused", func(t *testing.T) {
		other := q
		other.Title = "another"
		_, err := w.client.OpenRun(t.Context(), other, "key-1")
		problemIn(t, err, http.StatusUnprocessableEntity, "idempotency-key", first.ID, "use a new key")
	})
	t.Run("another caller's key is another key", func(t *testing.T) {
		other, err := w.as("host-token").OpenRun(t.Context(), q, "key-1")
		if err != nil || other.ID == first.ID || other.Token == first.Token {
			t.Errorf("got %+v, %v", other, err)
		}
	})
	t.Run("another key is another run", func(t *testing.T) {
		other, err := w.client.OpenRun(t.Context(), q, "key-2")
		if err != nil || other.ID == first.ID {
			t.Errorf("got %+v, %v", other, err)
		}
	})
	t.Run("an empty key is refused", func(t *testing.T) {
		w.refused(ask{
			method: http.MethodPost, path: "/v1/runs", body: `{"workflow":"w","once":true}`, header: map[string]string{"Idempotency-Key": ""},
		}, 400, "bad-request", "header:Idempotency-Key")
	})
}

func TestIdempotencyKeySurvivesARestart(t *testing.T) {
	t.Parallel()
	before := newWorld(t, nil)
	q := wire.OpenRun{Workflow: "billing", Once: true}
	first, err := before.client.OpenRun(t.Context(), q, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	after := newWorld(t, func(c *admin.Config) {
		store := before.store.Reopen(ledger.Process{ID: "process-2"})
		c.Ledger = ledger.New(store, ledger.Config{Now: before.clock.now, NewID: func() string { return "after" }})
	})
	again, err := after.client.OpenRun(t.Context(), q, "key-1")
	if err != nil || again.ID != first.ID || again.Token != first.Token {
		t.Errorf("after a restart: %+v, %v; want run %s", again, err, first.ID)
	}
}

// Who repeats what had no answer must not be told that there is no run.
func TestARunThatWasOpenedBeforeAPauseIsGivenAgain(t *testing.T) {
	t.Parallel()
	before := newWorld(t, nil)
	q := wire.OpenRun{Workflow: "billing", Once: true}
	first, err := before.client.OpenRun(t.Context(), q, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	paused := newWorld(t, func(c *admin.Config) {
		c.Ledger, c.Modes = ledger.New(before.store, ledger.Config{Now: before.clock.now}), halted{}
	})
	again, err := paused.client.OpenRun(t.Context(), q, "key-1")
	if err != nil || again.ID != first.ID || again.Token != first.Token {
		t.Errorf("%+v, %v; want run %s", again, err, first.ID)
	}
	for _, key := range []string{"", "key-2"} {
		_, err = paused.client.OpenRun(t.Context(), q, key)
		problemIn(t, err, http.StatusServiceUnavailable, "draining", "No run was opened")
	}
}

func TestIdempotencyKeyUsedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const callers = 8
	ids := make([]string, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			run, err := w.client.OpenRun(t.Context(), wire.OpenRun{Workflow: "billing", Once: true}, "key-1")
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
				return
			}
			ids[i] = run.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("one key opened several runs: %v", ids)
		}
	}
}

func TestOpenRunSaysWhenTheLedgerIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.store.FailBefore()
	got := w.do(ask{method: http.MethodPost, path: "/v1/runs", body: `{"workflow":"w","once":true}`})
	p := got.problem(t)
	checkProblem(t, &p, 503, "ledger-unavailable", "can't commit")
	if got.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}
