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

// Who checks faster doesn't matter for what is named.
func TestVerifyNamesTheFirstValueThatIsWrong(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	s := mustOpenOnly(t, c)
	const n, whole = 4 * handfulValues, handfulValues + 10
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
	for range 5 {
		_, err := Verify(context.Background(), c, nil)
		if want := keyName(mutationKey(keys[whole])) + ": its state is unknown"; !errors.Is(err, ledger.ErrDamaged) || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %s", err, want)
		}
	}
}

func TestWhatIsWrongInTheFirstHandfulCounts(t *testing.T) {
	t.Parallel()
	first, other := errors.New("first"), errors.New("other")
	w := round{stop: make(chan struct{})}
	w.fail(5, other)
	w.fail(3, first)
	w.fail(4, other)
	if !errors.Is(w.wrong, first) {
		t.Errorf("got %v", w.wrong)
	}
}

func TestProgressIsToldInOrder(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var told []int
	w := round{verifier: &verifier{ctx: ctx, progress: func(n int) { told = append(told, n) }}}
	for _, n := range []int{progressEvery - 1, 1, progressEvery - 1, progressEvery + 1, 5} {
		if err := w.count(n); err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{progressEvery, 2 * progressEvery, 3 * progressEvery}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	cancel()
	if err := w.count(progressEvery); !errors.Is(err, context.Canceled) || len(told) != 3 {
		t.Errorf("canceled: %v, told %v", err, told)
	}
}

func TestAChainLeads(t *testing.T) {
	t.Parallel()
	h := func(n byte) [32]byte { return [32]byte{n} }
	a := stretch{1, 4, h(0), h(3)}
	b := stretch{4, 5, h(3), h(4)}
	c := stretch{5, 9, h(4), h(8)}
	from, to := tip{Hash: h(0)}, tip{Seq: 8, Hash: h(8)}
	for name, test := range map[string]struct {
		chain    chain
		from, to tip
		leads    bool
		lost     lostEvents
	}{
		"whole":                                   {chain{runs: []stretch{a, b, c}}, from, to, true, nil},
		"in any order":                            {chain{runs: []stretch{c, a, b}}, from, to, true, nil},
		"no events":                               {chain{}, from, from, true, nil},
		"one is missing":                          {chain{runs: []stretch{a, c}}, from, to, false, nil},
		"the first is missing":                    {chain{runs: []stretch{b, c}}, from, to, false, nil},
		"the last is missing":                     {chain{runs: []stretch{a, b}}, from, to, false, nil},
		"one of another history":                  {chain{runs: []stretch{a, {4, 5, h(9), h(4)}, c}}, from, to, false, nil},
		"another beginning":                       {chain{runs: []stretch{a, b, c}}, tip{Hash: h(9)}, to, false, nil},
		"another end":                             {chain{runs: []stretch{a, b, c}}, from, tip{Seq: 8, Hash: h(9)}, false, nil},
		"one too many":                            {chain{runs: []stretch{a, b, c}}, from, tip{Seq: 4, Hash: h(4)}, false, nil},
		"one twice":                               {chain{runs: []stretch{a, b, b, c}}, from, to, false, nil},
		"what is missing was lost":                {chain{runs: []stretch{a, c}}, from, to, true, lostEvents{{4, 5, h(3), h(4)}}},
		"the first were lost":                     {chain{runs: []stretch{c}}, from, to, true, lostEvents{{1, 5, h(0), h(4)}}},
		"the last were lost":                      {chain{runs: []stretch{a}}, from, to, true, lostEvents{{4, 9, h(3), h(8)}}},
		"all were lost":                           {chain{}, from, to, true, lostEvents{{1, 9, h(0), h(8)}}},
		"more is missing than was lost":           {chain{runs: []stretch{c}}, from, to, false, lostEvents{{4, 5, h(3), h(4)}}},
		"something was lost that isn't of it":     {chain{runs: []stretch{a, b, c}}, from, to, false, lostEvents{{12, 13, h(8), h(9)}}},
		"what was lost is there":                  {chain{runs: []stretch{a, b, c}}, from, to, false, lostEvents{{4, 5, h(3), h(4)}}},
		"another than what comes before the lost": {chain{runs: []stretch{{1, 4, h(0), h(9)}, c}}, from, to, false, lostEvents{{4, 5, h(3), h(4)}}},
		"another than what comes after the lost":  {chain{runs: []stretch{a, {5, 9, h(9), h(8)}}}, from, to, false, lostEvents{{4, 5, h(3), h(4)}}},
	} {
		if got := test.chain.leads(test.from, test.to, test.lost); got != test.leads {
			t.Errorf("%s: leads %v, want %v", name, got, test.leads)
		}
	}
}

func TestEventsThatDontFollowBeginAnotherStretch(t *testing.T) {
	t.Parallel()
	events := func(hashes ...byte) (out []chained) {
		for _, h := range hashes {
			out = append(out, chained{hash: [32]byte{h}})
		}
		return out
	}
	var whole, gap, forged chain
	for _, c := range []*chain{&whole, &gap, &forged} {
		c.cut = true
		c.add(1, [32]byte{}, events(1, 2))
	}
	whole.add(3, [32]byte{2}, events(3))
	whole.cut = true // a handful ends
	whole.add(4, [32]byte{3}, events(4))
	if !whole.leads(tip{}, tip{Seq: 4, Hash: [32]byte{4}}, nil) || len(whole.runs) != 2 {
		t.Errorf("whole: %+v", whole)
	}
	gap.add(4, [32]byte{2}, events(3))
	forged.add(3, [32]byte{9}, events(3))
	for name, c := range map[string]chain{"gap": gap, "forged": forged} {
		if len(c.runs) != 2 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
