package integration

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// proxyAddr is where a run's script finds the proxy.
func (s *scriptRun) proxyAddr() string {
	s.w.t.Helper()
	u, err := url.Parse(s.opened.ProxyURL)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return u.Host
}

// credentials is the value of Proxy-Authorization for a user and a token.
func credentials(user, token string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+token))
}

// dialProxy connects to the proxy; the connection ends with the test.
func (s *scriptRun) dialProxy() net.Conn {
	s.w.t.Helper()
	c, err := (&net.Dialer{Timeout: patience}).DialContext(s.w.t.Context(), "tcp", s.proxyAddr())
	if err != nil {
		s.w.t.Fatal(err)
	}
	s.w.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		s.w.t.Fatal(err)
	}
	return c
}

// tunnel opens a TLS tunnel to a host and port, and shows the server name there.
func (s *scriptRun) tunnel(target, serverName string) net.Conn {
	s.w.t.Helper()
	c := s.dialProxy()
	answer := s.exchange(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\nProxy-Authorization: "+credentials("run", s.opened.Token)+"\r\n\r\n")
	if answer.status != http.StatusOK {
		s.w.t.Fatalf("CONNECT %s: %v", target, answer)
	}
	text, err := os.ReadFile(s.opened.Env["SSL_CERT_FILE"])
	if err != nil {
		s.w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	secure := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(s.w.t.Context()); err != nil {
		s.w.t.Fatal(err)
	}
	return secure
}

// exchange writes text and reads one answer, also to one that is refused before all of it is
// written. The body of a 200 to CONNECT is not looked for.
func (s *scriptRun) exchange(c net.Conn, text string) reply {
	s.w.t.Helper()
	_, err := io.WriteString(c, text)
	a := readReply(s, c, strings.HasPrefix(text, "CONNECT "))
	if a.err != nil && err != nil {
		a.err = err
	}
	return a
}

func readReply(s *scriptRun, c net.Conn, connect bool) reply {
	method := http.MethodGet
	if connect {
		method = http.MethodConnect
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return reply{t: s.w.t, err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	a := reply{t: s.w.t, status: resp.StatusCode, header: resp.Header}
	if connect && resp.StatusCode == http.StatusOK {
		return a
	}
	text, err := io.ReadAll(resp.Body)
	a.body, a.err = string(text), err
	return a
}

// raw sends a request through a tunnel just as it is written.
func (s *scriptRun) raw(u *upstream, method, target, body string, fields ...string) reply {
	s.w.t.Helper()
	host, _, err := net.SplitHostPort(u.Addr())
	if err != nil {
		s.w.t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s HTTP/1.1\r\n", method, target)
	if !strings.Contains(strings.Join(fields, "\n"), "Host:") {
		fmt.Fprintf(&text, "Host: %s\r\n", u.Addr())
	}
	for _, f := range fields {
		text.WriteString(f + "\r\n")
	}
	if body != "" && !strings.Contains(strings.Join(fields, "\n"), "Content-Length:") {
		fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body))
	}
	text.WriteString("\r\n" + body)
	return s.exchange(s.tunnel(u.Addr(), host), text.String())
}
