package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/internal/fakes/testca"
)

// upstreamVar names what this binary then is: an upstream that answers whatever it is
// asked with the same, as cheaply as it can, so that benchmarks measure what stands
// before it.
const upstreamVar = "KEEP_INTEGRATION_UPSTREAM"

// What an upstream of a benchmark answers with, and by which protocol.
const (
	kilobytes   = "kilobytes"
	kilobytesH2 = "kilobytes by HTTP/2"
	blobs       = "blobs"
	asked       = "as long as it is asked for"
)

// blob is the size of a download.
const blob = 64 << 20

// benchUpstream is that upstream, until its standard input ends.
func benchUpstream(kind string) int {
	if err := serveUpstream(kind); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveUpstream(kind string) error {
	ca, err := testca.New()
	if err != nil {
		return err
	}
	leaf, err := ca.Leaf("127.0.0.1")
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Close()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(announcement{Proxy: "https://" + l.Addr().String(), CAPEM: string(ca.PEM())}); err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	handlers := map[string]http.HandlerFunc{kilobytesH2: answerKilobyte, asked: answerAsked}
	if handler := handlers[kind]; handler != nil {
		server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: config.Certificates, MinVersion: tls.VersionTLS12}}
		_ = server.ServeTLS(l, "", "") // Ends with its listener.
		return nil
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sat, 21 Nov 2026 09:12:29 GMT\r\nContent-Length: "
	piece, pieces := append([]byte(head+"1024\r\n\r\n"), kilobyte...), 1
	if kind == blobs {
		head += strconv.Itoa(blob) + "\r\n\r\n"
		piece, pieces = bytes.Repeat(kilobyte, 64), blob>>16
	} else {
		head = ""
	}
	secure := tls.NewListener(l, config)
	for {
		c, err := secure.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() { _ = keepAnswering(c, head, piece, pieces) }()
	}
}

// keepAnswering serves one connection until it breaks: head, if it isn't part of the
// piece, and so many times the piece.
func keepAnswering(c net.Conn, head string, piece []byte, pieces int) error {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		if err := skipMessage(in); err != nil {
			return err
		}
		if head != "" {
			if _, err := io.WriteString(c, head); err != nil {
				return err
			}
		}
		for range pieces {
			if _, err := c.Write(piece); err != nil {
				return err
			}
		}
	}
}

// answerKilobyte answers what comes by HTTP/2, so that both sides of a comparison use it.
func answerKilobyte(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor != 2 {
		w.WriteHeader(http.StatusHTTPVersionNotSupported)
		return
	}
	_, _ = w.Write(kilobyte)
}

// answerAsked answers a read with as many bytes as it names, and what is sent with how many
// bytes that was.
func answerAsked(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		_, _ = io.CopyN(w, endless{}, n)
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	if err == nil {
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	}
}

// endless has no end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for n := 0; n < len(b); {
		n += copy(b[n:], kilobyte)
	}
	return len(b), nil
}

// skipMessage reads one message whose length is announced, 0 if it isn't. A status
// other than 200 is an error.
func skipMessage(in *bufio.Reader) error {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch name, value, _ := bytes.Cut(line, []byte(":")); {
		case first && bytes.HasPrefix(line, []byte("HTTP/")) && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")):
			return fmt.Errorf("answered %q", line)
		case len(bytes.TrimSpace(line)) == 0:
			_, err := in.Discard(length)
			return err
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			return errors.New("a message in chunks")
		}
	}
}

// caller is a client of one proxy on one kept connection, which spends as little as
// it can: it writes what was put together before, and reads the answer's length.
type caller struct {
	c    net.Conn
	in   *bufio.Reader
	head []byte
	tail []byte
	// path makes the request's path.
	path func(n int64) string
	out  []byte
}

// call opens a tunnel through a proxy and shakes hands with target inside.
func call(y *way, target string) (*caller, error) {
	host := strings.TrimPrefix(target, "https://")
	c, err := y.connect(host)
	if err != nil {
		return nil, err
	}
	secure, err := y.secure(c, host, "http/1.1")
	if err != nil {
		return nil, err
	}
	k := &caller{c: secure, in: bufio.NewReaderSize(secure, max(y.buffer, 4<<10)), path: y.path}
	fields := " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
	k.head = []byte(y.method + " ")
	k.tail = []byte(fields + "\r\n")
	if y.method == "POST" {
		k.tail = append([]byte(fields+"Content-Type: application/json\r\nContent-Length: 1024\r\n\r\n"), jsonKilobyte...)
	}
	return k, nil
}

// connect opens a tunnel to a host and port, or, without a proxy, a connection.
func (y *way) connect(host string) (net.Conn, error) {
	if y.proxy == nil {
		return (&net.Dialer{}).DialContext(context.Background(), "tcp", host)
	}
	c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", y.proxy.Host)
	if err != nil {
		return nil, err
	}
	if _, err = io.WriteString(c, y.opening(host)); err == nil {
		err = skipMessage(bufio.NewReader(c))
	}
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("CONNECT: %w", err)
	}
	return c, nil
}

// opening is the request for a tunnel.
func (y *way) opening(host string) string {
	text := "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n"
	if y.credentials != "" {
		text += "Proxy-Authorization: Basic " + y.credentials + "\r\n"
	}
	return text + "\r\n"
}

// secure shakes hands inside a tunnel. It closes the tunnel if that fails.
func (y *way) secure(c net.Conn, host string, protocols ...string) (*tls.Conn, error) {
	name, _, _ := net.SplitHostPort(host)
	session := tls.Client(c, &tls.Config{RootCAs: y.roots, ServerName: name, MinVersion: tls.VersionTLS12, NextProtos: protocols})
	if err := session.HandshakeContext(context.Background()); err != nil {
		_ = c.Close()
		return nil, err
	}
	return session, nil
}

// ask sends one request and reads its answer.
func (k *caller) ask(n *atomic.Int64) error {
	k.out = append(k.out[:0], k.head...)
	k.out = append(k.out, k.path(n.Add(1))...)
	k.out = append(k.out, k.tail...)
	if _, err := k.c.Write(k.out); err != nil {
		return err
	}
	return skipMessage(k.in)
}

// jsonKilobyte is a body of a kilobyte as scripts send them.
var jsonKilobyte = []byte(`{"pad":"` + strings.Repeat("x", 1024-10) + `"}`)

// transport sends by one protocol alone.
func (y *way) transport(h2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!h2)
	protocols.SetHTTP2(h2)
	return &http.Transport{
		Proxy: http.ProxyURL(y.proxy), DisableCompression: true, Protocols: protocols,
		TLSClientConfig: &tls.Config{RootCAs: y.roots, MinVersion: tls.VersionTLS12},
	}
}

// clientOf is a client of one protocol alone.
func (y *way) clientOf(tb testing.TB, h2 bool) *http.Client {
	tb.Helper()
	t := y.transport(h2)
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// get reads an answer whole.
func get(c *http.Client, target string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// getKilobyte wants the answer of a kilobyte.
func getKilobyte(c *http.Client, target string) error {
	status, body, err := get(c, target)
	if err == nil && (status != http.StatusOK || len(body) != len(kilobyte)) {
		err = errors.New("not the kilobyte")
	}
	if err != nil {
		return fmt.Errorf("status %d, %d bytes, %.500q: %w", status, len(body), body, err)
	}
	return nil
}

// reset ends a connection in the way of a process that is killed.
func reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
