package hostile

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"keep-proxy/internal/fakes/testca"
)

// A flood is what one client sends over HTTP/2 to cost more than it pays. most is how
// many times its part is sent, unless the proxy ends the connection before.
type flood struct {
	most int
	// deaf says that the client reads nothing of what it is sent.
	deaf bool
	part func(*h2client) error
	// ends says that the proxy must end the connection. What it may bear costs it no
	// more than reading what the client writes.
	ends bool
	// arrive is how many of its requests may reach the upstream whole, and connect how many
	// connections to the upstream it may cost: of most kinds none.
	arrive, connect int
}

// mostAtOnce is how many requests of one connection may be under way at once: as many as
// net/http serves.
const mostAtOnce = 250

// plainHead is a read's.
func plainHead(authority string) []string {
	return []string{":method=GET", ":scheme=https", ":authority=" + authority, ":path=/look"}
}

// TestFloods has one client flood its connection. It costs the attacker: its connection
// ends, or what it sends is borne without reaching the upstream, and another client is
// answered all the while.
func TestFloods(t *testing.T) {
	t.Parallel()
	ca, err := testca.New()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "upstreams.pem")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	const many = 2_000_000
	times := 1 // Ten times as many in make proof.
	if os.Getenv("KEEP_PROOF") != "" {
		times = 10
	}
	bomb := append(plainHead(""), strings.Split(strings.Repeat("x-a="+strings.Repeat("a", 4000)+"|", 20_000), "|")[:20_000]...)
	for name, f := range map[string]flood{
		"rapid reset": {most: times * 2000, arrive: times * 2000, connect: times * 2000, part: func(h *h2client) error {
			h.head(plainHead(h.authority), true)
			err := h.framer.WriteRSTStream(h.stream, http2.ErrCodeCancel)
			h.stream += 2
			return err
		}},
		"streams without an end": {most: times * 400, connect: mostAtOnce, part: func(h *h2client) error {
			h.head(plainHead(h.authority), false)
			h.stream += 2
			return nil
		}},
		"settings": {most: times * 20_000, deaf: true, part: func(h *h2client) error {
			return h.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		}},
		"pings": {most: many, deaf: true, ends: true, part: func(h *h2client) error { return h.framer.WritePing(false, [8]byte{}) }},
		"resets of nothing": {most: many, ends: true, part: func(h *h2client) error {
			return h.framer.WriteRSTStream(h.stream+1000, http2.ErrCodeCancel)
		}},
		"CONTINUATION without an end": {most: many, ends: true, part: func(h *h2client) error {
			if h.stream == 1 {
				h.stream = 3
				return h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: h.fields(plainHead(h.authority)), EndStream: true})
			}
			return h.framer.WriteContinuation(3, false, h.fields([]string{"x-a=" + strings.Repeat("b", 1000)}))
		}},
		"empty CONTINUATION without an end": {most: times * 20_000, part: func(h *h2client) error {
			if h.stream == 1 {
				h.stream = 3
				return h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: h.fields(plainHead(h.authority)), EndStream: true})
			}
			return h.framer.WriteContinuation(3, false, nil)
		}},
		"header bombs": {most: times * 10, part: func(h *h2client) error {
			bomb[2] = ":authority=" + h.authority
			h.head(bomb, true)
			h.stream += 2
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			upstream := newTLSRecorder(t, ca)
			w := newWorld(t, file, upstream.authority())
			bystander := w.tunnelH2(t, upstream.authority())
			defer func() { _ = bystander.Close() }()
			h := w.tunnelH2(t, upstream.authority())
			h.authority = upstream.authority()
			defer func() { _ = h.Close() }()
			over := make(chan error, 1)
			if !f.deaf {
				go func() { over <- h.drain() }()
			}
			sent, asked := 0, 0
			ended := false
			for ; !ended && sent < f.most; sent++ {
				select {
				case err := <-over:
					ended = !errors.Is(err, os.ErrDeadlineExceeded)
				default:
					err := f.part(h)
					if ended = err != nil; errors.Is(err, os.ErrDeadlineExceeded) {
						t.Fatalf("after %d the connection is neither read nor ended", sent)
					}
				}
				if sent%1000 == 0 {
					_ = h.SetDeadline(time.Now().Add(patience))
					if asked++; bystander.ask(upstream.authority()) != http.StatusOK {
						t.Fatalf("after %d another client gets no answer", sent)
					}
				}
			}
			if f.ends && !ended {
				t.Errorf("%d of them were taken, and the connection is there", sent)
			}
			if asked++; bystander.ask(upstream.authority()) != http.StatusOK {
				t.Error("another client gets no answer")
			}
			if arrived := len(upstream.take()) - asked; arrived > f.arrive {
				t.Errorf("%d requests of %d arrived, and %d may", arrived, sent, f.arrive)
			}
			// The other client's may be a new one each time.
			if made := upstream.connections() - asked; made > f.connect {
				t.Errorf("%d connections for %d of them, and it may cost %d", made, sent, f.connect)
			}
		})
	}
}
