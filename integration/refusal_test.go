package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

const jsonBody = "Content-Type: application/json"

// wantUnseen holds that an upstream saw nothing more than before.
func (u *upstream) wantUnseen(before oracle.Tally) {
	u.t.Helper()
	if heads := u.tally().Heads(); heads != before.Heads() {
		u.t.Errorf("the upstream saw %d requests, %d before", heads, before.Heads())
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("a", 1<<20+1)
	for name, c := range map[string]struct {
		method, target, body string
		fields               []string
		problem              string
		status               int
		sentence             string
	}{
		"an identity that is missing":        {"POST", "/hook/json/x", `{"other":1}`, []string{jsonBody}, "identity", 422, "has no value in this request"},
		"an identity in a body that is none": {"POST", "/hook/json/x", `{"ref":`, []string{jsonBody}, "ambiguous-request", 422, "one UTF-8 JSON value"},
		"no body where there should be one":  {"POST", "/hook/json/x", "", []string{jsonBody}, "identity", 422, "has no value in this request"},
		"Keep-Subkey where no rule takes it": {"POST", "/hook/plain/x", "a", []string{"Keep-Subkey: 2"}, "identity", 422, "Keep-Subkey"},

		"a name twice in JSON":                {"POST", "/hook/json/x", `{"ref":"a","ref":"b"}`, []string{jsonBody}, "ambiguous-request", 422, "repeats a member name"},
		"a name twice, once escaped":          {"POST", "/hook/json/x", `{"ref":"a","r\u0065f":"b"}`, []string{jsonBody}, "ambiguous-request", 422, "repeats a member name"},
		"JSON that is not UTF-8":              {"POST", "/hook/json/x", "{\"ref\":\"\xff\"}", []string{jsonBody}, "ambiguous-request", 422, "one UTF-8 JSON value"},
		"a bad escape in the path":            {"POST", "/hook/plain/%zz", "a", nil, "ambiguous-request", 422, "invalid escape"},
		"dot segments":                        {"POST", "/hook/ignored/../plain/x", "a", nil, "ambiguous-request", 422, "a dot segment"},
		"encoded dot segments":                {"POST", "/hook/%2e%2e/plain/x", "a", nil, "ambiguous-request", 422, "a dot segment"},
		"an empty segment":                    {"POST", "/hook//plain/x", "a", nil, "ambiguous-request", 422, "an empty segment"},
		"a path parameter":                    {"POST", "/hook/plain/x;v=1", "a", nil, "ambiguous-request", 422, "path parameters"},
		"a backslash":                         {"POST", "/hook/plain\\x", "a", nil, "ambiguous-request", 422, "must be escaped"},
		"an encoded slash in a mutation":      {"POST", "/hook/plain/a%2Fb", "a", nil, "ambiguous-request", 422, "an escaped slash"},
		"a NUL in the path":                   {"POST", "/hook/plain/a%00b", "a", nil, "ambiguous-request", 422, "a control character"},
		"two lines of one field":              {"POST", "/hook/json/x", `{"ref":"a"}`, []string{jsonBody, "Content-Type: text/plain"}, "ambiguous-request", 422, "Content-Type comes more than once"},
		"an unknown content coding":           {"POST", "/hook/json/x", `{"ref":"a"}`, []string{jsonBody, "Content-Encoding: zip"}, "ambiguous-request", 422, "Content-Encoding"},
		"a method override in a field":        {"POST", "/hook/plain/x", "a", []string{"X-HTTP-Method-Override: DELETE"}, "method-override", 403, "X-Http-Method-Override"},
		"a method override in a form":         {"POST", "/hook/plain/x", "_method=DELETE&a=b", []string{"Content-Type: application/x-www-form-urlencoded"}, "method-override", 403, "_method"},
		"a method override in JSON":           {"POST", "/hook/plain/x", `{"_method":"DELETE"}`, []string{"Content-Type: application/json"}, "method-override", 403, "_method"},
		"a method override in the query":      {"POST", "/hook/plain/x?_method=DELETE", "a", nil, "method-override", 403, "_method"},
		"another authority than the tunnel's": {"POST", "/hook/plain/x", "a", []string{"Host: elsewhere.test"}, "misdirected", 421, "elsewhere.test"},

		"a body over the limit":                 {"POST", "/hook/plain/x", long, nil, "too-large", 413, "1048576"},
		"a body of no known length, over it":    {"POST", "/hook/plain/x", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long), []string{"Transfer-Encoding: chunked", "X-No: Content-Length:"}, "too-large", 413, "1048576"},
		"an operation that is denied":           {"POST", "/hook/denied/x", "a", nil, "denied", 403, "denies"},
		"a mutation that no rule declares":      {"DELETE", "/hook/plain/x", "", nil, "unmatched", 403, "DELETE on this path"},
		"a read that no rule declares":          {"GET", "/hook/other/x", "", nil, "unmatched", 403, "GET on this path"},
		"TRACE":                                 {"TRACE", "/hook/read/x", "", nil, "denied", 403, "TRACE is always denied"},
		"a protocol upgrade":                    {"GET", "/hook/read/x", "", []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x"}, "denied", 403, "upgrades"},
		"a CONNECT inside of a tunnel":          {"CONNECT", "elsewhere.test:443", "", []string{"Host: elsewhere.test:443"}, "denied", 403, "tunnel"},
		"a head over the limit":                 {"POST", "/hook/plain/x", "a", []string{"X-Long: " + strings.Repeat("a", 32<<10)}, "malformed-request", 431, "limit"},
		"a field whose name holds a space":      {"POST", "/hook/plain/x", "a", []string{"Bad Name: 1"}, "malformed-request", 400, "RFC 9112"},
		"two lengths that differ":               {"POST", "/hook/plain/x", "a", []string{"Content-Length: 1", "Content-Length: 2"}, "malformed-request", 400, "RFC 9112"},
		"a transfer coding that is not chunked": {"POST", "/hook/plain/x", "a", []string{"Transfer-Encoding: gzip, chunked"}, "malformed-request", 501, "RFC 9112"},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.hooks.tally()
			run := w.open(strings.Map(letters, name), takeover)
			a := run.raw(w.hooks, c.method, c.target, c.body, c.fields...)
			switch {
			case a.err != nil:
				t.Errorf("no answer: %v", a.err)
			case c.problem != "":
				a.t = t
				a.wantRefusal(c.problem, c.status, c.sentence)
			case c.status != 0 && a.status != c.status:
				t.Errorf("got %v, want %d", a, c.status)
			}
			w.hooks.wantUnseen(before)
		})
	}
}

func TestProxyCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	for name, value := range map[string]string{
		"none":                   "",
		"an unknown token":       credentials("run", "nobody"),
		"another user":           credentials("ann", run.opened.Token),
		"no password":            credentials("run", ""),
		"another scheme":         "Bearer " + run.opened.Token,
		"what is no base64":      "Basic !!!",
		"what is empty":          "Basic",
		"the operator's own one": credentials("run", "operator"),
	} {
		t.Run(name, func(t *testing.T) {
			line := ""
			if value != "" {
				line = "Proxy-Authorization: " + value + "\r\n"
			}
			for _, text := range []string{
				"CONNECT " + w.hooks.Addr() + " HTTP/1.1\r\nHost: " + w.hooks.Addr() + "\r\n" + line + "\r\n",
				"POST http://" + w.hooks.Addr() + "/hook/plain/x HTTP/1.1\r\nHost: " + w.hooks.Addr() + "\r\n" + line + "Content-Length: 0\r\n\r\n",
			} {
				a := run.exchange(run.dialProxy(), text)
				if a.status != http.StatusProxyAuthRequired || a.header.Get("Proxy-Authenticate") != `Basic realm="keep-proxy"` ||
					a.header.Get("Content-Length") != "0" || a.header.Get("Connection") == "close" {
					t.Errorf("got %v with %v", a, a.header)
				}
			}
		})
	}
	if n := w.hooks.Connections(); n != 0 {
		t.Errorf("the upstream was connected to %d times", n)
	}
}

func TestAChallengedClientGoesOnOverTheSameConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	c := run.dialProxy()
	connect := "CONNECT " + w.hooks.Addr() + " HTTP/1.1\r\nHost: " + w.hooks.Addr() + "\r\n"
	if a := run.exchange(c, connect+"\r\n"); a.status != http.StatusProxyAuthRequired {
		t.Fatalf("got %v", a)
	}
	if a := run.exchange(c, connect+"Proxy-Authorization: "+credentials("run", run.opened.Token)+"\r\n\r\n"); a.status != http.StatusOK {
		t.Errorf("got %v", a)
	}
}

func TestWhatIsNoProxyRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	run.exchange(run.dialProxy(), "GET / HTTP/1.1\r\nHost: "+run.proxyAddr()+"\r\n\r\n").wantRefusal("not-a-proxy-request", http.StatusBadRequest, "http_proxy")
}

func TestATunnelWithAnotherServerName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	c := run.tunnel(w.hooks.Addr(), "elsewhere.test")
	run.exchange(c, "POST /hook/plain/x HTTP/1.1\r\nHost: "+w.hooks.Addr()+"\r\nContent-Length: 1\r\n\r\na").
		wantRefusal("misdirected", http.StatusMisdirectedRequest, "tunnel")
	if n := w.hooks.Connections(); n != 0 {
		t.Errorf("the upstream was connected to %d times", n)
	}
}

func TestHalfABodyIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	c := run.tunnel(w.hooks.Addr(), "127.0.0.1")
	if _, err := io.WriteString(c, "POST /hook/plain/x HTTP/1.1\r\nHost: "+w.hooks.Addr()+"\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("the tunnel can't be closed by halves")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if a := readReply(run, c, false); a.err == nil && a.status != http.StatusBadRequest {
		t.Errorf("got %v", a)
	}
	w.poll("the proxy has noticed", func() bool {
		return strings.Contains(w.output.String(), "incomplete-request")
	})
	if n := w.hooks.Connections(); n != 0 {
		t.Errorf("the upstream was connected to %d times", n)
	}
	if all := w.mutationsOf("a"); len(all) != 0 {
		t.Errorf("recorded: %+v", all)
	}
	run.wantState("running")
}

func TestAnAnswerOverTheLimitIsGivenWholeAndNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("commit-huge")
	first := w.open("a").deliver("plain/x")
	if first.status != http.StatusOK || len(first.body) != 12<<20 {
		t.Errorf("got %d and %d bytes", first.status, len(first.body))
	}
	if m := w.mutation("a"); m.State != "applied" || m.ResultState != "too_large" {
		t.Errorf("%s, result %s", m.State, m.ResultState)
	}
	w.again("a").deliver("plain/x").wantRefusal("no-result", 424, "too_large")
	w.hooks.want("hook:plain/x", 1, 1)
}

func TestSecretsStayOutOfTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hooks.arm("commit-close")
	run := w.open("a")
	run.do(http.MethodPost, w.hooks.URL()+"/hook/json/x", `{"ref":"R-1","password":"hunter2"}`, field("Authorization", "Bearer hunter2")).
		wantRefusal("unknown-outcome", 424, "a person must decide")
	m := w.mutation("a")
	if text := fmt.Sprintf("%+v", m); strings.Contains(text, "hunter2") || !strings.Contains(string(m.Request.Body.Content), "R-1") {
		t.Errorf("the record holds %s", text)
	}
	if strings.Contains(w.output.String(), "hunter2") {
		t.Error("the log holds the secret")
	}
	if got := w.hooks.tally().Of(oracle.KindReceived)[0]; !strings.Contains(string(got.Body), "hunter2") {
		t.Errorf("the upstream got %s", got.Body)
	}
}

func TestIgnoredOperationsAndReadsLeaveNoRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.open("a")
	for range 2 {
		if a := run.deliver("ignored/x"); a.status != http.StatusOK || a.header.Get("Keep-Mutation") != "" {
			t.Errorf("got %v", a)
		}
	}
	if a := run.read(w.probed); a.status != http.StatusOK {
		t.Errorf("got %v", a)
	}
	w.hooks.want("hook:ignored/x", 2, 2)
	if all := w.mutationsOf("a"); len(all) != 0 {
		t.Errorf("recorded: %+v", all)
	}
}

func TestHostsOfNoConnector(t *testing.T) {
	t.Parallel()
	for policy, c := range map[string]struct{ status, sends int }{"deny": {http.StatusForbidden, 0}, "observe": {405, 1}, "allow": {405, 1}} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *settings) { s.Unmatched = policy })
			run := w.open("a")
			if a := run.do(http.MethodGet, w.quotes.URL()+"/quote/ACME", ""); a.status != http.StatusOK {
				t.Errorf("a read got %v", a)
			}
			a := run.do(http.MethodPost, w.quotes.URL()+"/quote/ACME", "{}")
			if a.status != c.status || (a.header.Get("Keep-Observed") == "true") != (policy == "observe") {
				t.Errorf("got %v, Keep-Observed %q", a, a.header.Get("Keep-Observed"))
			}
			if policy == "deny" {
				a.wantRefusal("unmatched", http.StatusForbidden, "no connector")
			}
			w.quotes.want("POST /quote/ACME", 0, c.sends)
		})
	}
}

// Each part of a long answer, and of a long content, has arrived before the next one is
// sent, and none of them is kept. Other tests would count, so that it runs alone.
//
//nolint:paralleltest // See above.
func TestLargeReadsAreStreamed(t *testing.T) {
	const part, parts, most = 1 << 20, 64, 16 << 20
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	arrived := make(chan struct{})
	next := func() bool {
		select {
		case <-arrived:
			return true
		case <-ctx.Done():
			return false
		}
	}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); n != 0 || err != nil {
			t.Errorf("a read came with %d bytes, %v", n, err)
		}
		for content := make([]byte, part); ; {
			_, err := rw.Write(content)
			if err = errors.Join(err, http.NewResponseController(rw).Flush()); err != nil || !next() {
				return
			}
		}
	}))
	defer api.Close()
	defer cancel()
	w := newWorld(t)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, api.URL+"/long", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.open("a").client.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", resp, err)
	}
	defer func() { _ = resp.Body.Close() }()
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before uint64
	for i := range parts {
		if n, err := io.CopyN(io.Discard, resp.Body, part); err != nil {
			t.Fatalf("of part %d %d bytes arrived before the next one was sent, %v", i+1, n, err)
		}
		if i == 0 {
			before = held()
		}
		if i < parts-1 {
			arrived <- struct{}{}
		}
	}
	if after := held(); after > before+most {
		t.Errorf("%d MiB were held after the first of %d parts, %d MiB after the last", before>>20, parts, after>>20)
	}
}

func TestRedirectsArePassedOnAndNeverFollowed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		w := newWorld(t)
		w.hooks.armFault(script.Fault{Steps: []script.Step{{Do: script.Status, Status: status, Header: map[string]string{"Location": w.hooks.URL() + "/hook/plain/y"}}}})
		run := w.open("a")
		if a := run.deliver("plain/x"); a.status != status || a.header.Get("Keep-State") != "failed" {
			t.Errorf("got %v", a)
		}
		run.wantState("running")
		w.hooks.want("hook:plain/x", 0, 1)
		w.hooks.want("hook:plain/y", 0, 0)
	}
}
