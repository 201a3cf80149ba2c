package badgerstore

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// What is read without a decoder is what the decoder reads.
func TestInlineBodiesAreReadAsTheyAreDecoded(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 23, 24, 255, 256, 1024, ledger.InlineBody} {
		content := bytes.Repeat([]byte("x"), size)
		head, err := encode(bodyHead{Size: int64(size), Inline: content})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := inlineBody(head)
		if ok != (size > 0) || ok && !bytes.Equal(got, content) {
			t.Errorf("%d bytes: %d, %t", size, len(got), ok)
		}
		for cut := range min(len(head), 16) {
			if _, ok := inlineBody(head[:cut]); ok {
				t.Errorf("%d bytes, cut after %d: taken", size, cut)
			}
		}
		if _, ok := inlineBody(append(head, 0)); ok {
			t.Errorf("%d bytes and one more: taken", size)
		}
	}
	for name, head := range map[string]bodyHead{
		"another size": {Size: 3, Inline: []byte("four")},
		"lost":         {Size: 4, Inline: []byte("four"), Lost: true},
		"chunks":       {Size: 4, Upload: 1, Chunks: 1},
		"a file":       {Size: 4, File: true},
	} {
		b, err := encode(head)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := inlineBody(b); ok {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestAShortBodyOfAnotherDigestIsDamaged(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	mustInit(t, c)
	s := mustOpenOnly(t, c)
	b := ledgertest.SampleBody([]byte("content"))
	sum, err := bodySum(b)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]error{"content": nil, "context": ledger.ErrDamaged} {
		if err := s.do(t.Context(), func(t *tx) error {
			return t.layer.putValue(key(kBody, sum), bodyHead{Size: int64(len(content)), Inline: []byte(content)})
		}); err != nil {
			t.Fatal(err)
		}
		r, err := s.Body(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if _, whole := r.(interface{ Whole() []byte }); whole != (want == nil) {
			t.Errorf("%s: given whole: %t", content, whole)
		}
		got, err := io.ReadAll(r)
		if !errors.Is(err, want) || want == nil && string(got) != content {
			t.Errorf("%s: read %q, %v", content, got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
