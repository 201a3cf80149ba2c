package upstream

import (
	"bytes"
	"io"
	"testing"

	"golang.org/x/net/http2"
)

// wireOf is what a framer writes.
func wireOf(write func(*http2.Framer)) []byte {
	var b bytes.Buffer
	fr := http2.NewFramer(&b, nil)
	fr.AllowIllegalWrites = true
	write(fr)
	return b.Bytes()
}

func TestFrameWatchKeepsWhatIsDeclaredOfStreams(t *testing.T) {
	t.Parallel()
	noise := func(fr *http2.Framer) {
		_ = fr.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
		_ = fr.WriteData(1, false, bytes.Repeat([]byte{7}, 5000))
		_ = fr.WritePing(false, [8]byte{3})
		_ = fr.WriteData(1, false, nil)
	}
	for name, tc := range map[string]struct {
		write   func(*http2.Framer)
		refused []uint32
		fine    []uint32
		reset   map[uint32]http2.ErrCode
	}{
		"nothing":        {func(*http2.Framer) {}, nil, []uint32{1, 3, 1<<31 - 1}, nil},
		"GOAWAY":         {func(fr *http2.Framer) { _ = fr.WriteGoAway(3, http2.ErrCodeNo, []byte("debug data")) }, []uint32{5, 7}, []uint32{1, 3}, nil},
		"GOAWAY of zero": {func(fr *http2.Framer) { _ = fr.WriteGoAway(0, http2.ErrCodeNo, nil) }, []uint32{1}, nil, nil},
		"GOAWAY twice, the lower holds": {func(fr *http2.Framer) {
			_ = fr.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			_ = fr.WriteGoAway(1, http2.ErrCodeNo, nil)
			_ = fr.WriteGoAway(5, http2.ErrCodeNo, nil)
		}, []uint32{3, 5}, []uint32{1}, nil},
		"REFUSED_STREAM": {func(fr *http2.Framer) { _ = fr.WriteRSTStream(3, http2.ErrCodeRefusedStream) }, []uint32{3}, []uint32{1, 5}, map[uint32]http2.ErrCode{3: http2.ErrCodeRefusedStream}},
		"another reset":  {func(fr *http2.Framer) { _ = fr.WriteRSTStream(3, http2.ErrCodeCancel) }, nil, []uint32{1, 3}, map[uint32]http2.ErrCode{3: http2.ErrCodeCancel}},
		"GOAWAY of a stream that is being answered": {func(fr *http2.Framer) {
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x88}})
			_ = fr.WriteGoAway(1, http2.ErrCodeNo, nil)
		}, []uint32{5}, []uint32{1, 3}, nil},
		"REFUSED_STREAM for one that is being answered": {func(fr *http2.Framer) {
			_ = fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x88}, EndHeaders: true})
			_ = fr.WriteRSTStream(3, http2.ErrCodeRefusedStream)
		}, nil, []uint32{1, 3, 5}, map[uint32]http2.ErrCode{3: http2.ErrCodeRefusedStream}},
		"REFUSED_STREAM behind another reset": {func(fr *http2.Framer) {
			_ = fr.WriteRSTStream(3, http2.ErrCodeInternal)
			_ = fr.WriteRSTStream(3, http2.ErrCodeRefusedStream)
		}, nil, []uint32{1, 3, 5}, map[uint32]http2.ErrCode{3: http2.ErrCodeInternal}},
		"GOAWAY of a stream that was reset for another reason": {func(fr *http2.Framer) {
			_ = fr.WriteRSTStream(3, http2.ErrCodeInternal)
			_ = fr.WriteGoAway(1, http2.ErrCodeNo, nil)
		}, []uint32{5}, []uint32{1, 3}, map[uint32]http2.ErrCode{3: http2.ErrCodeInternal}},
		"too short a reset":  {func(fr *http2.Framer) { _ = fr.WriteRawFrame(http2.FrameRSTStream, 0, 3, []byte{0, 0, 7}) }, nil, []uint32{3}, nil},
		"too short a GOAWAY": {func(fr *http2.Framer) { _ = fr.WriteRawFrame(http2.FrameGoAway, 0, 0, make([]byte, 7)) }, nil, []uint32{1}, nil},
	} {
		wire := wireOf(func(fr *http2.Framer) { noise(fr); tc.write(fr); noise(fr) })
		for _, piece := range []int{1, 2, 8, 9, 10, 17, 4096, len(wire)} {
			w := newFrameWatch()
			_, _ = inPieces{w, piece}.Write(wire)
			for _, id := range tc.refused {
				if !w.refused(id) {
					t.Errorf("%s, in pieces of %d: stream %d is not refused", name, piece, id)
				}
			}
			for _, id := range tc.fine {
				if w.refused(id) {
					t.Errorf("%s, in pieces of %d: stream %d is refused", name, piece, id)
				}
			}
			for _, id := range []uint32{1, 3, 5} {
				want, has := tc.reset[id]
				if code, ok := w.reset(id); ok != has || code != want {
					t.Errorf("%s, in pieces of %d: stream %d reset: %v, %v; want %v, %v", name, piece, id, code, ok, want, has)
				}
			}
			w.forget()
			if _, ok := w.reset(3); ok {
				t.Errorf("%s: a reset was not forgotten", name)
			}
		}
	}
}

// inPieces shows a watch what is written to it, some bytes at a time.
type inPieces struct {
	watch *frameWatch
	piece int
}

func (p inPieces) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(p.piece, len(rest))
		p.watch.see(rest[:n])
		rest = rest[n:]
	}
	return len(b), nil
}

// FuzzFrameWatch holds the watch against a real framer: on frames that both can
// read they must see the same.
func FuzzFrameWatch(f *testing.F) {
	f.Add(wireOf(func(fr *http2.Framer) { _ = fr.WriteGoAway(3, http2.ErrCodeNo, nil) }), 1)
	f.Add(wireOf(func(fr *http2.Framer) { _ = fr.WriteRSTStream(1, http2.ErrCodeRefusedStream) }), 3)
	f.Add(wireOf(func(fr *http2.Framer) { _ = fr.WriteSettings(); _ = fr.WritePing(true, [8]byte{}) }), 9)
	f.Add([]byte{0xff, 0xff, 0xff, 7, 0, 0, 0, 0, 0, 1}, 2)
	f.Add(wireOf(func(fr *http2.Framer) {
		_ = fr.WriteGoAway(3, http2.ErrCodeNo, nil)
		_ = fr.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersPadded, 5, nil)
	}), 4)
	f.Fuzz(func(t *testing.T, wire []byte, piece int) {
		if piece < 1 {
			piece = 1
		}
		// The watch sees what the framer reads, and no more: a later frame may answer a
		// stream that an earlier one refused.
		w := newFrameWatch()
		last, answered := uint32(1<<32-1), uint32(0)
		reset := map[uint32]bool{}
		fr := http2.NewFramer(nil, io.TeeReader(bytes.NewReader(wire), inPieces{w, piece}))
		fr.SetMaxReadFrameSize(1 << 14)
		for {
			frame, err := fr.ReadFrame()
			if err != nil {
				return // from here on only the watch reads
			}
			switch frame := frame.(type) {
			case *http2.GoAwayFrame:
				last = min(last, frame.LastStreamID)
				if last < 1<<31-1 && last >= answered && !reset[last+1] && !w.refused(last+1) {
					t.Errorf("GOAWAY %d, but stream %d is not refused", last, last+1)
				}
			case *http2.HeadersFrame:
				answered = max(answered, frame.StreamID)
			case *http2.RSTStreamFrame:
				reset[frame.StreamID] = true
				if _, ok := w.reset(frame.StreamID); !ok {
					t.Errorf("the reset of stream %d was missed", frame.StreamID)
				}
			}
		}
	})
}
