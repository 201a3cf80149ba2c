package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestVerifyNamesTheFirstValueThatIsWrong(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	const n, whole = 1024, 266
	var keys []ledger.Key
	put := func(from, to int, one func(t *tx, i int) error) {
		t.Helper()
		for ; from < to; from += 128 {
			err := s.do(t.Context(), func(t *tx) error {
				for i := from; i < min(from+128, to); i++ {
					if err := one(t, i); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0, n, func(t *tx, i int) error {
		m := ledgertest.SampleMutation(fmt.Sprint("record ", i), ledger.Applied, i)
		keys = append(keys, m.Key)
		return t.PutMutation(m)
	})
	slices.SortFunc(keys, func(a, b ledger.Key) int { return bytes.Compare(a[:], b[:]) })
	put(whole, n, func(t *tx, i int) error {
		m := ledgertest.SampleMutation("wrong", "of another program", i)
		return t.layer.putValue(mutationKey(keys[i]), storedMutation{Record: m})
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	{
		_, err := Verify(context.Background(), c, nil)
		if want := keyName(mutationKey(keys[whole])) + ": its state is unknown"; !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
}
