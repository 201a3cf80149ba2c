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
	// unread are keys whose connector isn't known yet, and of those whose connector is.
	// Both are in the order in which they became due.
	unread []ledger.Key
	of     map[string][]ledger.Key
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

// add takes up what is due and isn't in a line yet. A connector that isn't known is "".
func (l *lines) add(due []ledger.Key, connectors []string) {
	for i, k := range due {
		switch {
		case l.has(k):
		case connectors[i] != "":
			l.put(connectors[i], k)
		default:
			l.enter(k)
			l.unread = append(l.unread, k)
		}
	}
}

// enter notes that k stands in a line.
func (l *lines) enter(k ledger.Key) {
	if l.in == nil {
		l.in = map[ledger.Key]struct{}{}
	}
	l.in[k] = struct{}{}
}

// has reports whether k stands in a line.
func (l *lines) has(k ledger.Key) bool {
	_, ok := l.in[k]
	return ok
}

// put puts a key that is in no line at the end of its connector's.
func (l *lines) put(connector string, k ledger.Key) {
	if l.of == nil {
		l.of = map[string][]ledger.Key{}
	}
	if len(l.of[connector]) == 0 {
		l.names = append(l.names, connector)
	}
	l.of[connector] = append(l.of[connector], k)
	l.enter(k)
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

// read takes the next key whose connector isn't known.
func (l *lines) read() (k ledger.Key, ok bool) {
	if len(l.unread) == 0 {
		return k, false
	}
	k, l.unread = l.unread[0], l.unread[1:]
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
