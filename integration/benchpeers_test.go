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
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"keep-proxy/internal/fakes/testca"
)

// kilobyteVar is set to anything: this binary is then an upstream that answers
// whatever it is asked with a kilobyte, as cheaply as it can, so that benchmarks
// measure what stands before it.
const kilobyteVar = "KEEP_INTEGRATION_KILOBYTE"

// answerKilobytes is that upstream, until its standard input ends.
func answerKilobytes() int {
	if err := serveKilobytes(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveKilobytes() error {
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
	secure := tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = l.Close()
	}()
	if err := json.NewEncoder(os.Stdout).Encode(announcement{Proxy: "https://" + l.Addr().String(), CAPEM: string(ca.PEM())}); err != nil {
		return err
	}
	for {
		c, err := secure.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() { _ = keepAnswering(c) }()
	}
}

// keepAnswering serves one connection until it breaks.
func keepAnswering(c net.Conn) error {
	defer func() { _ = c.Close() }()
	answer := append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sat, 21 Nov 2026 09:12:29 GMT\r\nContent-Length: 1024\r\n\r\n"), kilobyte...)
	in := bufio.NewReader(c)
	for {
		if err := skipMessage(in); err != nil {
			return err
		}
		if _, err := c.Write(answer); err != nil {
			return err
		}
	}
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
	k := &caller{c: secure, in: bufio.NewReader(secure), path: y.path}
	fields := " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\n"
	k.head = []byte(y.method + " ")
	k.tail = []byte(fields + "\r\n")
	if y.method == "POST" {
		k.tail = append([]byte(fields+"Content-Type: application/json\r\nContent-Length: 1024\r\n\r\n"), jsonKilobyte...)
	}
	return k, nil
}

// connect opens a tunnel to a host and port.
func (y *way) connect(host string) (net.Conn, error) {
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
