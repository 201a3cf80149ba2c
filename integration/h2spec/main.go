// Command h2spec runs h2spec's cases (HTTP/2, HPACK) against the HTTP/2 server that keep-proxy
// shows inside a tunnel. It runs the cases for clients against the two ways in which keep-proxy
// asks an upstream. Its arguments are the program and, if the counts shall be written there, a
// page.
//
// The program h2spec speaks to a server, not through a proxy. So a relay opens a tunnel for each of
// its connections. The authority of its requests is the relay's address. The way out of keep-proxy
// is a CONNECT proxy of this program. It leads every tunnel to a server that answers 200.
//
// It ends with 1 if a case fails that isn't in misses.txt, or one passes that is.
package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 && len(os.Args) != 3 {
		log.Fatal("usage: h2spec PROGRAM [PAGE]")
	}
	all, err := run(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	unexpected, err := all.judge()
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) == 3 {
		if err := all.write(os.Args[2]); err != nil {
			log.Fatal(err)
		}
	}
	if unexpected > 0 {
		os.Exit(1)
	}
}

const configuration = `proxy:
  listen: ["127.0.0.1:0"]
  upstream_ca: %[1]s/upstream.pem
  egress: {allow: [127.0.0.0/8]}
  upstream_proxy: {url: "http://%[2]s"}
  unmatched: {mutation: allow}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %[1]s/data, min_free: 1MiB}
connectors: {bundled: false}
log: {level: error}
`

func run(program string) (all cases, err error) {
	dir, err := os.MkdirTemp("", "h2spec")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("keep-proxy ", 100))
	}))
	upstream.Config.ErrorLog = log.New(io.Discard, "", 0) // Each case leaves a connection behind.
	upstream.StartTLS()
	defer upstream.Close()
	var own atomic.Value // the relay's address
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "upstream.pem"), root, 0o600); err != nil {
		return nil, err
	}
	out, err := serveTunnels(func(asked string) string {
		if asked == own.Load() {
			return upstream.Listener.Addr().String()
		}
		return asked
	})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, dir, out), 0o600); err != nil {
		return nil, err
	}
	serve := exec.Command(program, "serve", "--config", file)
	serve.Stderr = os.Stderr
	if err := serve.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = serve.Process.Signal(os.Interrupt); _ = serve.Wait() }()
	env, err := open(program, file)
	if err != nil {
		return nil, err
	}
	proxy, err := url.Parse(env["HTTPS_PROXY"])
	if err != nil {
		return nil, err
	}
	relay, err := serveRelay(proxy)
	if err != nil {
		return nil, err
	}
	own.Store(relay.String())
	report := filepath.Join(dir, "report.xml")
	c := &config.Config{
		Host: "127.0.0.1", Port: relay.Port, Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000,
		TLS: true, Insecure: true, Strict: true, JUnitReport: report,
	}
	if _, err := h2spec.Run(c); err != nil {
		return nil, err
	}
	if all, err = readReport(report); err != nil {
		return nil, err
	}
	asked, err := tryClient(proxy, env["SSL_CERT_FILE"], upstream.TLS.Certificates[0])
	return append(all, asked...), err
}

// open opens a run, as soon as the program is ready, and returns its environment.
func open(program, file string) (map[string]string, error) {
	var last error
	for range 600 {
		text, err := exec.Command(program, "env", "--config", file, "--workflow", "h2spec", "--once", "--format", "json").Output()
		if err == nil {
			var env map[string]string
			if err := json.Unmarshal(text, &env); err != nil {
				return nil, err
			}
			return env, nil
		}
		last = err
		time.Sleep(100 * time.Millisecond)
	}
	return nil, fmt.Errorf("the program never became ready: %w", last)
}

// serveRelay opens a tunnel to its own address for each connection.
func serveRelay(proxy *url.URL) (*net.TCPAddr, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	own := l.Addr().String()
	go accept(l, func(c net.Conn) {
		inner, err := net.Dial("tcp", proxy.Host)
		if err != nil {
			log.Print(err)
			return
		}
		password, _ := proxy.User.Password()
		r, _ := http.NewRequest(http.MethodConnect, "http://"+own, http.NoBody)
		r.URL.Opaque, r.Host = own, own
		r.SetBasicAuth(proxy.User.Username(), password)
		r.Header["Proxy-Authorization"] = r.Header["Authorization"]
		delete(r.Header, "Authorization")
		if err := r.Write(inner); err != nil {
			log.Print(err)
			return
		}
		answer, err := http.ReadResponse(bufio.NewReader(&single{inner}), r)
		if err != nil || answer.StatusCode != http.StatusOK {
			log.Printf("no tunnel: %v, %v", answer, err)
			return
		}
		join(c, inner)
	})
	return l.Addr().(*net.TCPAddr), nil
}

// serveTunnels takes CONNECT, and leads to where its target says.
func serveTunnels(to func(target string) string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go accept(l, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(&single{c}))
		if err != nil {
			return
		}
		inner, err := net.Dial("tcp", to(r.Host))
		if err != nil {
			log.Print(err)
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		join(c, inner)
	})
	return l.Addr().String(), nil
}

func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			serve(c)
		}()
	}
}

// single reads a byte at a time, so that nothing behind a head is taken.
type single struct{ net.Conn }

func (s *single) Read(p []byte) (int, error) { return s.Conn.Read(p[:min(1, len(p))]) }

// join copies both ways until both have ended.
func join(a, b net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, b)
		_ = a.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(b, a)
	_ = b.(*net.TCPConn).CloseWrite()
	<-done
	_ = b.Close()
}
