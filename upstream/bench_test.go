package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
)

// echoing answers a request of 1 KiB as cheaply as an upstream can, so that the
// client's side is what is measured.
func echoing(p *peer) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n" + strings.Repeat("a", 1024))
	br := bufio.NewReaderSize(p.Conn, 16<<10)
	for {
		n := 0
		for {
			line, err := br.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if bytes.HasPrefix(line, []byte("Content-Length: 1024")) {
				n = 1024
			}
		}
		if _, err := br.Discard(n); err != nil {
			return
		}
		if _, err := p.Write(answer); err != nil {
			return
		}
	}
}

func benchHeader() http.Header {
	return http.Header{
		"Accept": {"*/*"}, "Content-Type": {"application/json"}, "User-Agent": {"bench/1"}, "Idempotency-Key": {"0123456789abcdef"},
	}
}

func drain(b *testing.B, r io.Reader) {
	b.Helper()
	if n, err := io.Copy(io.Discard, r); n != 1024 || err != nil {
		b.Errorf("%d bytes, %v", n, err)
	}
}

// BenchmarkSend is one dispatch over a pooled TLS connection.
func BenchmarkSend(b *testing.B) {
	u := serve(b, serverTLS("http/1.1"), echoing)
	s := sender(b, Config{})
	content := Bytes(strings.Repeat("x", 1024))
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := &Request{Method: http.MethodPost, URL: u.url("https", "/m"), Header: benchHeader(), Body: content}
			a := s.Send(context.Background(), r)
			drain(b, a.Body)
			a.Close()
		}
	})
}

// BenchmarkBareTransport is the same request over net/http's transport.
func BenchmarkBareTransport(b *testing.B) {
	benchRoundTripper(b, &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots()}, MaxIdleConnsPerHost: 256, DisableCompression: true, ForceAttemptHTTP2: true,
	})
}

// BenchmarkPassthrough is the same request over Passthrough.
func BenchmarkPassthrough(b *testing.B) {
	benchRoundTripper(b, NewPassthrough(Config{Roots: roots()}))
}

func benchRoundTripper(b *testing.B, rt http.RoundTripper) {
	b.Helper()
	u := serve(b, serverTLS("http/1.1"), echoing)
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r := &http.Request{
				Method: http.MethodPost, URL: u.url("https", "/m"), Header: benchHeader(), ContentLength: 1024,
				Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1024))),
			}
			resp, err := rt.RoundTrip(r)
			if err != nil {
				b.Error(err)
				return
			}
			drain(b, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

// BenchmarkJudge is one verdict.
func BenchmarkJudge(b *testing.B) {
	ev := Evidence{BytesWritten: 1, Head: true, Status: 503, BodyComplete: true}
	for b.Loop() {
		Judge(ev, Facts{Method: "POST"}, verdict.Opinion{})
	}
}
