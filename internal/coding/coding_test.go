package coding

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// packers write each coding that is known.
var packers = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw deflate": func(w io.Writer) io.WriteCloser {
		z, _ := flate.NewWriter(w, flate.BestSpeed)
		return z
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, _ := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		return z
	},
}

func pack(tb testing.TB, coding string, plain []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := packers[coding](&out)
	if _, err := w.Write(plain); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// named is the coding as a header field names it.
func named(coding string) string { return strings.TrimPrefix(coding, "raw ") }

func TestEachCodingIsUndone(t *testing.T) {
	t.Parallel()
	plain := []byte(strings.Repeat(`{"amount":100}`, 300))
	for coding := range packers {
		packed := pack(t, coding, plain)
		if got, err := Decode(packed, []string{named(coding)}, 1<<20); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: %d bytes, %v", coding, len(got), err)
		}
		r, err := Reader(bytes.NewReader(packed), []string{named(coding)})
		if err != nil {
			t.Fatal(coding, err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s, as it comes: %d bytes, %v", coding, len(got), err)
		}
		if _, err := Decode(packed, []string{named(coding)}, int64(len(plain)-1)); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s beyond its limit: %v", coding, err)
		}
		if _, err := Decode(packed, []string{named(coding)}, int64(len(plain))); err != nil {
			t.Errorf("%s at its limit: %v", coding, err)
		}
	}
}

func TestCodingsOneAroundTheOther(t *testing.T) {
	t.Parallel()
	plain := []byte("plain")
	for outer := range packers {
		for inner := range packers {
			packed := pack(t, outer, pack(t, inner, plain))
			names := Names([]string{named(inner), " " + strings.ToUpper(named(outer)) + ", "})
			if got, err := Decode(packed, names, 1<<20); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s in %s: %q, %v", inner, outer, got, err)
			}
			r, err := Reader(bytes.NewReader(packed), names)
			if err != nil {
				t.Fatal(inner, outer, err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%s in %s, as it comes: %q, %v", inner, outer, got, err)
			}
		}
	}
	many := []string{"gzip", "gzip", "gzip", "gzip"}
	if _, err := Decode(plain, many, 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if _, err := Reader(bytes.NewReader(plain), many); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// Decoders differ on what follows: some go on, some stop.
func TestWhatGoesOnIsRefused(t *testing.T) {
	t.Parallel()
	for coding := range packers {
		packed := pack(t, coding, []byte("plain"))
		for what, more := range map[string][]byte{"another stream": packed, "a byte": {0}, "five bytes": make([]byte, 5)} {
			if got, err := Decode(append(bytes.Clone(packed), more...), []string{named(coding)}, 1<<20); err == nil {
				t.Errorf("%s with %s behind it: %q", coding, what, got)
			}
		}
		for cut := range packed {
			if got, err := Decode(packed[:cut], []string{named(coding)}, 1<<20); err == nil {
				t.Errorf("%s cut at %d of %d: %q", coding, cut, len(packed), got)
			}
		}
	}
	for _, content := range [][]byte{[]byte("plain"), {0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}} {
		if _, err := Decode(content, []string{"zstd"}, 1<<20); err == nil {
			t.Errorf("% x is no frame of zstd", content)
		}
	}
	if _, err := Decode([]byte("plain"), []string{"compress"}, 1); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// A bomb is refused once it is over the limit, in little more memory than that. The test counts what is allocated in
// all, so it doesn't run beside others.
//
//nolint:paralleltest // see above
func TestABombIsRefusedInBoundedMemory(t *testing.T) {
	const limit = 4 << 20
	zeros := make([]byte, 128<<20)
	for coding := range packers {
		bomb := pack(t, coding, zeros)
		if allocated := allocates(func() {
			if _, err := Decode(bomb, []string{named(coding)}, limit); !errors.Is(err, ErrTooLong) {
				t.Errorf("%s: %v", coding, err)
			}
		}); allocated > 12*limit {
			t.Errorf("%s: a bomb of %d bytes took %d MiB", coding, len(bomb), allocated>>20)
		}
		nested := pack(t, coding, bomb)
		if allocated := allocates(func() {
			if _, err := Decode(nested, []string{named(coding), named(coding)}, limit); !errors.Is(err, ErrTooLong) {
				t.Errorf("%s twice: %v", coding, err)
			}
		}); allocated > 16*limit {
			t.Errorf("%s twice: %d MiB", coding, allocated>>20)
		}
	}
	// A frame that asks for a window of 1 GiB (RFC 8878 §3.1.1.1.2), with one block of a byte that is repeated.
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 0x83, 0x00, 0x00, 0x00}
	if allocated := allocates(func() {
		if _, err := Decode(window, []string{"zstd"}, limit); err == nil {
			t.Error("a window of 1 GiB is taken")
		}
	}); allocated > limit {
		t.Errorf("a window of 1 GiB took %d MiB", allocated>>20)
	}
}

// allocates is how many bytes f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// FuzzDecode holds that content in any codings is refused or decoded within its limit, and that reading it as it comes
// gives the same.
func FuzzDecode(f *testing.F) {
	for coding := range packers {
		f.Add(named(coding), pack(f, coding, []byte("plain")))
		f.Add(named(coding)+","+named(coding), pack(f, coding, pack(f, coding, []byte("plain"))))
	}
	f.Add("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 20 << 3, 0xff, 0xff, 0x0f, 0x00})
	f.Fuzz(func(t *testing.T, field string, content []byte) {
		const limit = 1 << 16
		names := Names([]string{field})
		plain, err := Decode(content, names, limit)
		if len(plain) > limit && len(names) > 0 {
			t.Fatalf("%d bytes", len(plain))
		}
		if err != nil {
			return
		}
		r, err := Reader(bytes.NewReader(content), names)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := io.ReadAll(io.LimitReader(r, limit+1)); err != nil && len(again) <= limit || len(names) > 0 && !bytes.Equal(again, plain) {
			t.Fatalf("as it comes: %q, %v; whole: %q", again, err, plain)
		}
	})
}
