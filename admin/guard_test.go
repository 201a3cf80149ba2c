package admin_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"

	"keep-proxy/admin"
	"keep-proxy/admin/client"
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	open := `{"workflow":"billing","once":true}`
	for _, c := range []struct {
		name   string
		ask    ask
		status int
		kind   string
		words  []string
	}{
		{"no token", ask{path: "/v1/status", token: "-"}, 401, "token", []string{"Authorization: Bearer TOKEN"}},
		{"another ledger's token", ask{path: "/v1/status", token: "wrong"}, 401, "token", []string{"isn't known here"}},
		{"an empty token", ask{path: "/v1/status", token: "-", header: map[string]string{"Authorization": "Bearer "}}, 401, "token", nil},
		{"the token as a password", ask{path: "/v1/status", token: "-", header: map[string]string{"Authorization": "Basic " + operatorToken}}, 401, "token", nil},
		{"no token, and nothing there", ask{path: "/v1/nothing", token: "-"}, 401, "token", nil},
		{"no token, and the wrong method", ask{method: http.MethodDelete, path: "/v1/runs", token: "-"}, 401, "token", nil},
		{"a viewer decides", ask{method: http.MethodPost, path: "/v1/mutations/m-1/resolve", body: `{}`, token: "viewer-token"}, 403, "role", []string{"dashboard", "viewer", "needs operator"}},
		{"a viewer opens a run", ask{method: http.MethodPost, path: "/v1/runs", body: open, token: "viewer-token"}, 403, "role", []string{"needs host"}},
		{"a host decides", ask{method: http.MethodPost, path: "/v1/mutations/m-1/resolve", body: `{}`, token: "host-token"}, 403, "role", []string{"scheduler", "needs operator"}},
		{"a host begins an item anew", ask{method: http.MethodPost, path: "/v1/items/i-1/new-attempt", body: `{}`, token: "host-token"}, 403, "role", []string{"scheduler", "needs operator"}},
		{"a host closes an item", ask{method: http.MethodPost, path: "/v1/items/i-1/done", body: `{}`, token: "host-token"}, 403, "role", []string{"needs operator"}},
		{"a host reads contents", ask{path: "/v1/mutations/m-1/request/body", token: "host-token"}, 403, "role", []string{"needs viewer or operator"}},
		{"a host reads questions", ask{path: "/v1/escalations", token: "host-token"}, 403, "role", nil},
		{"a viewer ends a run", ask{method: http.MethodPost, path: "/v1/runs/r-1/end", body: `{}`, token: "viewer-token"}, 403, "role", []string{"needs host or operator"}},
		{"a viewer reloads", ask{method: http.MethodPost, path: "/v1/reload", token: "viewer-token"}, 403, "role", nil},
		{"a host takes a backup", ask{path: "/v1/ledger/backup", token: "host-token"}, 403, "role", nil},
		{"nothing there", ask{path: "/v1/nothing"}, 404, "not-found", []string{"/v1/nothing", "/openapi.json"}},
		{"nothing but the version", ask{path: "/v1"}, 404, "not-found", nil},
		{"a slash too many", ask{path: "/v1//runs", token: "-"}, 404, "not-found", []string{"without //"}},
		{"a slash at the end", ask{path: "/v1/runs/", token: "-"}, 404, "not-found", []string{"slash at its end"}},
		{"a way around", ask{path: "/healthz/../v1/status", token: "-"}, 404, "not-found", []string{"/../"}},
		{"the root", ask{path: "/", token: "-"}, 404, "not-found", nil},
		{"the wrong method", ask{method: http.MethodDelete, path: "/v1/runs"}, 405, "method", []string{"POST or GET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w.refused(c.ask, c.status, c.kind, c.words...)
		})
	}
	for _, c := range []struct {
		name string
		ask  ask
		want int
	}{
		{"a viewer reads", ask{path: "/v1/status", token: "viewer-token"}, 200},
		{"a host opens a run", ask{method: http.MethodPost, path: "/v1/runs", body: open, token: "host-token"}, 201},
		{"the scheme in lower case", ask{path: "/v1/status", token: "-", header: map[string]string{"Authorization": "bearer " + operatorToken}}, 200},
		{"health needs no token", ask{path: "/healthz", token: "-"}, 200},
		{"neither does readiness", ask{path: "/readyz", token: "-"}, 200},
		{"nor the document", ask{path: "/openapi.json", token: "-"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := w.do(c.ask); got.status != c.want {
				t.Errorf("status %d %s, want %d", got.status, got.body, c.want)
			}
		})
	}
}

func TestUnauthorizedSaysHow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if got := w.do(ask{path: "/v1/status", token: "-"}).header.Get("WWW-Authenticate"); got != `Bearer realm="keep-proxy"` {
		t.Errorf("WWW-Authenticate %q", got)
	}
	if got := w.do(ask{method: http.MethodPut, path: "/v1/runs"}).header.Get("Allow"); got != "POST, GET" {
		t.Errorf("Allow %q", got)
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) { c.Hosts = []string{"Keep.Example."} })
	for _, c := range []struct {
		name string
		ask  ask
		kind string
		want int
	}{
		{"the address itself", ask{path: "/v1/status"}, "", 200},
		{"localhost", ask{path: "/v1/status", host: "localhost:8081"}, "", 200},
		{"localhost with its dot", ask{path: "/v1/status", host: "LOCALHOST."}, "", 200},
		{"another loopback address", ask{path: "/v1/status", host: "[::1]:9"}, "", 200},
		{"a configured name", ask{path: "/v1/status", host: "keep.example:443"}, "", 200},
		{"a name that was made to point here", ask{path: "/v1/status", host: "attacker.example"}, "misdirected", 421},
		{"a name that begins like ours", ask{path: "/v1/status", host: "localhost.attacker.example"}, "misdirected", 421},
		{"this machine's other addresses", ask{path: "/v1/status", host: "192.0.2.1:8081"}, "misdirected", 421},
		{"health under another name", ask{path: "/healthz", host: "attacker.example", token: "-"}, "misdirected", 421},
		{"a web page", ask{path: "/v1/status", header: map[string]string{"Origin": "https://attacker.example"}}, "browser", 403},
		{"a web page without an origin", ask{path: "/v1/status", header: map[string]string{"Origin": "null"}}, "browser", 403},
		{"a web page's picture", ask{path: "/healthz", header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, "browser", 403},
		{"a preflight", ask{method: http.MethodOptions, path: "/v1/runs", header: map[string]string{"Origin": "https://attacker.example", "Access-Control-Request-Method": "POST"}}, "browser", 403},
		{"an address that a person typed", ask{path: "/healthz", header: map[string]string{"Sec-Fetch-Site": "none"}}, "", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := w.do(c.ask)
			for name := range got.header {
				if len(name) > 15 && name[:15] == "Access-Control-" {
					t.Errorf("the answer grants %s", name)
				}
			}
			if got.status != c.want {
				t.Fatalf("status %d %s, want %d", got.status, got.body, c.want)
			}
			if c.kind != "" {
				p := got.problem(t)
				checkProblem(t, &p, c.want, c.kind)
			}
		})
	}
}

func TestGuardRefusesToBeAProxy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, line := range []string{"GET http://localhost/v1/status HTTP/1.1", "CONNECT localhost:443 HTTP/1.1"} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", w.base[len("http://"):])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprintf(conn, "%s\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", line, operatorToken)
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			body, err := io.ReadAll(got.Body)
			if err != nil {
				t.Fatal(err)
			}
			p := answer{got.StatusCode, got.Header, string(body)}.problem(t)
			checkProblem(t, &p, 421, "misdirected", "not the proxy")
		})
	}
}

func TestServeOnAUnixSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	path := filepath.Join(t.TempDir(), "admin.sock")
	ln, err := admin.Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(ln) }()
	c, err := client.New(client.Config{URL: "unix:" + path, Token: " " + operatorToken + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.Status(t.Context())
	if err != nil || got.LedgerID != w.store.ID() {
		t.Errorf("status over a socket: %+v, %v", got, err)
	}
	if err := w.server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

func TestServeRefusesWhatOthersReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ln := everywhere{}
	if err := w.server.Serve(ln); err == nil || err.Error() != "admin.listen: 0.0.0.0:8081 isn't a loopback address" {
		t.Errorf("got %v", err)
	}
}

// everywhere is a listener on every interface, without opening one.
type everywhere struct{}

func (everywhere) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (everywhere) Close() error              { return nil }
func (everywhere) Addr() net.Addr            { return &net.TCPAddr{IP: net.IPv4zero, Port: 8081} }

func TestHalfABody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	conn, err := net.Dial("tcp", w.base[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"workflow\":\"w\"", operatorToken)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	p := answer{got.StatusCode, got.Header, string(body)}.problem(t)
	checkProblem(t, &p, 400, "bad-request", "body: it did not arrive whole")
	if w.store.Syncs() != 0 {
		t.Error("half a request changed the ledger")
	}
}
