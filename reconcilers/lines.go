package reconcilers

import (
	"slices"
	"time"

	"keep-proxy/ledger"
)

// lineLimit is how many records of one connector stand in line.
const lineLimit = 1024

// lines hold by connector what is due and has no place yet. A connector with many records then
// doesn't keep the others waiting. They belong to the runner's goroutine. Their zero value is
// empty.
type lines struct {
	of map[string]line
	// names are those connectors, the one whose turn was longest ago first.
	names []string
	in    map[ledger.Key]struct{}
	// short says that a line has become empty of which not all were listed.
	short bool
	// again is when they may be listed again, on the monotonic clock.
	again time.Duration
}

// line is what is due of one connector, in the order in which it became due.
type line struct {
	keys []ledger.Key
	// more says that more is due than the line takes.
	more bool
}

// listingShare is how much of the time goes into listing what is due, at most: one
// part in so many.
const listingShare = 20

// has reports whether k stands in a line.
func (l *lines) has(k ledger.Key) bool {
	_, ok := l.in[k]
	return ok
}

// put adds a key that is in no line to its connector's line, and reports whether there was room.
func (l *lines) put(connector string, k ledger.Key) bool {
	if l.of == nil {
		l.of, l.in = map[string]line{}, map[ledger.Key]struct{}{}
	}
	of := l.of[connector]
	if of.more = of.more || len(of.keys) >= lineLimit; of.more {
		l.of[connector] = of
		return false
	}
	if len(of.keys) == 0 {
		l.names = append(l.names, connector)
	}
	of.keys = append(of.keys, k)
	l.of[connector] = of
	l.in[k] = struct{}{}
	return true
}

// pick takes the next key of the connector with a free place and the fewest tries under way. Among
// equals it takes the one whose turn was longest ago.
func (l *lines) pick(b *busy) (k ledger.Key, ok bool) {
	best, fewest := -1, 0
	for at, name := range l.names {
		if n, place := b.placeOf(name); place && (best < 0 || n < fewest) {
			best, fewest = at, n
		}
	}
	if best < 0 {
		return k, false
	}
	name := l.names[best]
	l.names = slices.Delete(l.names, best, best+1)
	of := l.of[name]
	k, of.keys = of.keys[0], of.keys[1:]
	if len(of.keys) == 0 {
		delete(l.of, name)
		l.short = l.short || of.more
	} else {
		l.of[name] = of
		l.names = append(l.names, name)
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

// list begins a listing: all that is due is to be put, unless it stands in line.
func (l *lines) list() {
	l.short = false
	for name, of := range l.of {
		of.more = false
		l.of[name] = of
	}
}

// listed notes that listing took from start until now, on the monotonic clock.
func (l *lines) listed(start, now time.Duration) { l.again = now + listingShare*(now-start) }
