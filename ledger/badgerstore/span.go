package badgerstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"keep-proxy/ledger"
)

// What a rule version or a time touched is found without reading every record or storing a key for each. A record
// lies in the listing by when it was made, and two indexes name parts of that listing. One names, for a version of
// a connector's file, the seconds in which its records were made. The other names, for each minute, the minutes in
// which the records touched in it were made. A busy second costs one key, as does a quiet one.

// unitSize is the length of a second or a minute in a key.
const unitSize = 4

// second is at in seconds since 1970.
func second(at time.Time) uint32 { return uint32(nanos(at) / uint64(time.Second)) } // Until 2106.

// minute is at in minutes since 1970.
func minute(at time.Time) uint32 { return uint32(nanos(at) / uint64(time.Minute)) }

// spanName is an entry of one of the two indexes. With rule: the connector's file in this version has records that
// were made in the second made. Else: records that were made in the minute made were touched in the minute at.
type spanName struct {
	rule      bool
	connector string
	version   int
	at, made  uint32
}

func (n spanName) key() []byte {
	if !n.rule {
		return touchedKey(n.at, n.made)
	}
	return binary.BigEndian.AppendUint32(versionPrefix(digest(n.connector), uint64(n.version)), n.made)
}

func touchedKey(at, made uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte{xTouched}, at), made)
}

// newSpans adds to list the entries of both indexes that m asks for and old, if there is
// one, didn't. They are shared with other records, and never removed.
func newSpans(list []spanName, old, m *ledger.Mutation) []spanName {
	made := minute(m.CreatedAt)
	var room [16]uint32 // Few records were touched in more minutes.
	known := append(room[:0], made)
	if old != nil && old.CreatedAt.Equal(m.CreatedAt) {
		for at := range old.Touches() {
			known = addMinute(known, at)
		}
	}
	if old == nil || !sameRule(old, m) {
		list = append(list, spanName{rule: true, connector: m.Connector, version: m.ConnectorVersion, made: second(m.CreatedAt)})
	}
	before := len(known)
	for at := range m.Touches() {
		known = addMinute(known, at)
	}
	for _, n := range known[before:] {
		list = append(list, spanName{at: n, made: made})
	}
	return list
}

// addMinute adds the minute of at to list, if at isn't zero and it isn't there.
func addMinute(list []uint32, at time.Time) []uint32 {
	if n := minute(at); !at.IsZero() && !slices.Contains(list, n) {
		return append(list, n)
	}
	return list
}

// sameRule reports whether old and m have the same key of the index of rules.
func sameRule(old, m *ledger.Mutation) bool {
	return old.Connector == m.Connector && old.ConnectorVersion == m.ConnectorVersion && old.CreatedAt.Equal(m.CreatedAt)
}

// span puts the keys that m asks for and old, if there is one, didn't. A key that only Badger has is put again:
// looking for it would cost more.
func (t *tx) span(old, m *ledger.Mutation) {
	if old != nil && sameSpan(old, m) {
		return
	}
	var room [4]spanName
	for _, n := range newSpans(room[:0], old, m) {
		if sk := n.key(); t.layer.base.version(sk) == nil {
			t.layer.set(sk, seal(sk, nil, 0), nil)
		}
	}
}

// sameSpan reports whether m asks for no key that old didn't: nearly every change.
func sameSpan(old, m *ledger.Mutation) bool {
	if old.Connector != m.Connector || old.ConnectorVersion != m.ConnectorVersion {
		return false
	}
	made, known := minute(m.CreatedAt), minute(old.UpdatedAt)
	for at := range m.Touches() {
		if n := minute(at); !at.IsZero() && n != made && n != known {
			return false
		}
	}
	return true
}

// window is a part of a listing, in nanoseconds; the end doesn't belong to it.
type window struct{ from, end uint64 }

// windows are parts of a listing, newest first, that don't overlap. A nil one is all of it.
type windows []window

// ofUnits makes windows of seconds or minutes.
func ofUnits(list []uint32, unit time.Duration) windows {
	slices.Sort(list)
	out := windows{}
	for _, n := range slices.Backward(slices.Compact(list)) {
		from := uint64(n) * uint64(unit)
		end := from + uint64(unit)
		if last := len(out) - 1; last >= 0 && out[last].from == end {
			out[last].from = from
			continue
		}
		out = append(out, window{from, end})
	}
	return out
}

// holds reports whether a record that was made then is in one of them. If not, below is the end of the next older
// one, 0 if there is none.
func (w windows) holds(made uint64) (ok bool, below uint64) {
	if w == nil {
		return true, 0
	}
	at, _ := slices.BinarySearchFunc(w, made, func(w window, made uint64) int {
		if w.from <= made {
			return 0
		}
		return -1
	})
	if at == len(w) {
		return false, 0
	}
	if made < w[at].end {
		return true, 0
	}
	return false, w[at].end
}

// and are the parts that are in both.
func (w windows) and(other windows) windows {
	if w == nil {
		return other
	}
	if other == nil {
		return w
	}
	out := windows{}
	for i, j := 0, 0; i < len(w) && j < len(other); {
		from, end := max(w[i].from, other[j].from), min(w[i].end, other[j].end)
		if from < end {
			out = append(out, window{from, end})
		}
		if w[i].from >= other[j].from {
			i++
		} else {
			j++
		}
	}
	return out
}

// spanned are the parts of the listing in which mutations of f were made, from the
// cursor on. What they leave out holds none; what they hold may hold others.
func spanned(src snapshot, f ledger.Filter, from []byte) windows {
	var out windows
	if f.Connector != "" {
		out = ruleWindows(src, f, from)
	}
	if !f.Touched.All() {
		out = out.and(touchedWindows(src, f.Touched))
	}
	return out
}

// ruleWindows are those in which records of the connector, or of the version of its file,
// were made.
func ruleWindows(src snapshot, f ledger.Filter, from []byte) windows {
	d := digest(f.Connector)
	if f.ConnectorVersion > 0 {
		return versionWindows(src, versionPrefix(d, uint64(f.ConnectorVersion)), from)
	}
	out := windows{}
	for _, prefix := range versionPrefixes(src, d) {
		out = out.or(versionWindows(src, prefix, from))
	}
	return out
}

func versionPrefix(connector [32]byte, version uint64) []byte {
	return binary.BigEndian.AppendUint64(key(xRuleMade, connector[:]), version)
}

// versionPrefixes are those of the versions that a connector's records have. It steps from
// one to the next.
func versionPrefixes(src snapshot, connector [32]byte) (out [][]byte) {
	all := key(xRuleMade, connector[:])
	for start := versionPrefix(connector, math.MaxUint64); ; {
		var found []byte
		src.backwards(all, start, func(k []byte) bool {
			found = bytes.Clone(k[:len(k)-unitSize])
			return false
		})
		if found == nil {
			return out
		}
		// What is below it is of a lower version.
		out, start = append(out, found), found
	}
}

// versionWindows are those of one version, newest first. Each holds one record, so as many are enough as a page can
// need. What is older is one window then.
func versionWindows(src snapshot, prefix, from []byte) windows {
	start := uint32(math.MaxUint32)
	if from != nil {
		start = second(markTime(from))
	}
	var made []uint32
	src.backwards(prefix, binary.BigEndian.AppendUint32(bytes.Clone(prefix), start), func(k []byte) bool {
		made = append(made, binary.BigEndian.Uint32(k[len(prefix):]))
		return len(made) <= 2*maxLimit
	})
	if len(made) <= 2*maxLimit {
		return ofUnits(made, time.Second)
	}
	oldest := made[len(made)-1]
	return ofUnits(made, time.Second).or(windows{{0, uint64(oldest) * uint64(time.Second)}})
}

// touchedWindows are those in which records were made that were touched then.
func touchedWindows(src snapshot, t ledger.Touched) windows {
	from, to, end := minute(t.Since), uint32(math.MaxUint32), uint64(math.MaxUint64)
	if !t.Until.IsZero() {
		to = minute(t.Until)
		end = (uint64(to) + 1) * uint64(time.Minute)
	}
	var made []uint32
	last := touchedKey(to, math.MaxUint32)
	src.after([]byte{xTouched}, touchedKey(from, 0), func(k []byte) bool {
		if bytes.Compare(k, last) > 0 {
			return false
		}
		made = append(made, binary.BigEndian.Uint32(k[1+unitSize:]))
		return true
	})
	// What was made in that time was touched in it.
	return windows{{uint64(from) * uint64(time.Minute), end}}.or(ofUnits(made, time.Minute))
}

// or are the parts that are in one of them.
func (w windows) or(other windows) windows {
	all := slices.Concat(w, other)
	slices.SortFunc(all, func(a, b window) int { return cmp.Compare(b.end, a.end) })
	out := windows{}
	for _, next := range all {
		if last := len(out) - 1; last >= 0 && next.end >= out[last].from {
			out[last].from = min(out[last].from, next.from)
			continue
		}
		out = append(out, next)
	}
	return out
}
