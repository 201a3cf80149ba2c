package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/rs/zerolog"

	"keep-proxy/internal/verdict"
)

// grpcRules declare the methods of a gRPC service that only read.
const grpcRules = `apiVersion: keep/v1
connector: api
version: 1
hosts: ["HOST"]
reads: safe-methods
operations:
  - name: watch
    match: {method: POST, path: /keep.Things/Watch}
    effect: read
  - name: none
    match: {method: POST, path: /keep.Things/None}
    effect: read
`

// message frames one as gRPC does: not compressed, its length, its bytes.
func message(text string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...)
}

// echoing is a gRPC server that answers each message at once, for as long as they come, and
// refuses everything at None. It keeps what it saw of requests' fields.
func echoing(seen chan<- http.Header) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		rw.Header().Set("Content-Type", "application/grpc")
		if r.URL.Path == "/keep.Things/None" { // gRPC calls it Trailers-Only: one head, and the end of the stream.
			rw.Header().Set("Grpc-Status", "5")
			return
		}
		rw.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		rw.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(rw).Flush()
		for prefix := make([]byte, 5); ; {
			if _, err := io.ReadFull(r.Body, prefix); err != nil {
				break
			}
			text := make([]byte, binary.BigEndian.Uint32(prefix[1:]))
			if _, err := io.ReadFull(r.Body, text); err != nil {
				break
			}
			_, _ = rw.Write(message("re: " + string(text)))
			_ = http.NewResponseController(rw).Flush()
		}
		rw.Header().Set("Grpc-Status", "0")
		rw.Header().Set("Grpc-Message", "done")
	}
}

// newGRPC is a world whose upstream speaks HTTP/2.
func newGRPC(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	return newOver(t, true, grpcRules, handler)
}

// newOver is a world whose upstream speaks HTTP/2, or not.
func newOver(t *testing.T, h2 bool, file string, handler http.HandlerFunc) *world {
	t.Helper()
	w := newWorld(t, handler)
	w.upstream.Close()
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.sends.add(r.URL.Path)
		handler(rw, r)
	}))
	up.EnableHTTP2 = h2
	up.Config.ErrorLog = quietLog(zerolog.Nop())
	up.StartTLS()
	t.Cleanup(up.Close)
	w.upstream, w.authority = up, strings.TrimPrefix(up.URL, "https://")
	w.use(file)
	return w
}

// call begins a call, as a client of gRPC does.
func (w *world) call(t *testing.T, framer *http2.Framer, stream uint32, path string) {
	t.Helper()
	fields := [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", path}, {":authority", w.authority},
		{"te", "trailers"}, {"content-type", "application/grpc"}, {"user-agent", "grpc-test/1"}, {"grpc-timeout", "1M"},
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(fields), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
}

// next is the next head or content of a stream.
func next(t *testing.T, framer *http2.Framer) (head *http2.MetaHeadersFrame, content []byte, end bool) {
	t.Helper()
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			return f, nil, f.StreamEnded()
		case *http2.DataFrame:
			if len(f.Data()) > 0 || f.StreamEnded() {
				return nil, bytes.Clone(f.Data()), f.StreamEnded()
			}
		case *http2.RSTStreamFrame:
			t.Fatalf("the stream was reset: %s", f.ErrCode)
		}
	}
}

func field(f *http2.MetaHeadersFrame, name string) string {
	for _, h := range f.Fields {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// A call of gRPC that a rule calls a read streams both ways: each message passes as soon as
// it is there, while the request goes on, and the status comes in the trailers.
func TestCallsOfGRPCPass(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 4)
	w := newGRPC(t, echoing(seen))
	framer := w.open("a").h2session()
	w.call(t, framer, 1, "/keep.Things/Watch")
	head, _, end := next(t, framer)
	if head == nil || end || head.PseudoValue("status") != "200" || field(head, "content-type") != "application/grpc" {
		t.Fatalf("the head that comes before any message: %+v", head)
	}
	for _, text := range []string{"one", "two", ""} {
		if err := framer.WriteData(1, false, message(text)); err != nil {
			t.Fatal(err)
		}
		want, got := message("re: "+text), []byte(nil)
		for len(got) < len(want) {
			_, content, end := next(t, framer)
			if got = append(got, content...); end {
				t.Fatalf("it ends after %q", got)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the answer to %q is %q", text, got)
		}
	}
	if err := framer.WriteData(1, true, nil); err != nil {
		t.Fatal(err)
	}
	if trailers, content, end := next(t, framer); trailers == nil || !end || field(trailers, "grpc-status") != "0" || field(trailers, "grpc-message") != "done" {
		t.Errorf("in the end came %+v %q", trailers, content)
	}
	sent := <-seen
	for name, want := range map[string]string{"Te": "trailers", "Content-Type": "application/grpc", "User-Agent": "grpc-test/1", "Grpc-Timeout": "1M"} {
		if got := sent.Get(name); got != want {
			t.Errorf("the server saw %s %q, want %q", name, got, want)
		}
	}

	w.call(t, framer, 3, "/keep.Things/None")
	if err := framer.WriteData(3, true, message("x")); err != nil {
		t.Fatal(err)
	}
	if only, _, _ := next(t, framer); only == nil || field(only, "grpc-status") != "5" {
		t.Errorf("an answer of trailers alone: %+v", only)
	}
	w.wantSends("/keep.Things/Watch", 1)
	w.wantSends("/keep.Things/None", 1)
}

// A stop cuts a call by a reset: its client never takes it for one that ended.
func TestAStopCutsCallsOfGRPC(t *testing.T) {
	t.Parallel()
	w := newGRPC(t, echoing(make(chan http.Header, 1)))
	r := w.open("a")
	framer := r.h2session()
	w.call(t, framer, 1, "/keep.Things/Watch")
	if head, _, _ := next(t, framer); head == nil {
		t.Fatal("no head")
	}
	if _, err := w.ledger.EndRun(context.Background(), r.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
			t.Fatalf("trailers: %v", f.Fields)
		case *http2.DataFrame:
			if f.StreamEnded() {
				t.Fatal("it ended in good order")
			}
		case *http2.RSTStreamFrame:
			return
		}
	}
}
