package isolate

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"keep-proxy/internal/hello"
)

// heard is what a client said first.
type heard struct {
	// said is all that was read.
	said []byte
	// host is the TLS server name, else the Host field; empty without either.
	host string
	tls  bool
}

// maxHead bounds what is read for a Host field.
const maxHead = 64 << 10

// hear reads what a client says first, as far as it takes to know the host, until ctx ends. It decides where the tunnel
// leads, and no more: the proxy reads the same bytes again, by the letter.
func hear(ctx context.Context, c net.Conn) heard {
	defer context.AfterFunc(ctx, func() { reset(c) })()
	first := &hello.Hello{Conn: c}
	name, err := first.ServerName(ctx)
	h := heard{said: first.Said, host: name, tls: first.IsTLS()}
	if err != nil || h.tls {
		h.host = hostOnly(h.host)
		return h
	}
	for buffer := make([]byte, 4096); !bytes.Contains(h.said, []byte("\r\n\r\n")) && len(h.said) < maxHead; {
		n, err := c.Read(buffer)
		h.said = append(h.said, buffer[:n]...)
		if err != nil {
			break
		}
	}
	if r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(h.said))); err == nil {
		h.host = hostOnly(r.Host)
	}
	return h
}

// hostOnly is an authority without its port. It is empty if it names no host: that can't stand in a request's head.
func hostOnly(authority string) string {
	host, _, err := net.SplitHostPort(authority)
	if err != nil {
		host = strings.Trim(authority, "[]")
	}
	_, named := hostName(host)
	if _, err := netip.ParseAddr(host); err != nil && !named {
		return ""
	}
	return host
}
