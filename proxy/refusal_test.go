package proxy

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/fakes/sockets"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

func TestRefusalsSendNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		problem            string
		status             int
		words              string
	}{
		"a rule denies it":                      {"POST", "/never", `{}`, nil, "denied", 403, "never"},
		"no operation of the connector matches": {"POST", "/unknown", `{}`, nil, "unmatched", 403, ""},
		"TRACE is denied":                       {"TRACE", "/pay", "", nil, "denied", 403, ""},
		"the identity is missing":               {"POST", "/pay", `{"amount":1}`, nil, "identity", 422, ""},
		"the body is no JSON":                   {"POST", "/pay", `{`, nil, "ambiguous-request", 422, "JSON"},
		"a member name is repeated":             {"POST", "/pay", `{"to":"x","to":"y"}`, nil, "ambiguous-request", 422, ""},
		"a dot segment":                         {"POST", "/a/../pay", `{"to":"x"}`, nil, "ambiguous-request", 422, ""},
		"an encoded slash":                      {"POST", "/files/a%2Fb", `{"to":"x"}`, nil, "ambiguous-request", 422, ""},
		"the method is overridden":              {"POST", "/pay", `{"to":"x"}`, []string{"X-HTTP-Method-Override", "PUT"}, "method-override", 403, ""},
		"the method is overridden in a form":    {"POST", "/files/x", "_method=DELETE&a=b", []string{"Content-Type", "application/x-www-form-urlencoded"}, "method-override", 403, ""},
		"the method is overridden in JSON":      {"POST", "/pay", `{"to":"x","_method":"DELETE"}`, nil, "method-override", 403, ""},
		"the method is overridden in a part": {
			"POST", "/files/x", "--b\r\nContent-Disposition: form-data; name=_method\r\n\r\nPUT\r\n--b--\r\n",
			[]string{"Content-Type", "multipart/form-data; boundary=b"}, "method-override", 403, "",
		},
		"the body is over the limit":          {"POST", "/pay", `{"to":"` + strings.Repeat("x", 5000) + `"}`, nil, "too-large", 413, "4096"},
		"a subkey that the rule doesn't take": {"POST", "/pay", `{"to":"x"}`, []string{"Keep-Subkey", "s"}, "identity", 422, "Keep-Subkey"},
		"an item in a run that has its own":   {"POST", "/pay", `{"to":"x"}`, []string{"Keep-Item", "b"}, "identity", 422, "Keep-Item"},
		"an upgrade":                          {"GET", "/ws", "", []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Key", "x"}, "denied", 403, "upgrade"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			r := w.open("a")
			wantProblem(t, send(r.client, c.method, w.upstream.URL+c.path, c.body, c.header...), c.problem, c.status, c.words)
			if n := w.sends.total(); n != 0 {
				t.Errorf("the upstream was sent %d requests", n)
			}
			if s := r.state().State; s != ledger.RunRunning {
				t.Errorf("the run is %s", s)
			}
		})
	}
}

func (c *counter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, v := range c.n {
		n += v
	}
	return n
}

func TestUnmatchedHosts(t *testing.T) {
	t.Parallel()
	other := newWorld(t, created)
	for name, c := range map[string]struct {
		policy   Policy
		method   string
		problem  string
		observed string
	}{
		"a read passes":                {PolicyDeny, "GET", "", ""},
		"a mutation is denied":         {PolicyDeny, "POST", "unmatched", ""},
		"an unknown policy denies":     {"", "DELETE", "unmatched", ""},
		"observe passes, and says so":  {PolicyObserve, "POST", "", "true"},
		"allow passes":                 {PolicyAllow, "POST", "", ""},
		"allow passes without content": {PolicyAllow, "DELETE", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created, func(c2 *Config) {
				c2.Unmatched = c.policy
				c2.Reads = other.proxy.config.Reads
				c2.Sender = other.proxy.config.Sender
			})
			path := "/" + strings.ReplaceAll(name, " ", "-")
			body := `{"x":1}`
			if c.method != "POST" {
				body = ""
			}
			g := send(w.open("a").client, c.method, other.upstream.URL+path, body)
			if c.problem != "" {
				wantProblem(t, g, c.problem, 403, "connector")
				other.wantSends(path, 0)
				return
			}
			if g.status != 201 || g.header.Get("Keep-Observed") != c.observed {
				t.Errorf("got %d, Keep-Observed %q: %s", g.status, g.header.Get("Keep-Observed"), g.body)
			}
			other.wantSends(path, 1)
		})
	}
}

// What no rule declares may be a mutation, and nobody would keep it from being made again.
func TestARunThatReadsOnlyIsHeldToItWhereNoRuleIs(t *testing.T) {
	t.Parallel()
	other := newWorld(t, created)
	for _, policy := range []Policy{PolicyAllow, PolicyObserve} {
		w := newWorld(t, created, func(c *Config) {
			c.Unmatched, c.Reads, c.Sender = policy, other.proxy.config.Reads, other.proxy.config.Sender
		})
		r := w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone })
		wantProblem(t, send(r.client, "POST", other.upstream.URL+"/x", "{}"), "read-only-run", 403, "nothing was sent")
		if g := send(r.client, "GET", other.upstream.URL+"/read", ""); g.status != 201 {
			t.Errorf("%s: a read: %+v", policy, g)
		}
	}
	other.wantSends("/x", 0)
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	target := strings.TrimPrefix(w.upstream.URL, "https://")
	for name, header := range map[string]string{
		"none":              "",
		"not Basic":         "Proxy-Authorization: Bearer x\r\n",
		"not base64":        "Proxy-Authorization: Basic %%%\r\n",
		"an unknown token":  "Proxy-Authorization: Basic " + basic("run", "nobody") + "\r\n",
		"another user name": "Proxy-Authorization: Basic " + basic("item", "x") + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, first := range []string{"CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n", "POST http://" + target + "/pay HTTP/1.1\r\nHost: " + target + "\r\nContent-Length: 0\r\n"} {
				resp, body := w.raw(first + header + "\r\n")
				if resp.StatusCode != http.StatusProxyAuthRequired || resp.Header.Get("Proxy-Authenticate") != `Basic realm="keep-proxy"` || resp.ContentLength != 0 || body != "" || resp.Close {
					t.Errorf("%q: %d %v close=%t", first, resp.StatusCode, resp.Header, resp.Close)
				}
			}
		})
	}
	if n := w.sends.total(); n != 0 {
		t.Errorf("the upstream was sent %d requests", n)
	}
}

func basic(user, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

func TestWhatIsNoProxyRequestIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	resp, body := w.raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "not-a-proxy-request") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
}

func TestAnotherAuthorityInsideATunnelIsMisdirected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	req, err := http.NewRequest(http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "elsewhere.example"
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	wantProblem(t, got{resp.StatusCode, resp.Header, string(body), nil}, "misdirected", 421, "elsewhere.example")
	w.wantSends("/pay", 0)
}

// Any content would do for the operation, so that only its length tells that it is half.
func TestHalfABodySendsNothing(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", ledger.InlineBody)
	for name, c := range map[string]struct {
		framing, content string
		sends            int
	}{
		"all of it is sent":              {"Content-Length: 4", "half", 1},
		"all of it in chunks is sent":    {"Transfer-Encoding: chunked", "4\r\nhalf\r\n0\r\n\r\n", 1},
		"none of a short one":            {"Content-Length: 8", "", 0},
		"half of a short one":            {"Content-Length: 8", "half", 0},
		"half of a long one":             {fmt.Sprint("Content-Length: ", 4*len(long)), long + long, 0},
		"the start of a long one":        {fmt.Sprint("Content-Length: ", 4*len(long)), "half", 0},
		"chunks without the last one":    {"Transfer-Encoding: chunked", "4\r\nhalf\r\n", 0},
		"half a chunk":                   {"Transfer-Encoding: chunked", "8\r\nhalf", 0},
		"long chunks without a last one": {"Transfer-Encoding: chunked", fmt.Sprintf("%x\r\n%s\r\n", 2*len(long), long+long), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created)
			text := w.spoken(fmt.Sprintf("POST %s/files/f HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n%s\r\n\r\n%s",
				w.upstream.URL, w.authority, w.basic(w.open("a").token), c.framing, c.content), c.sends == 0)
			all := answers(t, text)
			if len(all) != 1 {
				t.Fatalf("%d answers", len(all))
			}
			w.wantSends("/files/f", c.sends)
			if c.sends > 0 {
				wantAnswer(t, all[0], 201, `{"id":1}`, false)
				return
			}
			wantProblem(t, all[0], "incomplete-request", 400, "nothing was sent")
			page, err := w.ledger.Mutations(t.Context(), ledger.Filter{})
			if err != nil || len(page.Items) != 0 {
				t.Errorf("%d records, %v", len(page.Items), err)
			}
		})
	}
}

// spoken sends bytes to the proxy, ends them if so, and returns all that comes.
func (w *world) spoken(text string, end bool) []byte {
	w.t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	if _, err := io.WriteString(c, text); err != nil {
		w.t.Fatal(err)
	}
	if end {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	came, err := io.ReadAll(c)
	if err != nil {
		w.t.Fatalf("not closed in order: %v", err)
	}
	return came
}

func TestRunsThatMayNotMutate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	reader := w.open("a", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsNone })
	wantProblem(t, reader.post("/pay", `{"to":"x"}`), "read-only-run", 403, "read")
	one := w.open("b", func(o *ledger.OpenRun) { o.Mutations = ledger.MutationsOne })
	wantAnswer(t, one.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
	wantProblem(t, one.post("/pay", `{"to":"y"}`), "one-mutation", 403, "one mutation")
	w.wantSends("/pay", 1)
}

// unreachable puts an address that refuses connections in the place of the upstream's. One that
// was closed may be another program's by then.
func unreachable(t *testing.T) func(*Config) {
	t.Helper()
	address := sockets.Deaf(t)
	return func(c *Config) {
		dead := upstream.Config{Clock: c.Clock, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
		c.Sender, c.Reads = upstream.New(dead), upstream.NewPassthrough(dead)
	}
}

func TestNothingToConnectToIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, unreachable(t))
	r := w.open("a")
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "not-sent", 502, "safe to try again")
	if m := w.mutation("a"); m.State != ledger.Failed {
		t.Errorf("record is %s", m.State)
	}
	if s := r.state().State; s != ledger.RunFailing {
		t.Errorf("run is %s", s)
	}
}

func TestTheUnmanagedScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Unmanaged = Unmanaged{"wf", "shared"} })
	client := w.newClient((*url.Userinfo)(nil), false)
	first := send(client, "POST", w.upstream.URL+"/pay", `{"to":"x"}`)
	wantAnswer(t, first, 201, `{"id":1}`, false)
	again := send(client, "POST", w.upstream.URL+"/pay", `{"to":"x"}`)
	wantAnswer(t, again, 201, `{"id":1}`, true)
	w.wantSends("/pay", 1)
	for what, g := range map[string]got{
		"a mutation": first, "a replay": again,
		"a read":              send(client, "GET", w.upstream.URL+"/read", ""),
		"what is ignored":     send(client, "POST", w.upstream.URL+"/telemetry", "x"),
		"what a rule denies":  send(client, "POST", w.upstream.URL+"/never", "x"),
		"one without a value": send(client, "POST", w.upstream.URL+"/pay", `{}`),
		"another payload":     send(client, "POST", w.upstream.URL+"/pay", `{"to":"x","amount":2}`),
	} {
		if g.header.Get("Keep-Scope") != "unmanaged" {
			t.Errorf("%s (%d): Keep-Scope %q", what, g.status, g.header.Get("Keep-Scope"))
		}
	}
	if g := w.open("a").get("/read"); g.status != 201 && g.status != 200 || g.header.Get("Keep-Scope") != "" {
		t.Errorf("a run's read: %d, Keep-Scope %q", g.status, g.header.Get("Keep-Scope"))
	}
}

// What a person begins anew is new work for an unmanaged scope too, at the attempt that its
// item is at.
func TestTheUnmanagedScopeWorksAtItsItemsAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Unmanaged = Unmanaged{"wf", "shared"} })
	client := w.newClient((*url.Userinfo)(nil), false)
	pay := func() got { return send(client, http.MethodPost, w.upstream.URL+"/pay", `{"to":"x"}`) }
	wantAnswer(t, pay(), 201, `{"id":1}`, false)
	w.decide(ledger.ItemNewAttempt, "shared")
	wantAnswer(t, pay(), 201, `{"id":1}`, false)
	wantAnswer(t, pay(), 201, `{"id":1}`, true)
	w.wantSends("/pay", 2)
}
