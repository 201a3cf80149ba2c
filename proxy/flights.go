package proxy

import (
	"context"
	"slices"
	"sync"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
)

// call is one caller of a mutation key, from its arrival until its answer was
// delivered or it went away.
type call struct {
	// run is empty for an unmanaged scope.
	run string
	// clientKey is the digest of the client's own Idempotency-Key, if it sent one.
	clientKey string
	// replay is the rule's repeat: replay.
	replay bool
	// payload is the digest of what it wants sent.
	payload string
	// client ends when the caller's connection is gone.
	client context.Context
	// answer is what it is given, nil before that.
	answer *answerWriter
}

// gone reports whether the caller left without its answer. One that has all of it, and
// has left, asks again if another comes, although its delivery isn't noted yet.
func (c *call) gone() bool {
	return hasGone(c.client) && (c.answer == nil || !c.answer.whole.Load())
}

// flight is the work on one key: at most one at a time in this process.
type flight struct {
	// run is the leader's, empty for an unmanaged scope.
	run     string
	payload string
	// landed is closed once answer is set; it is there if anybody waits for that.
	landed chan struct{}
	answer *reply
	// users are the leader and those who joined, until each is done with the answer.
	users int
}

// callers are the live callers of one key.
type callers struct {
	active *flight
	calls  []*call
	// record is the key of the record that they are on, if it is another one; see works.
	record *ledger.Key
}

// flights lets one caller of a key do the work while the others wait for its
// answer, and tells a repeat inside one run from a replay.
type flights struct {
	mu    sync.Mutex
	byKey map[ledger.Key]*callers
	// foreign counts those of byKey that have a record.
	foreign int
}

func newFlights() *flights { return &flights{byKey: make(map[ledger.Key]*callers)} }

// role is what a caller is to do. The zero value refuses.
type role uint8

const (
	roleRepeated role = iota
	roleLead
	roleJoin
)

// enter adds c to the callers of k, of which it must be none yet. A leader must call land
// once, and leave after it; a joiner must call leave. A repeated call isn't added.
func (f *flights) enter(k ledger.Key, c *call) (role, *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.byKey[k]
	if all == nil {
		all = new(callers)
		f.byKey[k] = all
	}
	for _, other := range all.calls {
		if repeats(c, other) {
			return roleRepeated, nil
		}
	}
	all.calls = append(all.calls, c)
	if all.active != nil {
		if all.active.landed == nil {
			all.active.landed = make(chan struct{})
		}
		all.active.users++
		return roleJoin, all.active
	}
	all.active = &flight{run: c.run, payload: c.payload, users: 1}
	return roleLead, all.active
}

// repeats reports whether c is a second intent beside other: the same managed
// run asks again while its earlier caller is still connected.
func repeats(c, other *call) bool {
	if c.run == "" || c.run != other.run || other.gone() {
		return false
	}
	return !c.replay && (c.clientKey == "" || c.clientKey != other.clientKey)
}

// land gives the flight's answer to those who wait for it.
func (f *flights) land(k ledger.Key, fl *flight, answer *reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl.answer = answer
	f.byKey[k].active = nil // The leader is a caller still.
	if fl.landed != nil {
		close(fl.landed)
	}
}

// works says on which record the callers of k are: another version of the rule may have made it, under
// another key.
func (f *flights) works(k, record ledger.Key) {
	if k == record {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.byKey[k]; all != nil {
		if all.record == nil {
			f.foreign++
		}
		all.record = &record
	}
}

// beside are those who are on a record by another key than own.
func (f *flights) beside(record, own ledger.Key) []*callers {
	var found []*callers
	if all := f.byKey[record]; all != nil && record != own {
		found = append(found, all)
	}
	if f.foreign == 0 {
		return found
	}
	for k, all := range f.byKey {
		if k != own && all.record != nil && *all.record == record {
			found = append(found, all)
		}
	}
	return found
}

// landing is closed when the work on a record that is under way by another key than own has landed; nil
// where there is none.
func (f *flights) landing(record, own ledger.Key) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.beside(record, own) {
		if all.active == nil {
			continue
		}
		if all.active.landed == nil {
			all.active.landed = make(chan struct{})
		}
		return all.active.landed
	}
	return nil
}

// repeated reports whether c, which is a caller of own, is a second intent beside one that is on the
// record by another key.
func (f *flights) repeated(record, own ledger.Key, c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, all := range f.beside(record, own) {
		if slices.ContainsFunc(all.calls, func(other *call) bool { return repeats(c, other) }) {
			return true
		}
	}
	return false
}

// done says that one user needs the flight's answer no longer. The last one gets its
// content, to close it.
func (f *flights) done(fl *flight) *dispatch.Content {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl.users--; fl.users > 0 || fl.answer == nil {
		return nil
	}
	return fl.answer.body
}

// leave removes c from the callers of k. A second call does nothing.
func (f *flights) leave(k ledger.Key, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.byKey[k]
	if all == nil {
		return
	}
	if i := slices.Index(all.calls, c); i >= 0 {
		all.calls = slices.Delete(all.calls, i, i+1)
	}
	if len(all.calls) == 0 {
		if all.record != nil {
			f.foreign--
		}
		delete(f.byKey, k)
	}
}
