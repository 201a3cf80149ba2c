package badgerstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"

	"keep-proxy/ledger"
)

func TestAJournaledCommitIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	long := bytes.Repeat([]byte{9}, 3*journalPage)
	for name, changes := range map[string][]delta{
		"nothing":             {},
		"a removal":           {{entry: entry{key: []byte("k")}}},
		"an empty value":      {{entry: entry{key: []byte("k"), sealed: []byte{}}}},
		"an empty key":        {{entry: entry{key: []byte{}, sealed: []byte("v")}}},
		"a long key":          {{entry: entry{key: long, sealed: []byte("v")}}},
		"a long removed key":  {{entry: entry{key: long}}},
		"several":             {{entry: entry{key: []byte("k"), sealed: long}}, {entry: entry{key: []byte("l")}}, {entry: entry{key: []byte("m"), sealed: []byte("w")}}},
		"values of a length":  {{entry: entry{key: []byte("k"), sealed: make([]byte, 126)}}, {entry: entry{key: []byte("k"), sealed: make([]byte, 127)}}, {entry: entry{key: []byte("k"), sealed: make([]byte, 128)}}},
		"exactly a page":      {{entry: entry{key: []byte("k"), sealed: make([]byte, journalPage-journalHead-4)}}},
		"a byte over a page":  {{entry: entry{key: []byte("k"), sealed: make([]byte, journalPage-journalHead-3)}}},
		"a byte under a page": {{entry: entry{key: []byte("k"), sealed: make([]byte, journalPage-journalHead-5)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := journaled{tip: tip{1, [32]byte{4}, 2, [32]byte{5}, -3}, before: [32]byte{6}, changes: changes}
			b := j.appendTo([]byte("before"), key)[len("before"):]
			got, pages, ok, err := parseJournaled(append(bytes.Clone(b), 1, 2, 3), key)
			if err != nil || !ok || pages != len(b) || len(b)%journalPage != 0 || !reflect.DeepEqual(got, j) {
				t.Fatalf("%+v, %d bytes of %d, %t, %v", got.tip, pages, len(b), ok, err)
			}
			if _, _, ok, _ := parseJournaled(b, []byte("another key.....")); ok {
				t.Error("taken with another key")
			}
			n := int(binary.BigEndian.Uint32(b[journalKey:]))
			if name == "exactly a page" && n != journalPage {
				t.Errorf("the record has %d bytes", n)
			}
			for _, cut := range []int{0, 1, journalKey, journalHead - 1, journalHead, n / 2, n - 1} {
				if _, _, ok, err := parseJournaled(b[:min(cut, n-1)], key); ok || err != nil {
					t.Errorf("cut to %d bytes of %d: taken %t, %v", cut, n, ok, err)
				}
			}
			for at := 0; at < n; at += 1 + n/500 {
				b[at] ^= 1 << (at % 8)
				if _, _, ok, err := parseJournaled(b, key); ok || err != nil {
					t.Errorf("byte %d of %d changed: taken %t, %v", at, n, ok, err)
				}
				b[at] ^= 1 << (at % 8)
			}
		})
	}
}

// TestTheJournalGoesAround writes commits of all lengths, and reads the file after each.
func TestTheJournalGoesAround(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newTestWater(t, seed)
		around := 0
		for range 150 {
			at := w.at
			w.write(t, w.random.IntN(smallJournal/journalShare-journalHead-10))
			if w.at < at {
				around++
			}
			if _, err := readHighWater(w.c.highWaterPath()); err != nil {
				t.Fatal(err)
			}
			w.expect(t, fmt.Sprintf("seed %d, commit %d", seed, w.last.Commit), w.content(t), len(w.after))
			if w.last != w.tip() {
				t.Fatalf("the last commit is %d, want %d", w.last.Commit, w.tip().Commit)
			}
			if w.wantsRoom() {
				w.empty(t)
				w.expect(t, "emptied", w.content(t), 0)
			}
			if t.Failed() {
				return
			}
		}
		if around < 5 {
			t.Errorf("it went around %d times", around)
		}
	}
}

// TestTheJournalIsNeverWrittenOver appends without ever emptying it, from several places.
func TestTheJournalIsNeverWrittenOver(t *testing.T) {
	t.Parallel()
	for seed := range uint64(45) {
		w, begins := newTestWater(t, seed), seed%15 // 16 pages are there.
		for range begins {
			w.write(t, 10)
		}
		w.empty(t)
		for {
			j := w.next(w.random.IntN(3 * journalPage))
			before := w.content(t)
			kept, err := w.keep(j)
			if err != nil {
				if kept {
					t.Error("refused, and kept")
				}
				if !bytes.Equal(before, w.content(t)) {
					t.Error("refused, and the file is another")
				}
				break
			}
			w.after = append(w.after, j)
			w.expect(t, fmt.Sprintf("begun after %d pages", begins), w.content(t), len(w.after))
			if t.Failed() {
				return // It would never be full.
			}
		}
		if !w.wantsRoom() || len(w.after) < 4 {
			t.Errorf("refused after %d commits", len(w.after))
		}
		w.empty(t)
		w.write(t, 10)
		w.expect(t, "emptied at last", w.content(t), 1)
	}
}

func TestALongCommitIsNotForTheJournal(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 1)
	w.write(t, 10)
	before, at := w.content(t), w.at
	for size, want := range map[int]bool{smallJournal/journalShare - journalHead - 10: true, smallJournal / journalShare: false, 2 * smallJournal: false} {
		if !want {
			kept, err := w.keep(w.next(size))
			if kept || err != nil || !bytes.Equal(before, w.content(t)) || w.at != at {
				t.Errorf("%d bytes: kept %t, %v", size, kept, err)
			}
		}
	}
	w.write(t, smallJournal/journalShare-journalHead-10)
	w.expect(t, "the longest", w.content(t), 2)
}

// TestATornWriteIsNoDamage leaves a part of the last commit's pages as they were, zeroed, or
// half written, in one copy or in both.
func TestATornWriteIsNoDamage(t *testing.T) {
	t.Parallel()
	const pages = 3
	w := newTestWater(t, 2)
	for range 7 { // So that what was there before are commits, too.
		w.write(t, 2*journalPage)
		if w.wantsRoom() {
			w.empty(t)
		}
	}
	w.write(t, 10)
	w.write(t, 10)
	before := w.write(t, (pages-1)*journalPage+journalPage*3/4)
	whole, commits := w.content(t), len(w.after)
	from, to := w.place()
	if to[0]-from[0] != pages*journalPage {
		t.Fatalf("the last commit has %d bytes", to[0]-from[0])
	}
	w.expect(t, "whole", whole, commits)
	kinds := map[string]func(page, old []byte){
		"zeroed":       func(page, _ []byte) { clear(page) },
		"not written":  func(page, old []byte) { copy(page, old) },
		"half written": func(page, old []byte) { copy(page[journalPage/4:], old[journalPage/4:]) },
	}
	for kind, tear := range kinds {
		for torn := range 1 << (2 * pages) { // A bit for each page of both copies.
			b := bytes.Clone(whole)
			for n := range 2 * pages {
				if torn&(1<<n) != 0 {
					at := from[n/pages] + n%pages*journalPage
					tear(b[at:at+journalPage], before[at:at+journalPage])
				}
			}
			want := commits
			if torn%(1<<pages) != 0 && torn>>pages != 0 {
				want--
			}
			w.expect(t, fmt.Sprintf("%s: %06b", kind, torn), b, want)
		}
	}
}

// TestOneDamageOfTheJournalLosesNothing changes a byte, or a page, in one place of the file.
func TestOneDamageOfTheJournalLosesNothing(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 3)
	for range 9 {
		w.write(t, w.random.IntN(2*journalPage))
		if w.wantsRoom() {
			w.empty(t)
		}
	}
	for len(w.after) < 3 {
		w.write(t, w.random.IntN(2*journalPage))
	}
	whole := w.content(t)
	for page := 0; page < len(whole); page += journalPage {
		zeroed := bytes.Clone(whole)
		clear(zeroed[page : page+journalPage])
		w.expect(t, fmt.Sprintf("page at %d zeroed", page), zeroed, len(w.after))
		for range 8 {
			b := bytes.Clone(whole)
			at := page + w.random.IntN(journalPage)
			b[at] ^= 1 << w.random.IntN(8)
			w.expect(t, fmt.Sprintf("byte %d changed", at), b, len(w.after))
		}
	}
	for _, used := range []int{0, 4, 20, 60} { // Bytes of a mark that count, in both.
		b := bytes.Clone(whole)
		b[used] ^= 1
		w.expect(t, "a mark changed", b, len(w.after))
		b[slotSize+used] ^= 1
		w.refuses(t, "both marks changed", b)
	}
}

func TestAHoleInTheJournalIsDamage(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 4)
	var places [][2]int
	for range 4 {
		w.write(t, w.random.IntN(2*journalPage))
		from, _ := w.place()
		places = append(places, from)
	}
	whole := w.content(t)
	for n, place := range places {
		b := bytes.Clone(whole)
		b[place[0]+journalHead/2] ^= 1
		w.expect(t, "one copy damaged", b, len(places))
		b[place[1]+journalKey] ^= 4
		if n == len(places)-1 {
			w.expect(t, "the last commit", b, n)
		} else {
			w.refuses(t, fmt.Sprintf("commit %d of %d", n+1, len(places)), b)
		}
	}
}

// A commit of which something is known to be wrong counts as little as one that isn't there.
func TestACommitOfTheJournalThatCannotBeReadIsDamage(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 8)
	w.write(t, 10)
	w.write(t, 10)
	b := w.content(t)
	from, _ := w.place()
	for _, at := range from {
		record := b[at:]
		record[journalHead-1]++ // It says that it holds one change more.
		n := binary.BigEndian.Uint32(record[journalKey:])
		binary.BigEndian.PutUint32(record[journalKey+4:], journalSum(record[:n]))
	}
	w.refuses(t, "a change is missing", b)
}

// A sync says nothing about what was never written.
func TestACommitThatTheJournalCouldNotTakeIsNotKept(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 9)
	w.write(t, 10)
	writable := w.file
	defer func() { _ = writable.Close() }()
	var err error
	if w.file, err = os.Open(w.c.highWaterPath()); err != nil {
		t.Fatal(err)
	}
	if kept, err := w.keep(w.next(10)); kept || err == nil {
		t.Errorf("kept %t, %v", kept, err)
	}
	if w.last != w.tip() {
		t.Errorf("the last commit is %d, want %d", w.last.Commit, w.tip().Commit)
	}
	if err := w.settle(journalEnd{w.tip(), w.written}); err == nil {
		t.Error("a mark that couldn't be written is taken for one that is there")
	}
}

// The journal is written over in parts, as the engine has what lies there: what follows stays.
func TestTheJournalIsSettledInParts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		w := newTestWater(t, seed)
		var ends []journalEnd
		full := 0
		for range 200 {
			j := w.next(w.random.IntN(3 * journalPage))
			kept, err := w.keep(j)
			switch {
			case errors.Is(err, errNoRoom):
				full++
				n := w.random.IntN(len(ends))
				if err := w.settle(ends[n]); err != nil {
					t.Fatal(err)
				}
				w.marked = ends[n].tip
				ends, w.after = ends[n+1:], w.after[n+1:]
			case err != nil || !kept:
				t.Fatal(kept, err)
			default:
				w.after, ends = append(w.after, j), append(ends, w.end())
			}
			w.expect(t, "in parts", w.content(t), len(w.after))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if full < 2 {
			t.Errorf("full %d times", full)
		}
	}
}

func TestACommitThatDoesNotFollowIsDamage(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		w := newTestWater(t, 5)
		if !first {
			w.write(t, 10)
		}
		j := w.next(10)
		j.before[3] ^= 1
		if _, err := w.keep(j); err != nil {
			t.Fatal(err)
		}
		w.refuses(t, fmt.Sprintf("first: %t", first), w.content(t))
	}
}

// TestContentIsNeverTakenForACommit lets a request hold what looks like the commits after the
// one that it lies in, page by page.
func TestContentIsNeverTakenForACommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, taken bool
	}{
		"of another key":                      {false, false},
		"of the key, which nobody could know": {true, true},
	} {
		w := newTestWater(t, 6)
		w.write(t, 10)
		key := []byte("what is guessed!")
		if c.known {
			key = w.mark.Key
		}
		j := w.next(0)
		forged := w.next(10)
		forged.tip.Commit += 5
		// So that it begins with a page, whatever comes before it.
		record := j.appendTo(nil, w.mark.Key)
		head := int(binary.BigEndian.Uint32(record[journalKey:])) + 1 // One more byte of length.
		value := append(make([]byte, journalPage-head), forged.appendTo(nil, key)...)
		j.changes[1].sealed = value
		kept, err := w.keep(j)
		if !kept || err != nil {
			t.Fatal(kept, err)
		}
		w.after = append(w.after, j)
		whole := w.content(t)
		w.expect(t, name+", whole", whole, 2)
		from, to := w.place()
		if to[0]-from[0] < 2*journalPage || !bytes.Equal(whole[from[0]+journalPage:][:journalKey], key) {
			t.Fatal("the content doesn't begin with a page")
		}
		for half := range 2 {
			whole[from[half]] ^= 1
		}
		if c.taken {
			w.refuses(t, name, whole)
		} else {
			w.expect(t, name, whole, 1)
		}
	}
}

func TestAHighWaterFileOfAnotherLengthIsDamaged(t *testing.T) {
	t.Parallel()
	w := newTestWater(t, 7)
	w.write(t, 10)
	b := w.content(t)
	for _, n := range []int{0, 1, slotSize, marksSize - 1, marksSize, marksSize + smallJournal, len(b) - journalPage, len(b) - 1} {
		w.refuses(t, fmt.Sprintf("%d bytes of %d", n, len(b)), b[:n])
	}
	w.refuses(t, "a byte more", append(bytes.Clone(b), 0))
	w.refuses(t, "a page more", append(bytes.Clone(b), make([]byte, journalPage)...))
}

// FuzzJournal reads anything as a record of the journal whose key and checksum are right.
func FuzzJournal(f *testing.F) {
	key := []byte("0123456789abcdef")
	for _, changes := range [][]delta{nil, {{entry: entry{key: []byte("k"), sealed: []byte("v")}}, {entry: entry{key: []byte("l")}}}} {
		j := journaled{tip: tip{Commit: 1, Seq: 2, At: 3}, changes: changes}
		record := j.appendTo(nil, key)
		n := int(binary.BigEndian.Uint32(record[journalKey:]))
		f.Add(record[:n], true)
		f.Add(record, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, right bool) {
		b = bytes.Clone(b)
		if right && len(b) >= journalHead {
			copy(b, key)
			binary.BigEndian.PutUint32(b[journalKey:], uint32(len(b)))
			binary.BigEndian.PutUint32(b[journalKey+4:], journalSum(b))
		}
		// As it lies in the journal: zeros may complete a commit that ends with some.
		b = append(b, make([]byte, wholePages(len(b))-len(b))...)
		j, pages, ok, _ := parseJournaled(b, key)
		if ok {
			record := j.appendTo(nil, key)
			again, _, same, err := parseJournaled(record, key)
			if err != nil || !same || !reflect.DeepEqual(j, again) || pages < len(record) {
				t.Fatalf("read, and not written as it was: %v", err)
			}
		}
		m := highMark{Key: key, Journal: int64(wholePages(len(b)))}
		halves := make([]byte, 2*m.Journal)
		copy(halves[m.Journal:], b)
		found, err := m.parseJournal(halves)
		if err != nil && !errors.Is(err, ledger.ErrDamaged) {
			t.Fatalf("refused, but not as damage: %v", err)
		}
		if len(found) > 0 && !ok {
			t.Fatal("found in the journal alone")
		}
	})
}
