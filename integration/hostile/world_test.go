package hostile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/app"
	"keep-proxy/config"
)

// patience bounds every wait. It is reached only by what is broken.
const patience = 3 * time.Minute

// connector is the API behind the proxy: a read, an ignored request and a mutation.
const connector = `apiVersion: keep/v1
connector: api
version: 1
title: API
hosts: [%s]
reads: safe-methods
operations:
  - name: pull
    match: {method: POST, path: /pull}
    effect: mutation
    describe: "Pull {json.to}"
    identity: {to: json.to}
    block_scope: mutation
    reconcile:
      - none: "the API can't be asked"
    manual_check: "look"
  - name: tell
    match: {method: POST, path: /tell}
    effect: ignore
`

const configuration = `proxy:
  listen: ["127.0.0.1:0"]
  egress: {deny_private: false}
  max_body: 64KiB
  timeouts: {dial: 30s, response: 60s, total: 60s}
  unmanaged: {workflow: loose, item: one}
  upstream_ca: %q
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %q, min_free: 1MiB}
connectors: {bundled: false, dirs: [%q]}
reconcile: {inline: 0s}
`

// world is the program in front of upstreams; requests need no credentials.
type world struct {
	t       testing.TB
	app     *app.App
	address string
	dir     string
}

// newWorld starts the program. ca may be empty.
func newWorld(tb testing.TB, ca string, hosts ...string) *world {
	tb.Helper()
	w := &world{t: tb, dir: tb.TempDir()}
	quoted := make([]string, 0, len(hosts))
	for _, h := range hosts {
		quoted = append(quoted, fmt.Sprintf("%q", h))
	}
	rules := filepath.Join(w.dir, "rules")
	w.write(filepath.Join(rules, "api.yaml"), fmt.Sprintf(connector, strings.Join(quoted, ", ")))
	file := filepath.Join(w.dir, "config.yaml")
	w.write(file, fmt.Sprintf(configuration, ca, filepath.Join(w.dir, "state"), rules))
	c, err := config.Load(config.Options{File: file})
	if err != nil {
		tb.Fatal(err)
	}
	if w.app, err = app.New(tb.Context(), app.Options{Config: c, Log: zerolog.Nop(), Version: "test"}); err != nil {
		tb.Fatal(err)
	}
	if err := w.app.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.stop)
	w.address = w.app.ProxyAddr()
	return w
}

func (w *world) write(file, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// stop ends the program in order; it may be called again.
func (w *world) stop() {
	if w.app == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.app.Stop(ctx); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	w.app = nil
}

// client is a connection to the proxy, plain or inside of a tunnel.
type client struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func (w *world) dial(t *testing.T) *client {
	t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	return &client{t, c, bufio.NewReader(c)}
}

// tunnel opens a tunnel to an authority.
func (w *world) tunnel(t *testing.T, authority string) *client {
	t.Helper()
	c := w.dial(t)
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", authority)
	resp, err := http.ReadResponse(c.in, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != http.StatusOK || len(resp.Header) > 0 {
		// RFC 9110 §9.3.6: neither length nor coding.
		t.Fatalf("no tunnel, or one with fields: %v, %v", resp, err)
	}
	return c
}

// finish ends the client's side.
func (c *client) finish() {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// answer is one answer of the proxy.
type answer struct {
	status int
	header http.Header
	body   string
	proto  string
	// trailer is complete where the content is.
	trailer http.Header
}

// read reads one answer.
func (c *client) read() (answer, error) {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body), resp.Proto, resp.Trailer}, err
}

// readFinal reads one answer and leaves out the interim ones before it.
func (c *client) readFinal() (answer, error) {
	for {
		a, err := c.read()
		if err != nil || a.status >= 200 || a.status == http.StatusSwitchingProtocols {
			return a, err
		}
		if a.header.Get("Content-Length") != "" {
			return a, errors.New("an interim answer with a length (RFC 9110 §8.6)")
		}
	}
}
