package badgerstore

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"keep-proxy/ledger"
)

// The first byte of every Badger key says what it holds. Names of any length are
// digested, so that keys have fixed places and no name can imitate another.
const (
	kMeta      = 'M' // identity
	kMutation  = 'm' // key → record
	kPart      = 'z' // digest(key), n → part of a long record
	kRun       = 'R' // digest(run id) → run
	kToken     = 't' // digest(token digest) → run id
	kItem      = 'I' // digest(workflow, item) → item
	kEvidence  = 'v' // digest(connector, account, object) → owner
	kDelivery  = 'l' // digest(run), key → delivery
	kConnector = 'k' // digest(hash) → rule file
	kBody      = 'b' // sha256 → content, or that it is a file
	kEvents    = 'E' // seq of the first → events of a commit
	kFold      = 'f' // number of the last, part → fold record
)

// Indexes hold no content; each ends with an order (see mark).
const (
	xUnresolved = 'u' // digest(workflow), mark
	xDue        = 'd' // mark by NextTryAt
	xState      = 's' // state letter, mark; not for applied ones
	xByRun      = 'r' // digest(run), mark
	xByItem     = 'i' // digest(workflow, item), mark
	xCreated    = 'c' // mark
	xEscalated  = 'x' // mark
	xOwed       = 'y' // mark; obligations that are neither met nor waived
	xHistory    = 'n' // digest(mutation id), seq; unless the record's history has it
	xRunActive  = 'a' // digest(run id)
	xRunEnded   = 'A' // mark by end
	xRunOpened  = 'o' // mark by opening
	xItemOpened = 'O' // mark by opening
	xItemTaken  = 'T' // digest(run id), digest(workflow, item); of runs of many items
	xItemWaits  = 'W' // mark by opening; of items that wait for a person
	xItemID     = 'N' // 10 bytes of the item's id, mark by opening
	xRunOfItem  = 'w' // digest(workflow, item), mark by opening
	xRuleMade   = 'V' // digest(connector), version, second; see span.go
	xTouched    = 'h' // minute, minute; see span.go
)

// markSize is the length of a mark: a time and a 32-byte name.
const markSize = 8 + 32

func digest(parts ...string) [32]byte {
	var short [128]byte // Most names fit, and nothing is allocated.
	b := short[:0]
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

func key(kind byte, parts ...[]byte) []byte {
	n := 1
	for _, p := range parts {
		n += len(p)
	}
	k := append(make([]byte, 0, n), kind)
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

func named(kind byte, names ...string) []byte {
	d := digest(names...)
	return key(kind, d[:])
}

func numbered(kind byte, n uint64) []byte {
	return key(kind, binary.BigEndian.AppendUint64(nil, n))
}

func mutationKey(k ledger.Key) []byte { return key(kMutation, k[:]) }

func runKey(id string) []byte { return named(kRun, id) }

func connectorKey(hash string) []byte { return named(kConnector, hash) }

// hexOf is sum in lower-case hex digits.
func hexOf(sum [32]byte) string {
	var digits [2 * len(sum)]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// mark orders by time, then by name.
func mark(at time.Time, name [32]byte) (m [markSize]byte) {
	binary.BigEndian.PutUint64(m[:], nanos(at))
	copy(m[8:], name[:])
	return m
}

// nanos is at in nanoseconds since 1970; times before that, the zero time
// included, sort first.
func nanos(at time.Time) uint64 {
	if at.IsZero() || at.Unix() < 0 {
		return 0
	}
	return uint64(at.UnixNano())
}

func markTime(m []byte) time.Time {
	n := binary.BigEndian.Uint64(m)
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(n)).UTC()
}

// markName returns the name at the end of an index key.
func markName(k []byte) (name [32]byte) {
	copy(name[:], k[len(k)-32:])
	return name
}

// stateLetter stands for a state in an index; 0 for applied, which has none.
func stateLetter(s ledger.State) byte {
	switch s {
	case ledger.InFlight:
		return 'f'
	case ledger.Failed:
		return 'x'
	case ledger.NeedsReconcile:
		return 'r'
	case ledger.Indeterminate:
		return 'i'
	case ledger.Skipped:
		return 's'
	case ledger.Applied:
		return 0
	}
	return 0
}

// keyName shows a key in an error.
func keyName(k []byte) string {
	if len(k) == 0 {
		return "(empty)"
	}
	return fmt.Sprintf("%c/%s", k[0], hex.EncodeToString(k[1:min(len(k), 13)]))
}
