package badgerstore

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	badger "github.com/dgraph-io/badger/v4"
)

func TestChangesOfOneHashAreKeptApart(t *testing.T) {
	t.Parallel()
	const hash, other = 1, 2
	c := newChanges()
	for round := range 2 {
		for n := range 20 {
			c.set(hash, entry{fmt.Append(nil, "k", n), fmt.Append(nil, round, n)})
		}
	}
	c.set(other, entry{[]byte("k3 "), []byte("of another hash")})
	c.set(hash, entry{key: []byte("k5")})
	if len(c.list) != 21 {
		t.Fatalf("%d changes, want each key once", len(c.list))
	}
	for n := range 20 {
		e := c.find(hash, fmt.Append(nil, "k", n))
		want := fmt.Append(nil, 1, n)
		if n == 5 {
			want = nil
		}
		if e == nil || !bytes.Equal(e.sealed, want) || (e.sealed == nil) != (want == nil) {
			t.Errorf("k%d: %+v, want %q", n, e, want)
		}
		if string(c.list[n].key) != fmt.Sprint("k", n) {
			t.Errorf("change %d is of %s, not in the order in which they came", n, c.list[n].key)
		}
		if c.find(other, fmt.Append(nil, "k", n)) != nil {
			t.Errorf("k%d was found by another hash", n)
		}
	}
	if c.find(hash, []byte("k20")) != nil || c.find(3, []byte("k1")) != nil {
		t.Error("a key was found that wasn't changed")
	}
	c.clear()
	if len(c.list) != 0 || c.find(hash, []byte("k1")) != nil {
		t.Error("cleared, and something is left")
	}
}

// values reads the keys a to e.
func values(c *changed) (out string) {
	for _, k := range []string{"a", "b", "c", "d", "e"} {
		switch sealed, ok := c.value([]byte(k)); {
		case !ok:
			out += "."
		case sealed == nil:
			out += "-"
		default:
			out += string(sealed)
		}
	}
	return out
}

func addChange(c *changed, k, v string) {
	e := entry{key: []byte(k)}
	if v != "" {
		e.sealed = []byte(v)
	}
	c.add(e)
}

func TestChangedHoldsTwoBatches(t *testing.T) {
	t.Parallel()
	h := newHorizon()
	h.start(4)
	c := newChanged(h, newBacklog())
	c.begin(5)
	addChange(c, "a", "1")
	addChange(c, "b", "1")
	addChange(c, "c", "")
	if got := values(c); got != "11-.." {
		t.Errorf("the open batch: %s", got)
	}
	// A batch that is begun anew wasn't written.
	c.begin(5)
	if got := values(c); got != "....." {
		t.Errorf("begun anew: %s", got)
	}
	addChange(c, "a", "1")
	addChange(c, "b", "1")
	addChange(c, "c", "")
	addChange(c, "d", "1")
	h.wrote(5)
	c.begin(6)
	if c.in([]byte("a")) != 5 || c.in([]byte("c")) != 5 || c.in([]byte("e")) != 0 || !c.any() {
		t.Error("the batch before isn't durable yet")
	}
	addChange(c, "a", "2")
	addChange(c, "b", "")
	addChange(c, "c", "2")
	if got := values(c); got != "2-21." {
		t.Errorf("over the batch before: %s", got)
	}
	if c.in([]byte("a")) != 6 || c.in([]byte("b")) != 6 || c.in([]byte("d")) != 5 {
		t.Error("what both hold is of the open batch")
	}
	c.rest()
	if got := values(c); got != "2-21." {
		t.Errorf("it rested while the engine may lack a batch: %s", got)
	}
	// What is durable is read here still, but it needn't be waited for.
	h.reached(5)
	if got := values(c); got != "2-21." || c.in([]byte("d")) != 0 || c.in([]byte("a")) != 6 {
		t.Errorf("once the batch before is durable: %s", got)
	}
	h.wrote(6)
	c.begin(7)
	if got := values(c); got != "2-2.." {
		t.Errorf("the batch two before: %s", got)
	}
	h.reached(6)
	c.begin(7)
	if c.any() || c.has([]byte("a")) {
		t.Error("all is durable, and no batch has changed anything")
	}
	c.rest()
	if got := values(c); got != "....." {
		t.Errorf("it rested: %s", got)
	}
	var none *changed
	if _, ok := none.value([]byte("a")); ok || none.any() || none.has([]byte("a")) {
		t.Error("none holds something")
	}
	none.overlay(nil, func(entry) { t.Error("none holds something") })
}

// TestKeysOverBothBatches lists keys of the engine, of both batches and of the command, each of
// which removes what another has, or puts it back.
func TestKeysOverBothBatches(t *testing.T) {
	t.Parallel()
	db, err := badger.Open(badger.DefaultOptions("").WithInMemory(true).WithLoggingLevel(badger.ERROR))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h := newHorizon()
	h.start(4)
	c := newChanged(h, newBacklog())
	// Each level holds a key, removes it, or says nothing of it.
	type level func(k []byte, held bool)
	var engine []entry
	l := newLayer(snapshot{})
	l.earlier = c
	fill := []level{
		func(k []byte, held bool) {
			if held {
				engine = append(engine, entry{k, seal(k, []byte{0}, 0)})
			}
		},
		func(k []byte, held bool) { c.add(levelEntry(k, held, 1)) },
		func(k []byte, held bool) { c.add(levelEntry(k, held, 2)) },
		func(k []byte, held bool) { l.set(k, levelEntry(k, held, 3).sealed) },
	}
	want := map[string]int{}
	for n, to := range fill {
		switch n {
		case 1:
			c.begin(5)
		case 2:
			h.wrote(5)
			c.begin(6)
		}
		for combination := range 81 {
			what := combination
			for range n {
				what /= 3
			}
			k := fmt.Appendf(nil, "p%02d", combination)
			switch what % 3 {
			case 1:
				to(k, true)
				want[string(k)] = n
			case 2:
				to(k, false)
				delete(want, string(k))
			}
		}
	}
	c.add(entry{[]byte("q"), []byte("of another prefix")})
	if err := db.Update(func(txn *badger.Txn) error {
		for _, e := range engine {
			if err := txn.Set(e.key, e.sealed); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	txn := db.NewTransaction(false)
	defer txn.Discard()
	l.base = snapshot{txn}
	keys, err := l.keys([]byte("p"))
	if err != nil {
		t.Fatal(err)
	}
	if !l.pending {
		t.Error("keys that aren't durable were listed as if they were")
	}
	if len(keys) != len(want) || !slices.IsSortedFunc(keys, bytes.Compare) {
		t.Errorf("%d keys, want %d in order", len(keys), len(want))
	}
	for _, k := range keys {
		if _, ok := want[string(k)]; !ok {
			t.Errorf("%s was removed last", k)
		}
	}
	for combination := range 81 {
		k := fmt.Appendf(nil, "p%02d", combination)
		from, held := want[string(k)]
		if has, err := l.has(k); err != nil || has != held {
			t.Errorf("%s: there %t, want %t: %v", k, has, held, err)
		}
		if content, err := l.get(k); held && (err != nil || content[0] != byte(from)) {
			t.Errorf("%s: %x, want that of level %d: %v", k, content, from, err)
		}
	}
}

// levelEntry holds the number of its level, or removes.
func levelEntry(k []byte, held bool, level byte) entry {
	if !held {
		return entry{key: k}
	}
	return entry{k, seal(k, []byte{level}, 0)}
}
