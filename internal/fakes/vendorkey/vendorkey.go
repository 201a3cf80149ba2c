// Package vendorkey is how a vendor dedupes on an idempotency key. The first request with a key runs, and a later one
// gets the kept answer. One that comes while the first still runs is a conflict, and one with another body is an error.
// What exactly is kept, for how long, and with which statuses these things are said, is the vendor's.
//
// Keys live in scopes (an account); the same key in two scopes is two keys. A kept answer is forgotten once it is older
// than the window. Then the key is as new, which is the danger of a resend.
package vendorkey

import (
	"net/http"
	"sync"
	"time"

	"keep-proxy/internal/fakes/oracle"
)

// Meaning is what a key means for a request. The zero Meaning is invalid.
type Meaning int

// The meanings.
const (
	// Fresh: run the request. The key is busy until Keep or Drop.
	Fresh Meaning = iota + 1
	// Replay: give the kept answer.
	Replay
	// Mismatch: the key belongs to another request.
	Mismatch
	// Busy: the first request with this key is still running.
	Busy
)

// Keys are the keys that a vendor remembers. It is safe for concurrent use.
type Keys struct {
	mu     sync.Mutex
	window time.Duration
	known  map[id]entry
}

type id struct{ scope, key string }

type entry struct {
	digest string
	busy   bool
	kept   oracle.Kept
	at     time.Time
}

// New returns an empty set of keys that are remembered for the window.
func New(window time.Duration) *Keys {
	return &Keys{window: window, known: map[id]entry{}}
}

// SetWindow changes the window, for the keys that are known too.
func (k *Keys) SetWindow(window time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.window = window
}

// Restore takes up the kept answers of earlier lives.
func (k *Keys) Restore(events []oracle.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range events {
		if e.Kept != nil {
			k.known[id{e.Kept.Scope, e.Kept.Key}] = entry{digest: e.Kept.Digest, kept: *e.Kept, at: e.At}
		}
	}
}

// Begin says what the key means for a request of this digest, and takes it in
// if it is fresh. The kept answer is given with Replay only.
func (k *Keys) Begin(scope, key, digest string, now time.Time) (Meaning, oracle.Kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := id{scope, key}
	e, ok := k.known[at]
	if ok && !e.busy && now.Sub(e.at) >= k.window {
		ok = false
	}
	switch {
	case !ok:
		k.known[at] = entry{digest: digest, busy: true}
		return Fresh, oracle.Kept{}
	case e.digest != digest:
		return Mismatch, oracle.Kept{}
	case e.busy:
		return Busy, oracle.Kept{}
	}
	return Replay, e.kept
}

// Keep keeps the answer under its key from now on.
func (k *Keys) Keep(kept oracle.Kept, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[id{kept.Scope, kept.Key}] = entry{digest: kept.Digest, kept: kept, at: now}
}

// Drop forgets a key whose request left nothing to keep.
func (k *Keys) Drop(scope, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id{scope, key})
}

// Kept makes the answer that is kept for a request: its status, content type
// and location, and its body.
func Kept(scope, key, digest string, status int, header http.Header, body []byte) *oracle.Kept {
	kept := &oracle.Kept{Scope: scope, Key: key, Digest: digest, Status: status, Header: map[string]string{}, Body: body}
	for _, name := range []string{"Content-Type", "Location"} {
		if value := header.Get(name); value != "" {
			kept.Header[name] = value
		}
	}
	return kept
}
