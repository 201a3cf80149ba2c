package ledgertest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"keep-proxy/ledger"
)

func content(size int) []byte {
	random := rand.NewChaCha8([32]byte{byte(size)})
	b := make([]byte, size)
	_, _ = random.Read(b)
	return b
}

func readBody(t *testing.T, s ledger.Store, b ledger.Body) ([]byte, error) {
	t.Helper()
	r, err := s.Body(t.Context(), b)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(r)
	return got, errors.Join(err, r.Close())
}

func testBodies(t *testing.T, s Subject) {
	sizes := []int{0, 1, ledger.InlineBody, ledger.InlineBody + 1, 256 << 10, 3<<20 + 7}
	for _, size := range sizes {
		want := content(size)
		b, err := s.Store.WriteBody(t.Context(), bytes.NewReader(want))
		if err != nil {
			t.Fatalf("write %d bytes: %v", size, err)
		}
		if size > 0 && b != SampleBody(want) || b.Size != int64(size) {
			t.Errorf("%d bytes are named %+v", size, b)
		}
		m := SampleMutation(fmt.Sprint(size), ledger.InFlight, size)
		m.Request.Body = b
		put(t, s.Store, m)
		if twice, err := s.Store.WriteBody(t.Context(), bytes.NewReader(want)); err != nil || twice != b {
			t.Errorf("written twice: %+v, %v", twice, err)
		}
	}
	inline := []byte("inline")
	for want, content := range map[ledger.Body][]byte{SampleBody(inline): inline, {}: nil} {
		update(t, s.Store, func(tx ledger.Tx) error {
			b, err := tx.PutBody(content)
			if b != want {
				t.Errorf("%d bytes are named %+v", len(content), b)
			}
			return err
		})
	}
	again := s.Reopen()
	for _, want := range append([][]byte{inline}, content(sizes[1]), content(sizes[2]), content(sizes[3]), content(sizes[4]), content(sizes[5])) {
		got, err := readBody(t, again, SampleBody(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", len(want), len(got), err)
		}
	}
	if got, err := readBody(t, again, ledger.Body{}); err != nil || len(got) != 0 {
		t.Errorf("an empty body: %q, %v", got, err)
	}
}

func testWrongBody(t *testing.T, s Subject) {
	long := content(ledger.InlineBody + 1)
	if err := s.Store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.PutBody(long)
		return err
	}); err == nil {
		t.Error("one that is too long for a transaction is stored")
	}
	broken := errors.New("the client went away")
	if _, err := s.Store.WriteBody(t.Context(), io.MultiReader(bytes.NewReader(long), failing{broken})); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func testDroppedBody(t *testing.T, s Subject) {
	_, err := s.Store.Body(t.Context(), ledger.Body{SHA256: hash("x"), Size: 1, Dropped: true})
	if !errors.Is(err, ledger.ErrBodyDropped) {
		t.Errorf("got %v, want ErrBodyDropped", err)
	}
}

func testSweep(t *testing.T, s Subject) {
	kept, orphan := content(300<<10), content(400<<10)
	for _, c := range [][]byte{kept, orphan} {
		if _, err := s.Store.WriteBody(t.Context(), bytes.NewReader(c)); err != nil {
			t.Fatal(err)
		}
	}
	m := SampleMutation("a", ledger.Applied, 0)
	m.Result = &ledger.Result{Status: 200, Body: SampleBody(kept)}
	put(t, s.Store, m)
	again := s.Reopen()
	if got, err := readBody(t, again, SampleBody(kept)); err != nil || !bytes.Equal(got, kept) {
		t.Errorf("the body that a record names: %d bytes, %v", len(got), err)
	}
	if _, err := readBody(t, again, SampleBody(orphan)); !s.KeepsOrphans && !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("the orphan: %v, want ErrNotFound", err)
	}
}

func testSpool(t *testing.T, s Subject) {
	for _, size := range []int{0, 1, ledger.InlineBody, ledger.InlineBody + 1, 300 << 10} {
		want := content(size)
		f, err := s.Store.Spool()
		if err != nil {
			t.Fatal(err)
		}
		half := size / 2
		_, first := f.Write(want[:half])
		_, second := f.Write(want[half:])
		if err := errors.Join(first, second); err != nil || f.Size() != int64(size) {
			t.Fatalf("%d bytes: size %d, %v", size, f.Size(), err)
		}
		b, err := f.Keep(t.Context())
		if err != nil || b != f.Body() || size > 0 && b != SampleBody(want) {
			t.Errorf("%d bytes are named %+v, %v", size, b, err)
		}
		if again, err := f.Keep(t.Context()); err != nil || again != b {
			t.Errorf("%d bytes, kept twice: %+v, %v", size, again, err)
		}
		got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d from the spool, %v", size, len(got), err)
		}
		m := SampleMutation(fmt.Sprint(size), ledger.InFlight, size)
		m.Request.Body = b
		put(t, s.Store, m)
		if err := f.Close(); err != nil {
			t.Errorf("%d bytes: close: %v", size, err)
		}
	}
	again := s.Reopen()
	got, err := readBody(t, again, SampleBody(content(300<<10)))
	if err != nil || !bytes.Equal(got, content(300<<10)) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

func testConnectors(t *testing.T, s Subject) {
	for _, c := range [][]byte{[]byte("connector: stripe\n"), content(700 << 10)} {
		update(t, s.Store, func(tx ledger.Tx) error { return tx.PutConnector(hash(string(c)), c) })
	}
	again := &ledger.Ledger{Store: s.Reopen()}
	for _, c := range [][]byte{[]byte("connector: stripe\n"), content(700 << 10)} {
		got, err := again.Connector(t.Context(), hash(string(c)))
		if err != nil || !bytes.Equal(got, c) {
			t.Errorf("%d bytes: read %d, %v", len(c), len(got), err)
		}
	}
}
