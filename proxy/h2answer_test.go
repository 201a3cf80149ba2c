package proxy

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// newFramed is a world whose upstream answers each request over HTTP/2 with this head and content.
func newFramed(t *testing.T, head [][2]string, content string) *world {
	t.Helper()
	return newFrames(t, func(framer *http2.Framer, stream uint32) {
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(head), EndHeaders: true})
		_ = framer.WriteData(stream, true, []byte(content))
	})
}

// newFramedHead is newFramed for an answer that ends with its head.
func newFramedHead(t *testing.T, head [][2]string) *world {
	t.Helper()
	return newFrames(t, func(framer *http2.Framer, stream uint32) {
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block(head), EndHeaders: true, EndStream: true})
	})
}

// newFrames is a world whose upstream speaks HTTP/2, and answers each request by answer.
func newFrames(t *testing.T, answer func(framer *http2.Framer, stream uint32)) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.upstream.Close()
	up := httptest.NewUnstartedServer(nil)
	up.TLS = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	up.Config.ErrorLog = quietLog(zerolog.Nop())
	up.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		framer := http2.NewFramer(c, c)
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		_ = framer.WriteSettings()
		for {
			f, err := framer.ReadFrame()
			if err != nil {
				return
			}
			if asked, ok := f.(*http2.MetaHeadersFrame); ok {
				w.sends.add(asked.PseudoValue("path"))
				answer(framer, asked.StreamID)
			}
		}
	}}
	up.StartTLS()
	t.Cleanup(up.Close)
	w.upstream, w.authority = up, strings.TrimPrefix(up.URL, "https://")
	w.use(testRules)
	return w
}

// An upstream over HTTP/2 that lies about the length of its content, or spells its status as no
// number of three digits, has given no answer: its reader gets no part of the content for the
// whole, and a mutation isn't applied by it.
func TestAMalformedHeadOverHTTP2IsNoAnswer(t *testing.T) {
	t.Parallel()
	for name, head := range map[string][][2]string{
		"a signed length":         {{":status", "200"}, {"content-length", "+5"}},
		"lengths that differ":     {{":status", "200"}, {"content-length", "5"}, {"content-length", "11"}},
		"a signed status":         {{":status", "+200"}},
		"a status below 100":      {{":status", "099"}},
		"a status of four digits": {{":status", "1200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFramed(t, head, `{"ok":true}`)
			r := w.open("a")
			if g := r.get("/read"); g.err != nil || g.status != http.StatusBadGateway {
				t.Errorf("a read got %d %q, %v", g.status, g.body, g.err)
			}
			if g := r.post("/pay", `{"to":"x"}`); g.problem() != "unknown-outcome" {
				t.Errorf("a mutation got %d %q, %v", g.status, g.body, g.err)
			}
			if m := w.mutation("a"); m.State != ledger.Indeterminate {
				t.Errorf("it is %s: %s", m.State, m.Current().Reason)
			}
			w.wantSends("/pay", 1)
		})
	}
}
