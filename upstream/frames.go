package upstream

import (
	"encoding/binary"
	"math"
	"sync"

	"golang.org/x/net/http2"
)

// frameWatch reads along the frames of an HTTP/2 upstream and keeps what they declare about
// streams. The errors of an HTTP/2 implementation blur this evidence.
type frameWatch struct {
	mu     sync.Mutex
	head   []byte // of the current frame, with the payload's first 8 bytes
	want   int    // length of head at which the frame can be read
	skip   int    // bytes of the current frame that don't matter
	last   uint32 // lowest last-stream-id of a GOAWAY so far
	heads  uint32 // highest stream that was answered, if only by an interim head
	resets map[uint32]http2.ErrCode
}

// frameHeaderLen is the length of a frame header (RFC 9113 §4.1).
const frameHeaderLen = 9

func newFrameWatch() *frameWatch {
	return &frameWatch{want: frameHeaderLen, last: math.MaxUint32, head: make([]byte, 0, frameHeaderLen+8)}
}

// see takes the next bytes of the connection.
func (w *frameWatch) see(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(p) > 0 {
		if w.skip > 0 {
			n := min(w.skip, len(p))
			w.skip -= n
			p = p[n:]
			continue
		}
		n := min(w.want-len(w.head), len(p))
		w.head = append(w.head, p[:n]...)
		p = p[n:]
		if len(w.head) == w.want {
			w.step()
		}
	}
}

// step looks at a whole frame header, or at one with the start of its payload.
func (w *frameWatch) step() {
	length := int(w.head[0])<<16 | int(w.head[1])<<8 | int(w.head[2])
	kind := http2.FrameType(w.head[3])
	payload := w.head[frameHeaderLen:]
	if kind == http2.FrameHeaders {
		w.heads = max(w.heads, w.stream())
	}
	if len(payload) == 0 {
		if need := payloadOf(kind); need > 0 && length >= need {
			w.want = frameHeaderLen + need
			return
		}
	} else {
		w.keep(kind, payload)
	}
	w.skip = length - len(payload)
	w.head, w.want = w.head[:0], frameHeaderLen
}

// payloadOf is how much of a frame's payload matters.
func payloadOf(kind http2.FrameType) int {
	switch kind {
	case http2.FrameGoAway:
		return 8
	case http2.FrameRSTStream:
		return 4
	default:
		return 0
	}
}

// idMask takes the reserved bit out of a stream's id.
const idMask = 1<<31 - 1

// stream is that of the current frame.
func (w *frameWatch) stream() uint32 { return binary.BigEndian.Uint32(w.head[5:9]) & idMask }

func (w *frameWatch) keep(kind http2.FrameType, payload []byte) {
	first := binary.BigEndian.Uint32(payload)
	if kind == http2.FrameGoAway {
		w.last = min(w.last, first&idMask)
		return
	}
	if w.resets == nil {
		w.resets = map[uint32]http2.ErrCode{}
	}
	// A stream that is closed can't be refused any more.
	if _, closed := w.resets[w.stream()]; !closed {
		w.resets[w.stream()] = http2.ErrCode(first)
	}
}

// refused reports whether the upstream declared that it did not and will not
// process the stream (RFC 9113 §6.8, §8.7). Who has begun to answer it, or reset it for
// another reason, did process it, whatever it says later.
func (w *frameWatch) refused(stream uint32) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stream <= w.heads {
		return false
	}
	if code, reset := w.resets[stream]; reset {
		return code == http2.ErrCodeRefusedStream
	}
	return stream > w.last
}

// reset returns the code with which the upstream reset the stream.
func (w *frameWatch) reset(stream uint32) (http2.ErrCode, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	code, ok := w.resets[stream]
	return code, ok
}

// forget drops what was kept of streams that are over.
func (w *frameWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.resets)
}
