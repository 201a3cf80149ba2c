package reconcilers

import (
	"maps"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// busy admits one try at a time for a record, and a bounded number at once. A connector that hangs
// then doesn't keep the others waiting.
type busy struct {
	total, each int

	mu sync.Mutex
	// records counts who holds a record: a try, and an outcome that is still to be
	// recorded.
	records    map[ledger.Key]int
	running    int
	connectors map[string]int
	// deferred holds back records whose try could not be recorded, until a time on the monotonic
	// clock. Otherwise they would stay due and be tried in a loop.
	deferred map[ledger.Key]time.Duration
}

func newBusy(total, each int) *busy {
	return &busy{
		total: total, each: each,
		records: map[ledger.Key]int{}, connectors: map[string]int{}, deferred: map[ledger.Key]time.Duration{},
	}
}

// claim takes a record for a try outside the runner's bounds.
func (b *busy) claim(k ledger.Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.records[k] > 0 {
		return false
	}
	b.records[k] = 1
	return true
}

// hold keeps a record that is taken already beyond the end of its try.
func (b *busy) hold(k ledger.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records[k]++
}

// free gives a record back, once for each claim, start and hold.
func (b *busy) free(k ledger.Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.records[k]--; b.records[k] <= 0 {
		delete(b.records, k)
	}
}

// open reports whether the runner could start a try of k now.
func (b *busy) open(k ledger.Key, mono time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until, ok := b.deferred[k]; ok && mono < until {
		return false
	}
	return b.running < b.total && b.records[k] == 0
}

// full reports whether there is no place for another try.
func (b *busy) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running >= b.total
}

// placeOf returns how many tries of a connector are running, and whether it may have
// one more.
func (b *busy) placeOf(connector string) (running int, place bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	running = b.connectors[connector]
	return running, running < b.each
}

// start takes a record and a place of its connector for the runner; it reports whether both
// were free.
func (b *busy) start(k ledger.Key, connector string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running >= b.total || b.records[k] > 0 || b.connectors[connector] >= b.each {
		return false
	}
	b.records[k] = 1
	b.running++
	b.connectors[connector]++
	return true
}

// done gives the place back, but not the record: see free.
func (b *busy) done(connector string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if b.connectors[connector]--; b.connectors[connector] == 0 {
		delete(b.connectors, connector)
	}
}

// postpone holds a record back for a while from now on the monotonic clock.
func (b *busy) postpone(k ledger.Key, now, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.deferred, func(_ ledger.Key, until time.Duration) bool { return now >= until })
	b.deferred[k] = now + wait
}
