package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// rawH2 asks once over HTTP/2 inside a tunnel, with these fields as they are, and
// returns the status of the answer.
func (r *run) rawH2(fields [][2]string) string {
	r.t.Helper()
	target := strings.TrimPrefix(r.upstream.URL, "https://")
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, base64.StdEncoding.EncodeToString([]byte("run:"+r.token)))
	if resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	session := tls.Client(c, &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if _, err := session.Write([]byte(http2.ClientPreface)); err != nil {
		r.t.Fatal(err)
	}
	framer := http2.NewFramer(session, session)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	if err := framer.WriteSettings(); err != nil {
		r.t.Fatal(err)
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true}); err != nil {
		r.t.Fatal(err)
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			r.t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			return f.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return f.ErrCode.String()
		case *http2.GoAwayFrame:
			return f.ErrCode.String()
		}
	}
}

// RFC 9113 §8.3.1: a Host field that differs from :authority is another request to
// whoever reads it.
func TestHostAndAuthorityMustAgreeOverHTTP2(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	authority := strings.TrimPrefix(w.upstream.URL, "https://")
	ask := func(more ...[2]string) [][2]string {
		return append([][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", authority}, {":path", "/read"}}, more...)
	}
	for _, c := range []struct {
		name   string
		fields [][2]string
		status string
		sends  int
	}{
		{"another Host", ask([2]string{"host", "elsewhere.example"}), "421", 0},
		{"a second Host", ask([2]string{"host", authority}, [2]string{"host", "elsewhere.example"}), "421", 0},
		{"the same Host", ask([2]string{"host", authority}), "200", 1},
		{"no Host", ask(), "200", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := w.open(c.name).rawH2(c.fields); got != c.status {
				t.Errorf("answered %s, want %s", got, c.status)
			}
			w.wantSends("/read", c.sends)
		})
	}
}
