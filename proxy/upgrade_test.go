package proxy

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// liveRules are operations whose connections may change protocols.
const liveRules = `
  - name: live
    match: {method: GET, path: /live}
    effect: read
    upgrade: [websocket, chat/2]
  - name: beacon
    match: {method: GET, path: /beacon}
    effect: ignore
    upgrade: WebSocket
  - name: page
    match: {method: GET, path: /page}
    effect: read
`

// ask asks for a change to websocket, as RFC 6455 has it.
const ask = "Connection: keep-alive, Upgrade\r\nUpgrade: other, WebSocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"

// changes is the usual answer to it, with fields that are the connection's own.
const changes = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nUpgrade: WebSocket\r\nKeep-State: applied\r\n" +
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

// liveWorld is a world with an upstream that answers with these bytes, and then says again what
// it is told; plain is the same without TLS.
type liveWorld struct {
	*world
	plain string
	// asked are the heads that the upstreams got, ends how their clients' directions ended.
	asked chan http.Header
	ends  chan error
	log   *lines
}

func newLive(t *testing.T, answer string, change ...func(*Config)) *liveWorld {
	t.Helper()
	w := &liveWorld{asked: make(chan http.Header, 8), ends: make(chan error, 8), log: &lines{}}
	handler := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pay" {
			lost(rw, r)
			return
		}
		w.asked <- r.Header
		c, in, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, answer)
		if session, ok := c.(*tls.Conn); ok && r.Header.Get("X-Cut") != "" {
			_ = session.NetConn().Close() // No closing alert.
			return
		}
		_, err = io.Copy(c, in.Reader)
		w.ends <- err
	}
	plain := httptest.NewServer(http.HandlerFunc(handler))
	t.Cleanup(plain.Close)
	w.plain = strings.TrimPrefix(plain.URL, "http://")
	w.world = newWorld(t, handler, append([]func(*Config){func(c *Config) { c.Log = zerolog.New(w.log) }}, change...)...)
	w.use(strings.Replace(testRules, `["HOST"]`, `["HOST", "`+w.plain+`"]`, 1) + liveRules)
	return w
}

// ways are how a client comes to its upstream.
var ways = []string{"in absolute form", "in a tunnel without TLS", "in a tunnel with TLS"}

// way opens one of the ways and gives the connection, the authority, and what goes before a
// path and into the head.
func (w *liveWorld) way(r *run, name string) (c net.Conn, host, before, head string) {
	w.t.Helper()
	switch name {
	case ways[0]:
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { _ = c.Close() })
		return c, w.plain, "http://" + w.plain, w.basic(r.token)
	case ways[1]:
		c, _, _ := r.tunnelTo(w.plain)
		return c, w.plain, "", ""
	}
	c, _, _ = r.tunnelTo(w.authority)
	return tls.Client(c, &tls.Config{RootCAs: w.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}), w.authority, "", ""
}

// upgraded is a client's connection, and its answer.
type upgraded struct {
	net.Conn
	in   *bufio.Reader
	resp *http.Response
	body string
}

// request sends a request with these fields and reads its answer. early goes with it.
func (w *liveWorld) request(r *run, way, method, path, fields, early string) upgraded {
	w.t.Helper()
	c, host, before, head := w.way(r, way)
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	if _, err := fmt.Fprintf(c, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n%s", method, before, path, host, head, fields, early); err != nil {
		w.t.Fatal(err)
	}
	return w.answered(c, method)
}

// answered reads the final answer to a request with this method.
func (w *liveWorld) answered(c net.Conn, method string) upgraded {
	w.t.Helper()
	u := upgraded{Conn: c, in: bufio.NewReader(c)}
	for {
		resp, err := http.ReadResponse(u.in, &http.Request{Method: method})
		if err != nil {
			w.t.Fatal(err)
		}
		if u.resp = resp; resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	if u.resp.StatusCode != http.StatusSwitchingProtocols {
		text, err := io.ReadAll(u.resp.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		u.body = string(text)
	}
	return u
}

// says sends a line and wants it back.
func (u upgraded) says(t *testing.T, line string) {
	t.Helper()
	wrote := make(chan struct{})
	go func() { defer close(wrote); _, _ = io.WriteString(u, line+"\n") }()
	u.hears(t, line)
	<-wrote
}

func (u upgraded) hears(t *testing.T, line string) {
	t.Helper()
	if got, err := u.in.ReadString('\n'); got != line+"\n" || err != nil {
		t.Fatalf("heard %q, %v; want %q", got, err, line)
	}
}

// ended waits for the log line of a change, and gives its fields.
func (w *liveWorld) ended() map[string]any {
	w.t.Helper()
	for range int(waitLimit / time.Millisecond) {
		w.log.mu.Lock()
		text := w.log.text.String()
		w.log.mu.Unlock()
		for line := range strings.Lines(text) {
			fields := map[string]any{}
			if strings.Contains(line, `"upgrade":`) && json.Unmarshal([]byte(line), &fields) == nil {
				return fields
			}
		}
		<-time.After(time.Millisecond)
	}
	w.t.Fatalf("no log line tells of a change of protocols:\n%s", w.log.text.String())
	return nil
}

func TestAConnectionChangesToAProtocolThatItsRuleNames(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/live", "/beacon"} {
		for _, way := range ways {
			t.Run(path+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newLive(t, changes+"welcome\n\x81\x05\n")
				u := w.request(w.open("a"), way, "GET", path, ask+"X-Mine: 1\r\n", "")
				if u.resp.StatusCode != http.StatusSwitchingProtocols || u.resp.Header.Get("Upgrade") != "WebSocket" || u.resp.Header.Get("Connection") != "Upgrade" {
					t.Fatalf("answered %d %v %s", u.resp.StatusCode, u.resp.Header, u.body)
				}
				if h := u.resp.Header; h.Get("Sec-WebSocket-Accept") == "" || len(h["X-Hop"])+len(h["Keep-State"]) > 0 {
					t.Errorf("the answer has %v", h)
				}
				asked := <-w.asked
				if got := fmt.Sprint(asked["Connection"], asked["Upgrade"]); got != "[Upgrade] [WebSocket]" {
					t.Errorf("the upstream was asked with %s", got)
				}
				if asked.Get("Sec-WebSocket-Key") == "" || asked.Get("X-Mine") == "" || len(asked["Proxy-Authorization"]) > 0 {
					t.Errorf("the upstream got %v", asked)
				}
				u.hears(t, "welcome")
				u.hears(t, "\x81\x05")
				u.says(t, "one")
				u.says(t, strings.Repeat("x", 1<<20))
				closeWrite(u.Conn)
				if err := <-w.ends; err != nil {
					t.Errorf("the upstream's reading ended with %v", err)
				}
				if rest, err := io.ReadAll(u.in); len(rest) > 0 || err != nil {
					t.Errorf("at the end came %q, %v", rest, err)
				}
				want := map[string]any{
					"status": 101., "upgrade": "WebSocket", "received_bytes": float64(len("one\n") + 1<<20 + 1), "body_bytes": float64(len("welcome\n\x81\x05\none\n") + 1<<20 + 1),
					"ended": "client", "delivered": true, "level": "info",
				}
				for name, value := range w.ended() {
					if wanted, ok := want[name]; ok && wanted != value {
						t.Errorf("the log says %s=%v, want %v", name, value, wanted)
					}
					delete(want, name)
				}
				if len(want) > 0 {
					t.Errorf("the log doesn't say %v", want)
				}
			})
		}
	}
}

// key makes an offer a handshake.
const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

// A server may ignore an offer (RFC 9110 §7.8), and so it is left out of a request that goes on.
func TestAnOfferOfAnUpgradeIsDropped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, path, fields, early string }{
		"TLS":                              {"GET", "/page", "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", ""},
		"HTTP/2 in clear":                  {"GET", "/page", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", ""},
		"settings that Connection hides":   {"GET", "/page", "Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", ""},
		"websocket without its key":        {"GET", "/page", "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n", ""},
		"to no rule":                       {"GET", "/elsewhere", "Connection: Upgrade\r\nUpgrade: other/1\r\n", ""},
		"another protocol than the rule's": {"GET", "/live", "Connection: Upgrade\r\nUpgrade: h2c, other\r\n", ""},
		"another version than the rule's":  {"GET", "/live", "Connection: Upgrade\r\nUpgrade: chat, chat/1\r\n", ""},
		"HEAD":                             {"HEAD", "/page", "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", ""},
		"Connection doesn't name it":       {"GET", "/live", "Upgrade: websocket\r\n", ""},
		"no list of protocols":             {"GET", "/live", "Connection: Upgrade\r\nUpgrade: web socket\r\n", ""},
		"an empty list":                    {"GET", "/live", "Connection: Upgrade\r\nUpgrade: ,\r\n", ""},
		"with content":                     {"GET", "/live", "Connection: Upgrade\r\nUpgrade: chat/2\r\nContent-Length: 4\r\n", "body"},
		"with content in chunks":           {"GET", "/page", "Connection: Upgrade\r\nUpgrade: h2c\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"},
		"in a mutation":                    {"POST", "/shape", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Type: application/json\r\nContent-Length: 10\r\n", `{"to":"x"}`},
	} {
		for _, way := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				const answer = `{"ok":true}`
				w := newLive(t, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\nConnection: close\r\n\r\n"+answer)
				u := w.request(w.open("a"), way, c.method, c.path, c.fields, c.early)
				if u.resp.StatusCode != http.StatusOK || c.method != http.MethodHead && u.body != answer {
					t.Fatalf("answered %d %s", u.resp.StatusCode, u.body)
				}
				asked := <-w.asked
				if len(asked["Upgrade"])+len(asked["Connection"])+len(asked["Http2-Settings"]) > 0 {
					t.Errorf("the upstream was asked with %v", asked)
				}
			})
		}
	}
}

// None of them may reach an upstream, and what follows on the connection is a request.
func TestUpgradesThatNoRuleAllowsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method, path, fields, early string
		words                       string
	}{
		"a rule that names none":             {"GET", "/page", ask, "", "no rule names the protocol"},
		"no rule but the connector's reads":  {"GET", "/elsewhere", ask, "", "no rule names the protocol"},
		"a mutation":                         {"POST", "/pay", ask, "", "this one is POST"},
		"another protocol":                   {"GET", "/live", key + "Connection: Upgrade\r\nUpgrade: h2c, other\r\n", "", "live of api names websocket, chat/2"},
		"another version":                    {"GET", "/live", key + "Connection: Upgrade\r\nUpgrade: chat, chat/1\r\n", "", "live of api names"},
		"another method":                     {"HEAD", "/live", ask, "", ""},
		"OPTIONS at its last hop":            {"OPTIONS", "/live", ask + "Max-Forwards: 0\r\n", "", "this one is OPTIONS"},
		"content":                            {"GET", "/live", ask + "Content-Length: 4\r\n", "body", "has content"},
		"content in chunks":                  {"GET", "/live", ask + "Transfer-Encoding: chunked\r\n", "0\r\n\r\n", "has content"},
		"Connection doesn't name it":         {"GET", "/live", key + "Upgrade: websocket\r\n", "", "Connection: Upgrade"},
		"no list of protocols":               {"GET", "/live", key + "Connection: Upgrade\r\nUpgrade: web socket\r\n", "", "no list of protocols"},
		"an empty list":                      {"GET", "/live", key + "Connection: Upgrade\r\nUpgrade: ,\r\n", "", "no list of protocols"},
		"a sound line beside one that isn't": {"GET", "/live", ask + "Upgrade: (websocket)\r\n", "", "no list of protocols"},
	} {
		for _, way := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newLive(t, changes)
				r := w.open("a")
				u := w.request(r, way, c.method, c.path, c.fields, c.early)
				if c.method != http.MethodHead {
					wantProblem(t, got{u.resp.StatusCode, u.resp.Header, u.body, nil}, "denied", 403, c.words)
				} else if u.resp.StatusCode != http.StatusForbidden {
					t.Errorf("answered %d", u.resp.StatusCode)
				}
				if n := len(w.asked); n != 0 || w.sends.total() != 0 {
					t.Errorf("the upstreams were sent %d and %d requests", n, w.sends.total())
				}
				if s := r.state().State; s != ledger.RunRunning {
					t.Errorf("the run is %s", s)
				}
			})
		}
	}
}

// What comes behind a refused one is the next request, and no other protocol.
func TestWhatFollowsARefusedUpgradeIsTheNextRequest(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, changes)
			r := w.open("a")
			c, host, before, head := w.way(r, way)
			_ = c.SetDeadline(time.Now().Add(waitLimit))
			_, _ = fmt.Fprintf(c, "GET %s/page HTTP/1.1\r\nHost: %s\r\n%s%s\r\nPOST %[1]s/never HTTP/1.1\r\nHost: %[2]s\r\n%[3]sContent-Length: 2\r\n\r\n{}",
				before, host, head, ask)
			in := bufio.NewReader(c)
			for i, words := range []string{"protocol upgrades", "never"} {
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(resp.Body)
				if resp.StatusCode != http.StatusForbidden || err != nil || !strings.Contains(strings.ToLower(string(text)), words) {
					t.Errorf("answer %d: %d %s, %v", i, resp.StatusCode, text, err)
				}
			}
			if len(w.asked) != 0 {
				t.Error("the upstream was sent something")
			}
		})
	}
}

// RFC 9110 §7.8: HTTP/1.0 has no upgrades, and so this is a read as any other.
func TestAnUpgradeInHTTP10IsNone(t *testing.T) {
	t.Parallel()
	w := newLive(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	c, host, before, head := w.way(w.open("a"), ways[0])
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = fmt.Fprintf(c, "GET %s/live HTTP/1.0\r\nHost: %s\r\n%s%s\r\n", before, host, head, ask)
	u := w.answered(c, http.MethodGet)
	if u.resp.StatusCode != http.StatusOK || u.body != "ok" {
		t.Errorf("answered %d %q", u.resp.StatusCode, u.body)
	}
	if len(w.asked) != 1 {
		t.Fatal("the upstream was not asked once")
	}
	if asked := <-w.asked; len(asked["Upgrade"])+len(asked["Connection"]) > 0 {
		t.Errorf("the upstream was asked with %v", asked)
	}
}

func TestAnswersToAnUpgrade(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		status int
		words  string
		header map[string]string
	}{
		"it stays with HTTP": {
			"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok", map[string]string{"Upgrade": "", "Connection": ""},
		},
		"it refuses": {
			"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nUpgrade: websocket\r\n\r\nno", 403, "no", map[string]string{"Upgrade": ""},
		},
		"it asks for another one": {
			"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: h2c, CHAT/2, other\r\n\r\nno", 426, "no",
			map[string]string{"Upgrade": "CHAT/2", "Connection": "Upgrade"},
		},
		"it asks for what no rule names": {
			"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nno", 426, "no",
			map[string]string{"Upgrade": "", "Connection": ""},
		},
		"to a protocol that wasn't asked for":        {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"to one more than was asked for":             {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket, TLS/1.0\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"to one that the rule names, unasked":        {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: chat/2\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"to nothing":                                 {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"to an empty list":                           {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: ,\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"without Connection":                         {"HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"with a length":                              {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 6\r\n\r\nsecret", 502, "not as it was asked to", nil},
		"in chunks":                                  {"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nsecret", 502, "", nil},
		"with a misspelt status line":                {"HTTP/1.1 1010 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsecret", 502, "", nil},
		"a final answer behind one that was unasked": {"HTTP/1.1 101 X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret", 502, "not as it was asked to", nil},
	} {
		for _, way := range ways[1:] {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				w := newLive(t, c.answer)
				u := w.request(w.open("a"), way, "GET", "/live", ask, "")
				if u.resp.StatusCode != c.status || !strings.Contains(u.body, c.words) || strings.Contains(u.body, "secret") {
					t.Errorf("answered %d %q", u.resp.StatusCode, u.body)
				}
				for field, want := range c.header {
					if got := strings.Join(u.resp.Header[field], "|"); got != want {
						t.Errorf("%s: %q, want %q", field, got, want)
					}
				}
				if c.status == 502 && !strings.Contains(u.body, "not-sent") {
					t.Errorf("the problem is %s", u.body)
				}
				// The client's connection speaks HTTP as before.
				_, _ = fmt.Fprintf(u, "POST /never HTTP/1.1\r\nHost: %s\r\nContent-Length: 2\r\n\r\n{}", map[bool]string{true: w.plain, false: w.authority}[way == ways[1]])
				if next := w.answered(u.Conn, http.MethodPost); next.resp.StatusCode != http.StatusForbidden || !strings.Contains(next.body, "never") {
					t.Errorf("the next request got %d %q", next.resp.StatusCode, next.body)
				}
			})
		}
	}
}

// Whoever asks for no upgrade where one is required is told which, whatever way it came, and goes
// on in HTTP.
func TestAnUpgradeIsOfferedToWhoAsksForNone(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nno")
			r := w.open("a")
			u := w.request(r, way, "GET", "/live", "", "")
			if h := u.resp.Header; u.resp.StatusCode != http.StatusUpgradeRequired || u.body != "no" || h.Get("Upgrade") != "websocket" || h.Get("Connection") != "Upgrade" {
				t.Errorf("answered %d %q with %v", u.resp.StatusCode, u.body, h)
			}
			before, credentials, host := "", "", w.authority
			switch way {
			case ways[0]:
				before, credentials, host = "http://"+w.plain, w.basic(r.token), w.plain
			case ways[1]:
				host = w.plain
			}
			_, _ = fmt.Fprintf(u, "POST %s/never HTTP/1.1\r\nHost: %s\r\n%sContent-Length: 2\r\n\r\n{}", before, host, credentials)
			if next := w.answered(u.Conn, http.MethodPost); next.resp.StatusCode != http.StatusForbidden || !strings.Contains(next.body, "never") {
				t.Errorf("the next request got %d %q", next.resp.StatusCode, next.body)
			}
		})
	}
}

func TestInterimAnswersBeforeAChangeOfProtocols(t *testing.T) {
	t.Parallel()
	w := newLive(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nUpgrade: websocket\r\n\r\n"+changes)
	c, host, _, _ := w.way(w.open("a"), ways[2])
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = fmt.Fprintf(c, "GET /live HTTP/1.1\r\nHost: %s\r\n%s\r\n", host, ask)
	in := bufio.NewReader(c)
	for _, want := range []int{103, 101} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != want || want == 103 && (resp.Header.Get("Link") == "" || resp.Header.Get("Upgrade") != "") {
			t.Fatalf("got %+v, %v; want %d", resp, err, want)
		}
	}
	upgraded{Conn: c, in: in}.says(t, "hello")
}

// A client may speak before it knows whether the protocol is another: none of it is lost,
// and none of it is read as HTTP.
func TestWhatTheClientSaysBeforeTheChangeIsKept(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, changes)
			u := w.request(w.open("a"), way, "GET", "/live", ask, "\x81\x85 early\r\n\r\nGET / HTTP/1.1\n")
			u.hears(t, "\x81\x85 early\r")
			u.hears(t, "\r")
			u.hears(t, "GET / HTTP/1.1")
			u.says(t, "late")
		})
	}
}
