// Command h2spec runs h2spec's cases (HTTP/2, HPACK) against the HTTP/2 server that
// keep-proxy shows inside a tunnel. Its argument is the program.
//
// h2spec speaks to a server, not through a proxy, so that a relay opens a tunnel for each
// of its connections. The authority of its requests is the relay's address; keep-proxy's
// own way out is a CONNECT proxy of this program's, which leads every tunnel to a server
// that answers 200.
//
// It ends with 1 if a case fails that isn't in misses.txt, or one passes that is.
package main

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
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
	"slices"
	"strings"
	"time"

	"github.com/summerwind/h2spec"
	"github.com/summerwind/h2spec/config"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: h2spec PROGRAM")
	}
	unexpected, err := run(os.Args[1])
	if err != nil {
		log.Fatal(err)
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
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %[1]s/data, min_free: 1MiB}
connectors: {bundled: false}
log: {level: error}
`

func run(program string) (unexpected int, err error) {
	dir, err := os.MkdirTemp("", "h2spec")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("keep-proxy ", 100))
	}))
	defer upstream.Close()
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(dir, "upstream.pem"), root, 0o600); err != nil {
		return 0, err
	}
	out, err := serveTunnels(upstream.Listener.Addr().String())
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, configuration, dir, out), 0o600); err != nil {
		return 0, err
	}
	serve := exec.Command(program, "serve", "--config", file)
	serve.Stderr = os.Stderr
	if err := serve.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = serve.Process.Signal(os.Interrupt); _ = serve.Wait() }()
	proxy, err := open(program, file)
	if err != nil {
		return 0, err
	}
	relay, err := serveRelay(proxy)
	if err != nil {
		return 0, err
	}
	report := filepath.Join(dir, "report.xml")
	c := &config.Config{
		Host: "127.0.0.1", Port: relay.Port, Path: "/", Timeout: 5 * time.Second, MaxHeaderLen: 4000,
		TLS: true, Insecure: true, Strict: true, JUnitReport: report,
	}
	if _, err := h2spec.Run(c); err != nil {
		return 0, err
	}
	return judge(report)
}

// open opens a run, as soon as the program is ready, and returns its proxy's address.
func open(program, file string) (*url.URL, error) {
	var last error
	for range 600 {
		text, err := exec.Command(program, "env", "--config", file, "--workflow", "h2spec", "--once", "--format", "json").Output()
		if err == nil {
			var env map[string]string
			if err := json.Unmarshal(text, &env); err != nil {
				return nil, err
			}
			return url.Parse(env["HTTPS_PROXY"])
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

// serveTunnels takes CONNECT, and leads everything to one address.
func serveTunnels(to string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go accept(l, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(&single{c})); err != nil {
			return
		}
		inner, err := net.Dial("tcp", to)
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

// suites is h2spec's report.
type suites struct {
	Suites []struct {
		Package string `xml:"package,attr"`
		Cases   []struct {
			Name    string    `xml:"classname,attr"`
			Failure *struct{} `xml:"failure"`
			Error   *struct{} `xml:"error"`
			Skipped *struct{} `xml:"skipped"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// judge holds the report against misses.txt.
func judge(report string) (unexpected int, err error) {
	text, err := os.ReadFile(report)
	if err != nil {
		return 0, err
	}
	var all suites
	if err := xml.Unmarshal(text, &all); err != nil {
		return 0, err
	}
	listed, err := os.ReadFile("misses.txt")
	if err != nil {
		return 0, err
	}
	var known []string
	for line := range strings.Lines(string(listed)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			known = append(known, line)
		}
	}
	passed, missed, skipped := 0, 0, 0
	for _, s := range all.Suites {
		for _, c := range s.Cases {
			name := s.Package + ": " + c.Name
			failed := c.Failure != nil || c.Error != nil
			expected := slices.Contains(known, name)
			switch {
			case c.Skipped != nil:
				skipped++
				unexpected++
				log.Printf("skipped: %s", name)
			case failed && !expected:
				missed++
				unexpected++
				log.Printf("FAILED, and not in misses.txt: %s", name)
			case failed:
				missed++
			case expected:
				passed++
				unexpected++
				log.Printf("passed, and in misses.txt: %s", name)
			default:
				passed++
			}
		}
	}
	fmt.Printf("h2spec: %d cases, %d passed, %d missed, %d skipped\n", passed+missed+skipped, passed, missed, skipped)
	if passed+missed < 100 {
		return 0, fmt.Errorf("only %d cases ran", passed+missed)
	}
	return unexpected, nil
}
