package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2session opens HTTP/2 inside a tunnel, for frames as a test writes them.
func (r *run) h2session() *http2.Framer {
	r.t.Helper()
	target := strings.TrimPrefix(r.upstream.URL, "https://")
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, base64.StdEncoding.EncodeToString([]byte("run:"+r.token)))
	if resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("CONNECT: %v, %v", resp, err)
	}
	session := tls.Client(c, &tls.Config{RootCAs: r.roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	return r.h2over(session)
}

// h2over begins HTTP/2 on a connection.
func (r *run) h2over(c io.ReadWriter) *http2.Framer {
	r.t.Helper()
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		r.t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := framer.WriteSettings(); err != nil {
		r.t.Fatal(err)
	}
	return framer
}

// block is a header block of these fields as they are.
func block(fields [][2]string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	encoder.SetMaxDynamicTableSize(0) // A block may stand alone.
	for _, f := range fields {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return block.Bytes()
}

// rawH2 asks once over HTTP/2 inside a tunnel, with these fields as they are, and
// returns the status of the answer.
func (r *run) rawH2(fields [][2]string) string {
	r.t.Helper()
	framer := r.h2session()
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(fields), EndHeaders: true, EndStream: true}); err != nil {
		r.t.Fatal(err)
	}
	return outcomeOf(r.t, framer)
}

// outcomeOf is the status of the next answer, or how the stream or the connection was ended.
func outcomeOf(tb testing.TB, framer *http2.Framer) string {
	tb.Helper()
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			tb.Fatal(err)
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

// Of a mutation whose stream is reset in the middle of its content nothing is claimed or
// sent, and of what is streamed no upstream sees an end. Other streams go on.
func TestHalfAContentAndAResetOverHTTP2(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/pay", "/telemetry"} {
		for name, more := range map[string][][2]string{"of known length": {{"content-length", "20"}}, "of unknown length": nil} {
			t.Run(path+" "+name, func(t *testing.T) {
				t.Parallel()
				whole := make(chan string, 9)
				w := newWorld(t, func(_ http.ResponseWriter, r *http.Request) {
					if text, err := io.ReadAll(r.Body); err == nil {
						whole <- r.URL.Path + " " + string(text)
					}
				})
				r := w.open("a")
				framer := r.h2session()
				fields := [][2]string{
					{":method", "POST"}, {":scheme", "https"}, {":authority", strings.TrimPrefix(w.upstream.URL, "https://")}, {":path", path},
					{"content-type", "application/json"},
				}
				if err := errors.Join(
					framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(append(fields, more...)), EndHeaders: true}),
					framer.WriteData(1, false, []byte(`{"to":"x"}`)), // It would be whole without its end.
				); err != nil {
					t.Fatal(err)
				}
				w.waitForStreams(func(n int) bool { return n > 0 })
				if err := framer.WriteRSTStream(1, http2.ErrCodeCancel); err != nil {
					t.Fatal(err)
				}
				w.waitForStreams(func(n int) bool { return n == 0 })
				fields[0][1], fields[3][1] = "GET", "/read"
				if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(fields), EndHeaders: true, EndStream: true}); err != nil {
					t.Fatal(err)
				}
				if got := outcomeOf(t, framer); got != "200" {
					t.Errorf("the next stream: %s", got)
				}
				w.wantSends("/pay", 0)
				w.noRecords("a")
				if got := <-whole; got != "/read " || len(whole) > 0 {
					t.Errorf("an upstream took %q for whole, and %d more", got, len(whole))
				}
			})
		}
	}
}

// waitForStreams returns once so many are open.
func (w *world) waitForStreams(enough func(int) bool) {
	w.t.Helper()
	count := w.proxy.open.count
	for deadline := time.Now().Add(waitLimit); !enough(count()); runtime.Gosched() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%d streams are open", count())
		}
	}
}

// What HTTP/1 may not have behind its content, HTTP/2 may not either: fields that only the
// proxy reads would leave it there, and some servers join the others with the head.
func TestTrailersThatAreRefusedOverHTTP2(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	w := newOver(t, false, testRules, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r.Trailer.Get("Sum")
	})
	r := w.open("a")
	client := w.newClient(r.user(), true)
	for _, name := range []string{"Sum", "Keep-Subkey", "Keep-Item", "Cookie", "Upgrade"} {
		req, err := http.NewRequest(http.MethodPost, w.upstream.URL+"/telemetry", struct{ io.Reader }{strings.NewReader("one")})
		if err != nil {
			t.Fatal(err)
		}
		req.Trailer = http.Header{name: {"3"}}
		// The connection on which one was refused may be ending.
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("one")), nil }
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = resp.Body.Close()
		want := http.StatusBadRequest
		if name == "Sum" {
			want = http.StatusOK
		}
		if resp.StatusCode != want || resp.ProtoMajor != 2 {
			t.Errorf("%s: answered %s over %s", name, resp.Status, resp.Proto)
		}
	}
	w.wantSends("/telemetry", 1)
	if got := <-seen; got != "3" {
		t.Errorf("the trailer that may be there is %q", got)
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
