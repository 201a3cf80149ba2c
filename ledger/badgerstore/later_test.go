package badgerstore

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// withField adds a field that no program before the one that wrote it knows.
func withField(t *testing.T, content []byte) []byte {
	t.Helper()
	var fields map[any]cbor.RawMessage
	if err := decoder.Unmarshal(content, &fields); err != nil {
		t.Fatal(err)
	}
	fields[uint64(999)] = cbor.RawMessage{0xf5}
	return encoded(t, fields)
}

func encoded(tb testing.TB, v any) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := encode(&b, v); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// A program that is older than what it reads must not call that damage: whoever accepts that as a
// loss goes on without what is sound.
func TestWhatALaterProgramWroteIsNoDamage(t *testing.T) {
	t.Parallel()
	m, run, item := ledgertest.SampleMutation("a", ledger.Indeterminate, 0), ledgertest.SampleRun("run-1", 0), ledgertest.SampleItem("order-1", 0)
	for name, value := range map[string]func(t *testing.T) (k, content []byte){
		"a mutation": func(t *testing.T) ([]byte, []byte) {
			t.Helper()
			var parts []cbor.RawMessage
			if err := decoder.Unmarshal(encoded(t, &storedMutation{Record: m}), &parts); err != nil {
				t.Fatal(err)
			}
			parts[0] = withField(t, parts[0])
			return mutationKey(m.Key), encoded(t, parts)
		},
		"a run": func(t *testing.T) ([]byte, []byte) { t.Helper(); return runKey(run.ID), withField(t, encoded(t, run)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t.TempDir())
			c.ID = "test"
			mustInit(t, c)
			s := mustOpenOnly(t, c)
			k, content := value(t)
			err := s.Update(t.Context(), func(tx ledger.Tx) error {
				return errors.Join(tx.PutMutation(m.Clone()), tx.PutRun(run.Clone()), tx.PutItem(item.Clone()))
			})
			err = errors.Join(err, s.do(t.Context(), func(tx *tx) error {
				tx.layer.set(k, seal(k, content, 0), nil)
				return nil
			}), s.Close())
			if err != nil {
				t.Fatal(err)
			}
			opened, err := Open(t.Context(), c)
			if err == nil {
				opened.Close()
			}
			if !errors.Is(err, ledger.ErrFormat) || errors.Is(err, ledger.ErrDamaged) {
				t.Errorf("opened: %v, want ErrFormat", err)
			}
			if _, err := Verify(t.Context(), c, nil); !errors.Is(err, ledger.ErrFormat) {
				t.Errorf("verified: %v, want ErrFormat", err)
			}
			if loss, err := AcceptLoss(t.Context(), c, "because", "ada"); !errors.Is(err, ledger.ErrFormat) {
				t.Errorf("accepted as a loss: %+v, %v", loss, err)
			}
		})
	}
}
