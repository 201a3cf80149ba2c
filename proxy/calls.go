package proxy

import (
	"context"
	"slices"
	"sync"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
)

// keyCaller is one caller of a mutation key, from its arrival until its answer was delivered or it
// went away.
type keyCaller struct {
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

// gone reports whether the caller left without its answer. One that has all of the answer hasn't
// left in this sense, even before the delivery is noted. Another caller then asks again.
func (c *keyCaller) gone() bool {
	return hasGone(c.client) && (c.answer == nil || !c.answer.whole.Load())
}

// call is the work on one key: at most one at a time in this process.
type call struct {
	// run is the leader's, empty for an unmanaged scope.
	run     string
	payload string
	// answered is closed once answer is set; it is nil until somebody waits.
	answered chan struct{}
	answer   *reply
	// users counts the leader and those who wait, until each is done with the answer.
	users int
}

// callers are the live callers of one key.
type callers struct {
	active *call
	live   []*keyCaller
	// record is their record's key, if it is another one; see works.
	record *ledger.Key
}

// calls lets one caller of a key do the work while the others wait for its answer, as singleflight
// does. It also tells a repeat inside one run from a replay.
type calls struct {
	mu    sync.Mutex
	byKey map[ledger.Key]*callers
	// foreign counts those of byKey that have a record.
	foreign int
}

func newCalls() *calls { return &calls{byKey: make(map[ledger.Key]*callers)} }

// role is what a caller is to do. The zero value refuses.
type role uint8

const (
	roleRepeated role = iota
	roleLead
	roleWait
)

// enter adds c, which is new, to the callers of k. A leader must call answer once, and then leave. A
// waiting caller must call leave. A repeated one isn't added.
func (cs *calls) enter(k ledger.Key, c *keyCaller) (role, *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := cs.byKey[k]
	if all == nil {
		all = new(callers)
		cs.byKey[k] = all
	}
	for _, other := range all.live {
		if repeats(c, other) {
			return roleRepeated, nil
		}
	}
	all.live = append(all.live, c)
	if all.active != nil {
		if all.active.answered == nil {
			all.active.answered = make(chan struct{})
		}
		all.active.users++
		return roleWait, all.active
	}
	all.active = &call{run: c.run, payload: c.payload, users: 1}
	return roleLead, all.active
}

// repeats reports whether c is a second intent beside other. It is if its managed run asks again
// while the earlier caller is connected.
func repeats(c, other *keyCaller) bool {
	if c.run == "" || c.run != other.run || other.gone() {
		return false
	}
	return !c.replay && (c.clientKey == "" || c.clientKey != other.clientKey)
}

// answer ends the call and gives its answer to those who wait.
func (cs *calls) answer(k ledger.Key, call *call, answer *reply) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	call.answer = answer
	cs.byKey[k].active = nil // The leader is a caller still.
	if call.answered != nil {
		close(call.answered)
	}
}

// works notes which record the callers of k are on. Another version of the rule may have made it,
// under another key.
func (cs *calls) works(k, record ledger.Key) {
	if k == record {
		return
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if all := cs.byKey[k]; all != nil {
		if all.record == nil {
			cs.foreign++
		}
		all.record = &record
	}
}

// beside are the callers on a record by another key than own.
func (cs *calls) beside(record, own ledger.Key) []*callers {
	var found []*callers
	if all := cs.byKey[record]; all != nil && record != own {
		found = append(found, all)
	}
	if cs.foreign == 0 {
		return found
	}
	for k, all := range cs.byKey {
		if k != own && all.record != nil && *all.record == record {
			found = append(found, all)
		}
	}
	return found
}

// other is closed when the call of another key than own on the record is answered; nil for none.
func (cs *calls) other(record, own ledger.Key) <-chan struct{} {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, all := range cs.beside(record, own) {
		if all.active == nil {
			continue
		}
		if all.active.answered == nil {
			all.active.answered = make(chan struct{})
		}
		return all.active.answered
	}
	return nil
}

// repeated reports whether c, a caller of own, is a second intent beside another key's caller on
// the record.
func (cs *calls) repeated(record, own ledger.Key, c *keyCaller) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, all := range cs.beside(record, own) {
		if slices.ContainsFunc(all.live, func(other *keyCaller) bool { return repeats(c, other) }) {
			return true
		}
	}
	return false
}

// done says that one user no longer needs the call's answer. The last one gets its content, to close
// it.
func (cs *calls) done(call *call) *dispatch.Content {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if call.users--; call.users > 0 || call.answer == nil {
		return nil
	}
	return call.answer.body
}

// leave removes c from the callers of k. A second call does nothing.
func (cs *calls) leave(k ledger.Key, c *keyCaller) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := cs.byKey[k]
	if all == nil {
		return
	}
	if i := slices.Index(all.live, c); i >= 0 {
		all.live = slices.Delete(all.live, i, i+1)
	}
	if len(all.live) == 0 {
		if all.record != nil {
			cs.foreign--
		}
		delete(cs.byKey, k)
	}
}
