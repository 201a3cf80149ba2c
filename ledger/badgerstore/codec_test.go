package badgerstore

import (
	"errors"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func FuzzDecodeMutation(f *testing.F) {
	m := ledgertest.SampleMutation("a", ledger.NeedsReconcile, 0)
	b, err := encode(storedMutation{Record: m, History: []byte{1, 2}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := decodeMutation([]byte("m"), content)
		if err != nil {
			if !errors.Is(err, ledger.ErrDamaged) && !errors.Is(err, ledger.ErrFormat) {
				t.Errorf("refused, but neither as damage nor as a later program's: %v", err)
			}
			return
		}
		if _, err := encode(storedMutation{Record: e.Mutation, History: e.history}); err != nil {
			t.Errorf("read, but can't be written: %v", err)
		}
	})
}
