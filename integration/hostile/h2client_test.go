package hostile

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// reset stands for a stream or a connection that was ended, where a status would be.
const reset = -1

// h2client writes frames as it is told.
type h2client struct {
	*client
	framer *http2.Framer
	encode *hpack.Encoder
	block  bytes.Buffer
	stream uint32
	dead   bool
	// authority is for those who make up their own requests.
	authority string
}

// tunnelH2 opens a tunnel with TLS and HTTP/2 inside.
func (w *world) tunnelH2(t *testing.T, authority string) *h2client {
	t.Helper()
	pem, err := os.ReadFile(w.app.CAFile())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	c := w.tunnel(t, authority)
	session := tls.Client(c.Conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12})
	if err := session.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Conn = session
	h := &h2client{client: c, framer: http2.NewFramer(session, session), stream: 1}
	h.encode = hpack.NewEncoder(&h.block)
	h.framer.AllowIllegalWrites = true
	h.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_, _ = session.Write([]byte(http2.ClientPreface))
	_ = h.framer.WriteSettings()
	_ = h.framer.WriteWindowUpdate(0, 1<<30-1)
	return h
}

// fields is a header block.
func (h *h2client) fields(all []string) []byte {
	h.block.Reset()
	for _, f := range all {
		// The first "=" behind the name's first byte parts name and value.
		i := strings.IndexByte(f, '=')
		_ = h.encode.WriteField(hpack.HeaderField{Name: f[:i], Value: f[i+1:]})
	}
	return bytes.Clone(h.block.Bytes())
}

// head writes a header block in as many frames as it takes.
func (h *h2client) head(all []string, end bool) {
	const most = 16 << 10
	block := h.fields(all)
	first := block[:min(most, len(block))]
	block = block[len(first):]
	_ = h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: h.stream, BlockFragment: first, EndStream: end, EndHeaders: len(block) == 0})
	for len(block) > 0 {
		next := block[:min(most, len(block))]
		block = block[len(next):]
		_ = h.framer.WriteContinuation(h.stream, len(block) == 0, next)
	}
}

// data writes content as a vector has it.
func (h *h2client) data(text, body string, end bool) {
	switch {
	case text == "{SPLIT}":
		for i := range len(body) {
			_ = h.framer.WriteData(h.stream, end && i == len(body)-1, []byte{body[i]})
		}
	case strings.HasPrefix(text, "{PAD}"):
		_ = h.framer.WriteDataPadded(h.stream, end, []byte(body), make([]byte, 100))
	case strings.HasSuffix(text, "{EMPTY}"):
		_ = h.framer.WriteData(h.stream, false, []byte(body))
		_ = h.framer.WriteData(h.stream, end, nil)
	default:
		_ = h.framer.WriteData(h.stream, end, []byte(body))
	}
}

// outcome reads until the stream has a final status, or is reset.
func (h *h2client) outcome() int {
	for {
		frame, err := h.framer.ReadFrame()
		if err != nil {
			h.dead = true
			return reset
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = h.framer.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			h.dead = true
			if f.LastStreamID < h.stream || f.ErrCode != http2.ErrCodeNo {
				return reset
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == h.stream {
				return reset
			}
		case *http2.MetaHeadersFrame:
			if f.StreamID != h.stream {
				continue
			}
			if status, err := strconv.Atoi(f.PseudoValue("status")); err == nil && status >= 200 {
				return status
			}
		}
	}
}

// ask reads once.
func (h *h2client) ask(authority string) int {
	_ = h.SetDeadline(time.Now().Add(patience))
	h.head(plainHead(authority), true)
	status := h.outcome()
	h.stream += 2
	return status
}

// drain reads until the connection ends, and says how.
func (h *h2client) drain() error {
	for {
		if _, err := h.framer.ReadFrame(); err != nil {
			return err
		}
	}
}
