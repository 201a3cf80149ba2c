package badgerstore

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

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
	for _, c := range []struct {
		content string
		want    error
	}{{"content", nil}, {"context", ledger.ErrDamaged}} {
		content, want := c.content, c.want
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
	if err := s.Healthy(); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("the store goes on: %v", err)
	}
}

// A value that holds content is damaged as any other is, whoever reads it: what else Badger
// has may be, too.
func TestADamagedValueOfABodyStopsTheStore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// damage is stored in the place of the body's head, whose value is sealed.
		damage func(t *tx, head, sealed []byte) error
		// read says that opening the body finds nothing wrong yet.
		read bool
	}{
		"a checksum that doesn't match": {func(t *tx, head, sealed []byte) error {
			sealed = bytes.Clone(sealed)
			sealed[len(sealed)-1] ^= 1
			t.layer.set(head, sealed, nil)
			return nil
		}, false},
		"no head": {func(t *tx, head, _ []byte) error { return t.layer.put(head, []byte("x")) }, false},
		"other content": {func(t *tx, head, _ []byte) error {
			return t.layer.putValue(head, bodyHead{Size: 7, Inline: []byte("context")})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := mustOpenOnly(t, testConfig(t.TempDir()))
			b, err := s.WriteBody(t.Context(), bytes.NewReader([]byte("content")))
			if err != nil {
				t.Fatal(err)
			}
			sum, err := bodySum(b)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.do(t.Context(), func(tx *tx) error {
				sealed, err := tx.layer.raw(key(kBody, sum))
				return errors.Join(err, tc.damage(tx, key(kBody, sum), sealed))
			}); err != nil {
				t.Fatal(err)
			}
			r, err := s.Body(t.Context(), b)
			if tc.read {
				_, err = io.ReadAll(r)
				_ = r.Close()
			}
			if !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("read: %v", err)
			}
			if err := s.Healthy(); !errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("the store goes on: %v", err)
			}
		})
	}
}
