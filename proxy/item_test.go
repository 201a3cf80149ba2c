package proxy

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"keep-proxy/ledger"
)

func manyItems(o *ledger.OpenRun) { o.Items = ledger.ItemsMany }

// as is a client of the run whose credentials name an item.
func (r *run) as(user string) *http.Client {
	return r.newClient(url.UserPassword(user, r.token), false)
}

func TestARunOfManyItemsIsToldEachItem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r := w.open("", manyItems)
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "identity", http.StatusUnprocessableEntity, "names none")
	if g := r.get("/read"); g.status != http.StatusOK {
		t.Errorf("a read without an item: %+v", g)
	}
	pay := w.upstream.URL + "/pay"
	for _, g := range []got{
		r.post("/pay", `{"to":"x"}`, "Keep-Item", "order%201"),
		send(r.as("order 2"), http.MethodPost, pay, `{"to":"x"}`),
		send(r.as("a%3Ab"), http.MethodPost, pay, `{"to":"x"}`),
		send(r.as("%72un"), http.MethodPost, pay, `{"to":"x"}`),
		send(r.as("order 4"), http.MethodPost, pay, `{"to":"x"}`, "Keep-Item", "order%204"),
	} {
		if g.status != http.StatusOK && g.status != http.StatusCreated {
			t.Fatalf("%+v", g)
		}
	}
	w.wantSends("/pay", 5)
	for _, name := range []string{"order 1", "order 2", "a:b", "run", "order 4"} {
		if m := w.mutation(name); m == nil || m.Run != r.id {
			t.Errorf("item %q has %+v", name, m)
		}
	}
	wantProblem(t, send(r.as("order 2"), http.MethodPost, pay, `{"to":"x"}`, "Keep-Item", "order%201"),
		"identity", http.StatusUnprocessableEntity, "nothing was sent. That is the user of its proxy address: name the item there or in Keep-Item.")
	for _, name := range []string{"%zz", "", "%00", "once:1", "%20x", strings.Repeat("x", 257), "%ff", "a%E2%80%A8b", "a%E2%80%AEb", "a%C2%85b", "%E3%80%80a"} {
		wantProblem(t, r.post("/pay", `{"to":"y"}`, "Keep-Item", name), "identity", http.StatusUnprocessableEntity, "percent-encoding")
	}
	if g := send(r.as("%zz"), http.MethodPost, pay, `{"to":"y"}`); g.err == nil && g.status != http.StatusProxyAuthRequired {
		t.Errorf("a user that is no item's name: %+v", g)
	}
	one := w.open("alone")
	wantProblem(t, one.post("/pay", `{"to":"y"}`, "Keep-Item", "other"), "identity", http.StatusUnprocessableEntity,
		"nothing was sent. Open a run with items: many to work on several.")
	if g := send(one.as("other"), http.MethodPost, pay, `{"to":"y"}`); g.err == nil && g.status != http.StatusProxyAuthRequired {
		t.Errorf("an item's name in a run of one item: %+v", g)
	}
	w.wantSends("/pay", 5)
}

func TestAnItemThatRefusesLetsTheOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	r := w.open("", manyItems)
	w.open("busy")
	wantProblem(t, r.post("/pay", `{"to":"x"}`, "Keep-Item", "busy"), "item-busy", http.StatusConflict, "busy")
	if g := r.post("/pay", `{"to":"x"}`, "Keep-Item", "free"); g.status >= 300 {
		t.Errorf("the next item: %+v", g)
	}
	if got := r.state().State; got != ledger.RunRunning {
		t.Errorf("the run is %s", got)
	}
	w.wantSends("/pay", 1)
}

// A client without credentials may name items, too: each is work, and stands still, by itself.
func TestTheUnmanagedScopeTakesItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if content, _ := io.ReadAll(r.Body); strings.Contains(string(content), "lost") {
			lost(rw, r)
		}
		created(rw, r)
	}, func(c *Config) {
		c.Unmanaged, c.BlockScope = Unmanaged{"wf", "shared"}, ledger.BlockItem
	})
	client := w.newClient((*url.Userinfo)(nil), false)
	pay := func(to string, item ...string) got {
		return send(client, http.MethodPost, w.upstream.URL+"/pay", `{"to":"`+to+`"}`, item...)
	}
	for _, named := range [][]string{nil, {"Keep-Item", "order%201"}, {"Keep-Item", "order%202"}} {
		wantAnswer(t, pay("x", named...), 201, `{"id":1}`, false)
		wantAnswer(t, pay("x", named...), 201, `{"id":1}`, true)
	}
	w.wantSends("/pay", 3)
	for _, name := range []string{"shared", "order 1", "order 2"} {
		if m := w.mutation(name); m == nil || m.Run != "" || m.State != ledger.Applied {
			t.Errorf("item %q has %+v", name, m)
		}
	}
	wantProblem(t, pay("lost", "Keep-Item", "order%203"), "unknown-outcome", http.StatusFailedDependency, "what depends on it is refused")
	wantProblem(t, send(client, http.MethodGet, w.upstream.URL+"/read", "", "Keep-Item", "order%203"), "blocked", http.StatusLocked, "A person must decide")
	wantAnswer(t, pay("y", "Keep-Item", "order%201"), 201, `{"id":1}`, false)
	wantProblem(t, pay("x", "Keep-Item", "%zz"), "identity", http.StatusUnprocessableEntity, "percent-encoding")
	w.wantSends("/pay", 5)
}

// Who asks without a run isn't told that one is over, nor to start it again.
func TestAnUnmanagedClientIsToldOfNoRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lost, func(c *Config) { c.Unmanaged = Unmanaged{"wf", "shared"} })
	client := w.newClient((*url.Userinfo)(nil), false)
	asked := send(client, http.MethodPost, w.upstream.URL+"/ask", payX)
	wantProblem(t, asked, "unknown-outcome", http.StatusFailedDependency, "what depends on it is refused, and keep-proxy goes on asking the API what happened; ask again later")
	blocked := send(client, http.MethodGet, w.upstream.URL+"/read", "")
	wantProblem(t, blocked, "blocked", http.StatusLocked, "ask again later")
	for _, g := range []got{asked, blocked} {
		if strings.Contains(g.body, "run") {
			t.Errorf("it is told of a run: %s", g.body)
		}
	}
}
