package admin_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"keep-proxy/admin"
	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// provoked is one way to each refusal of the API.
type provoked struct {
	change func(*admin.Config)
	// ask makes what has to be there before, and gives the request that is refused.
	ask func(w *world) ask
	// words are of its sentence.
	words string
}

// halted keeps new work back.
type halted struct{}

func (halted) Mode() wire.Mode { return wire.Mode{Mode: wire.ModeDraining, Reason: "a new version"} }

func (halted) SetMode(context.Context, string, wire.SetMode) (wire.Mode, error) {
	return wire.Mode{}, errors.New("it stays")
}

func of(q ask) func(*world) ask { return func(*world) ask { return q } }

const openOne = `{"workflow":"billing","item":"order-1"}`

func opening(body string) ask { return ask{method: http.MethodPost, path: "/v1/runs", body: body} }

// decision is a person's on the one item.
func (w *world) decision(what, more string) ask {
	return ask{
		method: http.MethodPost, path: "/v1/items/" + ledger.ItemID("billing", "order-1") + "/" + what,
		body: `{"reason":"x","actor":"ada"` + more + `}`,
	}
}

// done closes the item by hand.
func (w *world) done() {
	w.t.Helper()
	run := w.open("order-1")
	if _, err := w.client.FinishRun(w.t.Context(), run.ID, wire.FinishRun{Outcome: "done"}); err != nil {
		w.t.Fatal(err)
	}
}

// attention has the item wait for a person: another payload is asked for what is applied.
func (w *world) attention() {
	w.t.Helper()
	run := w.open("order-1")
	i := transfer(&run.Run)
	m := w.apply(w.claim(i), http.StatusCreated, "{}")
	if _, err := w.client.EndRun(w.t.Context(), run.ID, wire.EndRun{Reason: "x", Actor: "ada"}); err != nil {
		w.t.Fatal(err)
	}
	again := w.open("order-1")
	record := *m
	record.PayloadDigest, record.SignificantDigest = digest("other"), digest("other")
	claimed, err := w.ledger.Claim(w.t.Context(), ledger.Claim{
		Scope: ledger.Scope{Workflow: "billing", Item: "order-1", Attempt: 1, Run: again.ID}, Key: m.Key, DispatchID: "d-other", Record: record,
		Compared: ledger.ComparedWith(m),
	})
	if err != nil || claimed.Decision != ledger.DecideMismatch {
		w.t.Fatalf("claimed %+v, %v", claimed, err)
	}
}

// apiRefusals are a way to each problem of the API.
func apiRefusals() map[string]provoked {
	breaking := func(err error) func(*admin.Config) {
		return func(c *admin.Config) { c.Ledger = &broken{Ledger: c.Ledger, err: err, body: err} }
	}
	return map[string]provoked{
		"bad-request": {nil, of(opening(`{"workflow":"w"}`)), "/item"},
		"token":       {nil, of(ask{path: "/v1/runs", token: "-"}), "Bearer"},
		"role":        {nil, of(ask{method: http.MethodPost, path: "/v1/runs", body: openOne, token: "viewer-token"}), "host or operator"},
		"browser":     {nil, of(ask{path: "/v1/status", header: map[string]string{"Origin": "https://attacker.example"}}), "web page"},
		"not-found":   {nil, of(ask{path: "/v1/mutations/m-1"}), "GET /v1/mutations"},
		"method":      {nil, of(ask{method: http.MethodDelete, path: "/v1/runs"}), "POST or GET"},
		"version": {nil, func(w *world) ask {
			w.done()
			return w.decision("reopen", `,"version":99`)
		}, "read it again"},
		"not-allowed": {nil, func(w *world) ask {
			w.done()
			return w.decision("skip", "")
		}, "actions"},
		"item-done": {nil, func(w *world) ask {
			w.done()
			return opening(openOne)
		}, "done"},
		"item-busy": {nil, func(w *world) ask {
			w.open("order-1")
			return opening(openOne)
		}, "takeover"},
		"item-attention": {nil, func(w *world) ask {
			w.attention()
			return opening(openOne)
		}, "escalations"},
		"item-unresolved": {nil, func(w *world) ask {
			w.unknown("order-1")
			return w.decision("done", "")
		}, "keep-proxy status"},
		"attempt": {nil, of(opening(`{"workflow":"billing","item":"order-1","attempt":2}`)), "leave attempt out"},
		"run-unfinished": {nil, func(w *world) ask {
			run, _ := w.unknown("order-1")
			return ask{method: http.MethodPost, path: "/v1/runs/" + run.ID + "/finish", body: `{"outcome":"done"}`}
		}, "GET /v1/mutations"},
		"run-ended": {nil, func(w *world) ask {
			run, _ := w.unknown("order-1")
			return ask{method: http.MethodPost, path: "/v1/runs/" + run.ID + "/heartbeat"}
		}, "open a new one"},
		"body-dropped": {breaking(ledger.ErrBodyDropped), func(w *world) ask {
			_, m := w.unknown("order-1")
			return ask{path: "/v1/mutations/" + m.ID + "/request/body"}
		}, "digest"},
		"too-large":   {nil, of(opening(`{"workflow":"w","once":true,"labels":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`)), "1048576 bytes"},
		"media-type":  {nil, of(ask{method: http.MethodPost, path: "/v1/runs", body: "a=b", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}}), "application/json"},
		"misdirected": {nil, of(ask{path: "/v1/status", host: "attacker.example"}), "attacker.example"},
		"idempotency-key": {nil, func(w *world) ask {
			q := wire.OpenRun{Workflow: "billing", Item: "order-1"}
			if _, err := w.client.OpenRun(w.t.Context(), q, "key-1"); err != nil {
				w.t.Fatal(err)
			}
			again := opening(`{"workflow":"billing","item":"order-2"}`)
			again.header = map[string]string{"Idempotency-Key": "key-1"}
			return again
		}, "use a new key"},
		"blocked": {nil, func(w *world) ask {
			w.unknown("order-1")
			return opening(`{"workflow":"billing","item":"order-2"}`)
		}, "keep-proxy resolve m-"},
		"internal":       {breaking(errors.New("000001.sst")), of(ask{path: "/v1/mutations"}), "log has the cause"},
		"ledger-damaged": {breaking(ledger.ErrDamaged), of(ask{path: "/v1/mutations"}), "keep-proxy ledger verify"},
		"reload-failed": {func(c *admin.Config) {
			c.Reload = func(context.Context, string) (wire.Reloaded, error) {
				return wire.Reloaded{}, errors.New("line 3: no operation")
			}
		}, of(ask{method: http.MethodPost, path: "/v1/reload"}), "stays in force"},
		"ledger-unavailable": {nil, func(w *world) ask {
			w.store.FailBefore()
			return opening(openOne)
		}, "after a restart"},
		"draining":  {func(c *admin.Config) { c.Modes = halted{} }, of(opening(openOne)), "try again later"},
		"not-ready": {func(c *admin.Config) { c.Ready = func() error { return errors.New("recovering") } }, of(ask{path: "/readyz", token: "-"}), "see GET /v1/status"},
	}
}

// TestEveryRefusalOfTheAPI provokes each problem that the API knows, over a socket.
func TestEveryRefusalOfTheAPI(t *testing.T) {
	t.Parallel()
	statuses, all := admin.ProblemStatuses(), apiRefusals()
	for name := range all {
		if statuses[name] == 0 {
			t.Errorf("%s is provoked, and is no problem of the API", name)
		}
	}
	for name, status := range statuses {
		c, ok := all[name]
		if !ok {
			t.Errorf("%s can't be provoked here", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.change)
			w.t = t
			q := c.ask(w)
			p := w.refused(q, status, name, c.words)
			if said := w.documented(q, status); name != "method" && !slices.Contains(said, name) {
				t.Errorf("the document has %q for status %d of %s %s", said, status, q.method, q.path)
			}
			// Each fault of a request is named by its place instead.
			whole := strings.HasSuffix(p.Detail, ".") || strings.HasSuffix(p.Detail, ")") || len(p.Errors) > 0
			if !whole || strings.Contains(p.Detail, "..") {
				t.Errorf("%q is no sentence", p.Detail)
			}
		})
	}
}

// full has no room for a run's own listener.
type full struct{ place }

func (full) OpenListener(context.Context, string) (string, error) {
	return "", errors.New("no free port")
}

// TestRefusalsOfSomeRequestsAreDocumented has those that routes give for what few requests ask.
func TestRefusalsOfSomeRequestsAreDocumented(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provoked

		status  int
		problem string
	}{
		"a run without a listener": {
			provoked{func(c *admin.Config) { c.Environment = full{} }, of(opening(`{"workflow":"w","item":"i","listener":true}`)), "no free port"},
			http.StatusServiceUnavailable, "not-ready",
		},
		"an undo that no rule can make": {
			provoked{nil, func(w *world) ask {
				_, m := w.unknown("order-1")
				return ask{
					method: http.MethodPost, path: "/v1/mutations/" + m.ID + "/resolve",
					body: `{"action":"happened","no_result":true,"compensate":true,"object":"o","reason":"x","actor":"ada","version":` +
						strconv.FormatInt(m.Version, 10) + `}`,
				}
			}, "no rule says how"}, http.StatusBadRequest, "bad-request",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.change)
			q := c.ask(w)
			w.refused(q, c.status, c.problem, c.words)
			if said := w.documented(q, c.status); !slices.Contains(said, c.problem) {
				t.Errorf("the document has %q for status %d of %s %s", said, c.status, q.method, q.path)
			}
		})
	}
}

// documented are the names of the problems that the OpenAPI document has for an answer.
func (w *world) documented(q ask, status int) []string {
	w.t.Helper()
	var d struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct {
				Description string `json:"description"`
			} `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(w.do(ask{path: "/openapi.json"}).body), &d); err != nil {
		w.t.Fatal(err)
	}
	asked := strings.Split(q.path, "/")
	for path, methods := range d.Paths {
		fits := func(a, b string) bool { return a == b || strings.HasPrefix(a, "{") }
		if slices.EqualFunc(strings.Split(path, "/"), asked, fits) {
			said := methods[strings.ToLower(cmp.Or(q.method, http.MethodGet))].Responses[strconv.Itoa(status)].Description
			return strings.Split(said, ", ")
		}
	}
	return nil
}
