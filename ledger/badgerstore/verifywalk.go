package badgerstore

import (
	"runtime"
	"sync"

	badger "github.com/dgraph-io/badger/v4"
)

// A handful has at most so many values, and no more of them once it has so many bytes.
const (
	handfulValues = 256
	handfulBytes  = 1 << 20
)

// handful are values that lie next to each other, as they are stored.
type handful struct {
	// n counts the handfuls of a round, in the order of their keys.
	n      int
	keys   [][]byte
	sealed [][]byte
	// room is where they lie.
	room []byte
}

func (b *handful) full() bool { return len(b.keys) >= handfulValues || len(b.room) >= handfulBytes }

// add copies a value into b. What was added before stays where it is if room grows.
func (b *handful) add(item *badger.Item) error {
	return item.Value(func(sealed []byte) error {
		at := len(b.room)
		b.room = append(append(b.room, item.Key()...), sealed...)
		end := at + len(item.Key())
		b.keys, b.sealed = append(b.keys, b.room[at:end:end]), append(b.sealed, b.room[end:len(b.room):len(b.room)])
		return nil
	})
}

func (b *handful) empty(n int) {
	b.n, b.keys, b.sealed, b.room = n, b.keys[:0], b.sealed[:0], b.room[:0]
}

// part is a verifier for a part of the values, which counts from 0.
func (v *verifier) part() *verifier {
	return &verifier{
		ctx: v.ctx, config: v.config, src: v.src, recordsOnly: v.recordsOnly, naming: v.naming, lost: v.lost,
		report: &Report{Events: v.report.Events}, progress: v.progress, spans: map[string]struct{}{},
	}
}

// merge adds what a part has counted.
func (v *verifier) merge(p *verifier) {
	v.report.Values += p.report.Values
	v.report.Mutations += p.report.Mutations
	v.report.Runs += p.report.Runs
	v.report.Items += p.report.Items
	v.expected.merge(p.expected)
	v.found.merge(p.found)
	v.told.merge(p.told)
	v.listed.merge(p.listed)
	v.chain.runs = append(v.chain.runs, p.chain.runs...)
}

// values checks each value by itself, and returns what is wrong with the first one, by
// its key, with which something is. One reads them, in order, and as many as there are
// processors check them: of what was handed out before something was found to be wrong
// all is checked, so that nothing before it is left out.
func (v *verifier) values() error {
	w := round{verifier: v, full: make(chan *handful), stop: make(chan struct{})}
	workers := runtime.GOMAXPROCS(0)
	w.free = make(chan *handful, 2*workers)
	for range cap(w.free) {
		w.free <- new(handful)
	}
	parts := make([]*verifier, workers)
	var working sync.WaitGroup
	for i := range parts {
		parts[i] = v.part()
		working.Go(func() { w.check(parts[i]) })
	}
	err := w.read()
	close(w.full)
	working.Wait()
	for _, p := range parts {
		v.merge(p)
	}
	if w.wrong != nil { // It lies before what couldn't be read.
		return w.wrong
	}
	return err
}

// round is one walk over all values.
type round struct {
	*verifier
	// free are handfuls that may be filled, full those to be checked.
	free, full chan *handful
	// stop is closed once something is wrong.
	stop chan struct{}

	mu sync.Mutex
	// seen is how many values were checked.
	seen int
	// wrong is what is wrong in the first handful, number at, in which something is.
	wrong error
	at    int
}

// read hands out all values, until something is wrong.
func (w *round) read() error {
	it := w.src.txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	for n := 0; it.Valid(); n++ {
		b := <-w.free
		for b.empty(n); it.Valid() && !b.full(); it.Next() {
			if err := b.add(it.Item()); err != nil {
				w.full <- b
				return err
			}
		}
		select {
		case <-w.stop:
			return nil
		case w.full <- b:
		}
	}
	return nil
}

// check checks with p what was handed out, up to the first value that is wrong.
func (w *round) check(p *verifier) {
	p.events = newEvents(p.src)
	defer p.events.close()
	var failed bool
	for b := range w.full {
		if !failed {
			if err := p.each(b); err != nil {
				failed = true
				w.fail(b.n, err)
			} else if err := w.count(len(b.keys)); err != nil {
				failed = true
				w.fail(b.n, err)
			}
		}
		w.free <- b
	}
}

// each checks the values of b.
func (v *verifier) each(b *handful) error {
	v.chain.cut = true
	for i, k := range b.keys {
		if err := v.stored(k, b.sealed[i]); err != nil {
			return err
		}
		v.report.Values++
	}
	return nil
}

// fail notes what is wrong in handful n.
func (w *round) fail(n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wrong == nil {
		close(w.stop)
	}
	if w.wrong == nil || n < w.at {
		w.wrong, w.at = err, n
	}
}

// count tells how far it is, and whether it shall go on.
func (w *round) count(values int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.seen / progressEvery
	w.seen += values
	for n := before + 1; n <= w.seen/progressEvery; n++ {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.progress != nil {
			w.progress(n * progressEvery)
		}
	}
	return nil
}
