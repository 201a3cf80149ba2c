package badgerstore

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// A memtable is held against copies of a map, one after each commit, while commands are taken back.
func TestAMemtableShowsEachCommitWhatItSaw(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	m, now := new(memtable), map[string]string{}
	seen := []map[string]string{{}}
	for commit := uint64(1); commit <= 40; commit++ {
		for range r.IntN(8) {
			k := fmt.Appendf(nil, "%c/%d", 'a'+r.IntN(3), r.IntN(9))
			var sealed []byte
			if r.IntN(4) > 0 {
				sealed = fmt.Appendf(nil, "%d at %d", r.Int(), commit)
			}
			m.set(k, sealed, commit, nil)
			if r.IntN(3) == 0 {
				m.unset(k)
				continue
			}
			if now[string(k)] = string(sealed); sealed == nil {
				delete(now, string(k))
			}
		}
		seen = append(seen, maps.Clone(now))
		for at, want := range seen {
			m.holds(t, uint64(at), want)
		}
	}
}

func (m *memtable) holds(t *testing.T, commit uint64, want map[string]string) {
	t.Helper()
	last, n := "", 0
	for _, c := range m.sorted(nil, commit) {
		if c.key <= last {
			t.Fatalf("commit %d: %q comes after %q", commit, c.key, last)
		}
		last = c.key
		if v := m.get([]byte(c.key), commit); v != c.version {
			t.Fatalf("commit %d sees two versions of %q", commit, c.key)
		}
		if c.sealed == nil {
			continue
		}
		if n++; want[c.key] != string(c.sealed) {
			t.Fatalf("commit %d sees %q under %q, want %q", commit, c.sealed, c.key, want[c.key])
		}
	}
	if n != len(want) {
		t.Fatalf("commit %d sees %d keys, want %d", commit, n, len(want))
	}
}
