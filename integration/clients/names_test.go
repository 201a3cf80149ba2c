package clients

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/server"
)

// domain is that of the upstreams' names. Nobody on this machine can look them up.
const domain = ".keep.test"

// name is an upstream's name. Its server there has the port of its scheme.
func name(s *server.Server) string { return "at-" + port(s) + domain }

// startNames starts a proxy that knows the names, and returns its address. keep-proxy goes out
// through it.
func startNames(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go lead(t.Context(), c)
		}
	}()
	return l.Addr().String()
}

// lead answers one CONNECT.
func lead(ctx context.Context, c net.Conn) {
	defer func() { _ = c.Close() }()
	from := bufio.NewReader(c)
	r, err := http.ReadRequest(from)
	if err != nil {
		return
	}
	host, _, _ := net.SplitHostPort(r.Host)
	at, known := strings.CutSuffix(strings.TrimPrefix(host, "at-"), domain)
	there, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+at)
	if !known || err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		return
	}
	defer func() { _ = there.Close() }()
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(there, from)
		_ = there.Close()
	}()
	_, _ = io.Copy(c, there)
}
