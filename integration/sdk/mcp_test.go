package sdk

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"keep-proxy/internal/fakes/testca"
)

// objects is gofakes3.
func objects(w *world) string {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.bin, "clients"), "gofakes3", w.log)
	return strings.TrimSpace(w.started(cmd, cmd.StdoutPipe))
}

// tickets is a server of the Go SDK, and the guide's connector for it.
func tickets(w *world) string {
	w.Helper()
	guide, err := os.ReadFile("../../docs/connectors.md")
	if err != nil {
		w.Fatal(err)
	}
	_, file, _ := strings.Cut(string(guide), "```yaml mcp\n")
	file, _, _ = strings.Cut(file, "```")
	if err := os.MkdirAll(filepath.Join(w.dir, "connectors"), 0o700); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "connectors", "tickets.yaml"), []byte(file), 0o600); err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.bin, "clients"), "mcp-go-server", w.log)
	return strings.TrimSpace(w.started(cmd, cmd.StdoutPipe))
}

// everything is the reference server that has all of the protocol's features.
func everything(w *world) string {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(w.Context(), node,
		"node/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	log, err := os.Create(w.log)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = log.Close() })
	cmd.Stdout = log
	w.started(cmd, cmd.StderrPipe)
	return address
}

// started starts a server, and returns the first line that it writes once it listens.
func (w *world) started(cmd *exec.Cmd, pipe func() (io.ReadCloser, error)) string {
	w.Helper()
	out, err := pipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Wait() })
	in := bufio.NewReader(out)
	line, err := in.ReadString('\n')
	if err != nil {
		w.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, in) }()
	return line
}

// losing leads to a server. Of the first call that makes a change it passes all but the answer, and breaks off.
func (w *world) losing(ca *testca.CA, to string) string {
	w.Helper()
	certificate, err := ca.Leaf(w.host)
	if err != nil {
		w.Fatal(err)
	}
	var lost atomic.Bool
	pass := httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: to})
			if w.connector == "aws-s3" { // Its host names the bucket.
				r.Out.Host = r.In.Host
			}
		},
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		changes := r.Method == http.MethodPut ||
			bytes.Contains(body, []byte(`"tools/call"`)) && !bytes.Contains(body, []byte(`"ticket_list"`))
		switch {
		case !changes || lost.Swap(true):
			if r.Method == http.MethodPost && !changes {
				w.passed.Add(1)
			}
			pass.ServeHTTP(rw, r)
		default:
			answer := httptest.NewRecorder()
			pass.ServeHTTP(answer, r)
			w.Logf("the server answers %d %s", answer.Code, answer.Body)
			if strings.HasPrefix(answer.Header().Get("Content-Type"), "text/event-stream") {
				rw.Header().Set("Content-Type", "text/event-stream")
				for event := range bytes.SplitAfterSeq(answer.Body.Bytes(), []byte("\n\n")) {
					if bytes.Contains(event, []byte(`"result"`)) {
						break
					}
					_, _ = rw.Write(event)
				}
				_ = http.NewResponseController(rw).Flush()
			}
			panic(http.ErrAbortHandler)
		}
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	w.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// tryServer calls a tool, loses the answer and crashes. Then it is run again. The server's own log counts.
func (w *world) tryServer() {
	first, said := w.run(`"$@"; exit 1`)
	w.Logf("lost: exit %d\n%s", first, said)
	again, said := w.run(`"$@"`)
	w.Logf("again: exit %d\n%s", again, said)
	if again != 0 {
		w.Error("the second run didn't get its answer")
	}
	log, err := os.ReadFile(w.log)
	if err != nil {
		w.Fatal(err)
	}
	calls := strings.Count(string(log), "opened")
	if calls == 0 { // The reference server writes down each request.
		calls = strings.Count(string(log), "Received MCP POST request") - int(w.passed.Load())
	}
	if calls != 1 {
		w.Errorf("the server was called %d times:\n%s", calls, log)
	}
}
