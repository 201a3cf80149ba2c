package badgerstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// keepAndName keeps one of a few contents, by a spool or at once, and names it.
func keepAndName(t *testing.T, s *Store, rnd *rand.Rand, name string) (ledger.Body, error) {
	t.Helper()
	n := rnd.IntN(3)
	content := []byte(strings.Repeat(fmt.Sprint(n), 20<<10))
	if rnd.IntN(2) == 0 {
		content = long(fmt.Sprint(n))
	}
	b := ledgertest.SampleBody(content)
	m := ledgertest.SampleMutation(name, ledger.Applied, 0)
	m.Result = &ledger.Result{Status: 200, Body: b}
	put := func() error { return s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }) }
	if rnd.IntN(2) == 0 {
		if _, err := s.WriteBody(t.Context(), bytes.NewReader(content)); err != nil {
			return b, err
		}
		return b, put()
	}
	f, err := s.Spool()
	if err != nil {
		return b, err
	}
	if _, err := f.Write(content); err != nil {
		return b, err
	}
	if _, err := f.Keep(t.Context()); err != nil {
		return b, err
	}
	if rnd.IntN(40) == 0 {
		return ledger.Body{}, f.Close() // Given up.
	}
	return b, errors.Join(put(), f.Close())
}

// TestSweepBesideWriters has the same few contents written, named and dropped while sweeps
// go on: what a record names is always there.
func TestSweepBesideWriters(t *testing.T) {
	t.Parallel()
	s := mustOpenOnly(t, testConfig(t.TempDir()))
	const steps = 60
	var mu sync.Mutex
	left := map[string]ledger.Body{}
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for i := range steps {
				name := fmt.Sprint(w, "-", i)
				b, err := keepAndName(t, s, rnd, name)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				if b.SHA256 == "" {
					continue
				}
				if _, err := readAll(t, s, b); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if i < steps-2 {
					letGo(t, s, name)
					continue
				}
				mu.Lock()
				left[name] = b
				mu.Unlock()
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	removed := 0
	for going := true; going; {
		select {
		case <-ended:
			going = false
		default:
		}
		done := mustSweep(t, s)
		removed += done.Bodies
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, s.config)
	for name, b := range left {
		if _, err := readAll(t, again, b); err != nil {
			t.Errorf("%s after a restart: %v", name, err)
		}
	}
	t.Logf("%d contents removed, %d left", removed, len(left))
}
