package hostile

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

// recorder is an upstream that keeps every request as it came, byte by byte.
type recorder struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	requests []*recorded
	total    int
	conns    []net.Conn
}

// recorded is one whole request.
type recorded struct {
	raw     string
	body    string
	trailer http.Header
}

func newRecorder(tb testing.TB) *recorder {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	return record(tb, l)
}

// newTLSRecorder speaks TLS and HTTP/1.1.
func newTLSRecorder(tb testing.TB, ca *testca.CA) *recorder {
	tb.Helper()
	leaf, err := ca.Leaf("127.0.0.1")
	if err != nil {
		tb.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12})
	if err != nil {
		tb.Fatal(err)
	}
	return record(tb, l)
}

func record(tb testing.TB, l net.Listener) *recorder {
	tb.Helper()
	r := &recorder{listener: l}
	r.wg.Add(1)
	go r.accept()
	tb.Cleanup(r.close)
	return r
}

func (r *recorder) authority() string { return r.listener.Addr().String() }

func (r *recorder) accept() {
	defer r.wg.Done()
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, c)
		r.mu.Unlock()
		r.wg.Add(1)
		go r.serve(c)
	}
}

// close ends the recorder and waits for what it was reading.
func (r *recorder) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// serve answers whole requests. The proxy sends none ahead, so that what was read when
// a request is whole is that request.
func (r *recorder) serve(c net.Conn) {
	defer r.wg.Done()
	defer func() { _ = c.Close() }()
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(&counting{c, r}, &raw))
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.requests = append(r.requests, &recorded{raw.String(), string(body), req.Trailer})
		r.mu.Unlock()
		raw.Reset()
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return
		}
	}
}

// counting counts every byte that arrives.
type counting struct {
	io.Reader
	r *recorder
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.r.mu.Lock()
	c.r.total += n
	c.r.mu.Unlock()
	return n, err
}

// bytes is how much has arrived.
func (r *recorder) bytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}

// connections is how many there were so far.
func (r *recorder) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.conns)
}

// take gives the whole requests since it was asked last.
func (r *recorder) take() []*recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.requests
	r.requests = nil
	return all
}

// plain are the fields that every rebuilt request may have.
var plain = []string{"host", "content-length", "transfer-encoding", "content-type", "accept-encoding", "trailer"}

// held compares a request with its expected form: its request line, its fields but
// for the plain ones, its content, and that each line is written as RFC 9112 has it.
func (q *recorded) held(line, authority, body string, fields []string) error {
	head, _, _ := strings.Cut(q.raw, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	if lines[0] != line {
		return fmt.Errorf("request line %q, want %q", lines[0], line)
	}
	var others []string
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, ": ")
		if !ok || strings.ContainsAny(l, "\r\n\x00") || strings.TrimSpace(name) != name || strings.TrimSpace(value) != value {
			return fmt.Errorf("the line %q is not as it should be written", l)
		}
		name = strings.ToLower(name)
		if name == "host" && value != authority {
			return fmt.Errorf("host %q, want %q", value, authority)
		}
		if !slices.Contains(plain, name) {
			others = append(others, name+": "+value)
		}
	}
	slices.Sort(others)
	slices.Sort(fields)
	if !slices.Equal(others, fields) {
		return fmt.Errorf("fields %q, want %q", others, fields)
	}
	if q.body != body {
		return fmt.Errorf("content %q, want %q", q.body, body)
	}
	return nil
}
