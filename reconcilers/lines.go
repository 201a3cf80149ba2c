package reconcilers

import (
	"slices"
	"time"

	"keep-proxy/ledger"
)

// lines hold what is due and has no place yet, by connector: so that a connector with
// many records neither keeps the others waiting, nor is looked through again for each
// of its tries. They belong to the runner's goroutine; their zero value is empty.
type lines struct {
	// of are the keys of each connector, in the order in which they became due.
	of map[string][]ledger.Key
	// names are those connectors, the one whose turn was longest ago first: of more of them
	// than there are places none is passed over for good.
	names []string
	in    map[ledger.Key]struct{}
	// again is when they may be listed again, on the monotonic clock.
	again time.Duration
}

// listingShare is how much of the time goes into listing what is due, at most: one
// part in so many.
const listingShare = 20

// has reports whether k stands in a line.
func (l *lines) has(k ledger.Key) bool {
	_, ok := l.in[k]
	return ok
}

// put puts a key that is in no line at the end of its connector's.
func (l *lines) put(connector string, k ledger.Key) {
	if l.of == nil {
		l.of, l.in = map[string][]ledger.Key{}, map[ledger.Key]struct{}{}
	}
	if len(l.of[connector]) == 0 {
		l.names = append(l.names, connector)
	}
	l.of[connector] = append(l.of[connector], k)
	l.in[k] = struct{}{}
}

// pick takes the next key of the connector with the fewest tries under way that has a
// place for one more; of several, of the one whose turn was longest ago.
func (l *lines) pick(b *busy) (k ledger.Key, ok bool) {
	best, fewest := "", 0
	for _, name := range l.names {
		if n, place := b.placeOf(name); place && (best == "" || n < fewest) {
			best, fewest = name, n
		}
	}
	if best == "" {
		return k, false
	}
	line := l.of[best]
	k, line = line[0], line[1:]
	l.of[best] = line
	l.names = slices.DeleteFunc(l.names, func(n string) bool { return n == best })
	if len(line) == 0 {
		delete(l.of, best)
	} else {
		l.names = append(l.names, best)
	}
	delete(l.in, k)
	return k, true
}

// wait is how long they must not be listed again; not at all if nothing stands in them.
func (l *lines) wait(mono time.Duration) time.Duration {
	if len(l.in) == 0 {
		return 0
	}
	return max(l.again-mono, 0)
}

// listed notes that listing took from start until now, on the monotonic clock.
func (l *lines) listed(start, now time.Duration) { l.again = now + listingShare*(now-start) }
