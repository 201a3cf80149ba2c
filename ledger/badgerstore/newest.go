package badgerstore

import (
	"sync"

	badger "github.com/dgraph-io/badger/v4"
)

// newest is the snapshot of the last commit that the engine has. Those who read it share it, and
// look into the backlog first for what came since.
//
// Who opens a snapshot of his own waits until what is being committed is durable, and until the
// engine has it. Of a runner that has many records to read between two commits, and of its
// tries, that makes one that works only while no commit is under way.
type newest struct {
	mu sync.Mutex
	is *shared
}

// shared is a snapshot with its readers.
type shared struct {
	snapshot
	// users counts its readers, and the store while it is the newest.
	users int
}

// take returns the newest snapshot, which must be given back; nil if there is none.
func (n *newest) take() *shared {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is != nil {
		n.is.users++
	}
	return n.is
}

// give gives back a snapshot that was taken. The last one discards it.
func (n *newest) give(s *shared) {
	n.mu.Lock()
	s.users--
	last := s.users == 0
	n.mu.Unlock()
	if last {
		s.txn.Discard()
	}
}

// renew puts a snapshot in the place of the newest; nil puts none. Who asked for it calls what
// it returns, which lets the one before go.
func (n *newest) renew(txn *badger.Txn) (letGo func()) {
	var next *shared
	if txn != nil {
		next = &shared{snapshot: snapshot{txn}, users: 1}
	}
	n.mu.Lock()
	was := n.is
	n.is = next
	n.mu.Unlock()
	return func() {
		if was != nil {
			n.give(was)
		}
	}
}
