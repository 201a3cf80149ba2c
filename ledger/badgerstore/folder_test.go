package badgerstore

import (
	"path/filepath"
	"testing"

	"keep-proxy/ledger"
)

// The letters that mean something in patterns may be in the name of any folder.
func TestAFolderOfAnyNameHoldsALedger(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a[b]c", "a[", `a\b`, "a*b?"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(filepath.Join(t.TempDir(), name))
			s := mustOpenOnly(t, c)
			keys := fill(t, s, 0, 3, 10)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := refusesOrKeeps(t, c, keys); err != nil {
				t.Error(err)
			}
			if _, err := Verify(t.Context(), c, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// A ledger beside the one that is opened, whose name a pattern would take for that of the other.
func TestALedgerBesideIsLeftAlone(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	one, other := testConfig(filepath.Join(parent, "keep*")), testConfig(filepath.Join(parent, "keep2"))
	if err := mustOpenOnly(t, one).Close(); err != nil {
		t.Fatal(err)
	}
	// Its tables get numbers that the list of the first one's doesn't have.
	var keys []ledger.Key
	for n := range 3 {
		s := mustOpenOnly(t, other)
		keys = append(keys, fill(t, s, 3*n, 3, 10)...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := mustOpenOnly(t, one).Close(); err != nil {
		t.Fatal(err)
	}
	if err := refusesOrKeeps(t, other, keys); err != nil {
		t.Error(err)
	}
}
