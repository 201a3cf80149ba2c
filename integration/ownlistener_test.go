package integration

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"keep-proxy/admin/wire"
)

func ownListener(o *wire.OpenRun) { o.Listener = true }

func TestARunsOwnListenerTakesNoCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.open("a", ownListener), w.open("b")
	if strings.Contains(a.opened.ProxyURL, "@") || a.opened.Env["HTTPS_PROXY"] != a.opened.ProxyURL || a.opened.ProxyURL == w.app.ProxyAddr() {
		t.Fatalf("proxy_url %s, HTTPS_PROXY %s", a.opened.ProxyURL, a.opened.Env["HTTPS_PROXY"])
	}
	a.transfer(w.keyed, "R-1").wantApplied(http.StatusCreated)
	if m := w.mutation("a"); m.Run != a.id {
		t.Errorf("the mutation is run %s's, want %s's", m.Run, a.id)
	}

	// A run's credentials are good at its own listener and at nobody else's.
	for _, c := range []struct {
		whose *scriptRun
		want  string
	}{{a, ""}, {b, "Proxy Authentication Required"}} {
		env := map[string]string{"SSL_CERT_FILE": a.opened.Env["SSL_CERT_FILE"], "HTTPS_PROXY": withToken(t, a.opened.ProxyURL, c.whose.opened.Token)}
		mixed := &scriptRun{w: w, id: a.id, opened: a.opened, client: scriptClient(t, env)}
		got := mixed.try(t.Context(), http.MethodGet, w.keyed.URL()+"/balance", "")
		if c.want == "" && got.err != nil || c.want != "" && (got.err == nil || !strings.Contains(got.err.Error(), c.want)) {
			t.Errorf("with a token of item %s: %v %v", c.whose.opened.Run.Item, got.status, got.err)
		}
	}
	// The listener that all share asks for credentials as before.
	bare := &scriptRun{w: w, client: scriptClient(t, map[string]string{
		"SSL_CERT_FILE": a.opened.Env["SSL_CERT_FILE"], "HTTPS_PROXY": "http://" + w.app.ProxyAddr(),
	})}
	if got := bare.try(t.Context(), http.MethodGet, w.keyed.URL()+"/balance", ""); got.err == nil {
		t.Errorf("without credentials: %v", got)
	}
	// Through a listener of ours nobody gets to a listener of ours.
	b.do(http.MethodGet, a.opened.ProxyURL+"/", "").wantRefusal("egress", http.StatusForbidden, "")

	if err := a.finish("done"); err != nil {
		t.Fatal(err)
	}
	a.transfer(w.keyed, "R-2").wantRefusal("run-aborted", http.StatusFailedDependency, "over")
	w.keyed.want("transfer:R-1", 1, 1)
	w.keyed.want("transfer:R-2", 0, 0)
}

func TestARepeatedOpeningGetsTheSameListener(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	q := wire.OpenRun{Workflow: "books", Item: "a", Listener: true}
	first, err := w.api.OpenRun(t.Context(), q, "key-1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.api.OpenRun(t.Context(), q, "key-1")
	if err != nil || again.ProxyURL != first.ProxyURL || again.ID != first.ID {
		t.Errorf("%s of run %s, then %s of run %s, %v", first.ProxyURL, first.ID, again.ProxyURL, again.ID, err)
	}
	_, err = w.api.OpenRun(t.Context(), q, "key-2")
	wantProblem(t, err, "item-busy", http.StatusConflict)
}

func withToken(t *testing.T, proxy, token string) string {
	t.Helper()
	u, err := url.Parse(proxy)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("run", token)
	return u.String()
}
