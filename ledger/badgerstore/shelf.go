package badgerstore

import (
	"errors"
	"slices"

	"keep-proxy/ledger"
)

const (
	// shelfLimit is how many records a generation of a shelf holds.
	shelfLimit = 256
	// shelfRecord is the longest record, as it is stored and in bytes, that is kept.
	shelfRecord = 16 << 10
)

// kept is a record as the store's last command left it.
type kept[R any] struct {
	// record is never changed, nor given away but as a copy.
	record R
	// indexes are the index keys of the record.
	indexes [][]byte
	// size is how long the record is where it is stored, in bytes.
	size int
	// batch is the number of the commit that holds it, 0 if that is durable.
	batch uint64
}

// shelf keeps the records that the committer used last, so that the command which
// follows neither reads nor decodes them again. It has two generations: a record
// found in the older one moves to the younger, and a full one becomes the older.
// Drafts are what the command at work has put; they stay if it succeeds. Only the
// committer uses a shelf: what lies on it may not be durable yet.
type shelf[K comparable, R any] struct {
	young, old map[K]kept[R]
	drafts     []draft[K, R]
	// missing is what the command at work has looked for in vain, if looked is set.
	missing K
	looked  bool
}

type draft[K comparable, R any] struct {
	key K
	kept[R]
}

// get returns what is known under k.
func (s *shelf[K, R]) get(k K) (kept[R], bool) {
	for _, d := range slices.Backward(s.drafts) {
		if d.key == k {
			return d.kept, true
		}
	}
	if r, ok := s.young[k]; ok {
		return r, true
	}
	r, ok := s.old[k]
	if ok {
		s.keep(k, r)
	}
	return r, ok
}

// keep takes a record as it is stored.
func (s *shelf[K, R]) keep(k K, r kept[R]) {
	if r.size > shelfRecord {
		s.drop(k)
		return
	}
	delete(s.old, k)
	if _, known := s.young[k]; !known && len(s.young) >= shelfLimit {
		s.old, s.young = s.young, s.old
		clear(s.young)
	}
	if s.young == nil {
		s.young = make(map[K]kept[R])
	}
	s.young[k] = r
}

// drop forgets the record under k.
func (s *shelf[K, R]) drop(k K) {
	delete(s.old, k)
	delete(s.young, k)
}

// empty forgets all records. No command may be at work.
func (s *shelf[K, R]) empty() { *s = shelf[K, R]{} }

// put notes what the command at work has put.
func (s *shelf[K, R]) put(k K, r kept[R]) { s.drafts = append(s.drafts, draft[K, R]{k, r}) }

// miss notes that the command at work found nothing under k.
func (s *shelf[K, R]) miss(k K, err error) {
	if errors.Is(err, ledger.ErrNotFound) {
		s.missing, s.looked = k, true
	}
}

// missed reports whether it did, and has put nothing there since.
func (s *shelf[K, R]) missed(k K) bool { return s.looked && s.missing == k }

// end keeps the drafts of a command that succeeded, or drops them.
func (s *shelf[K, R]) end(succeeded bool) {
	if succeeded {
		for _, d := range s.drafts {
			s.keep(d.key, d.kept)
		}
	}
	s.looked = false
	clear(s.drafts)
	s.drafts = s.drafts[:0]
}
