package oracle

import (
	"encoding/json"
	"time"
)

// Kind says what an event tells. An unknown kind in a file is an error of
// [Read].
type Kind string

// The kinds of events, in the order in which one request meets them.
const (
	// KindHead: the head of a request has arrived; nothing else was read yet.
	// Its absence proves that the upstream saw nothing at all.
	KindHead Kind = "head"
	// KindReceived: the body was read as far as it came (Complete).
	KindReceived Kind = "received"
	// KindHeld: a fault holds the request at the gate named by Gate.
	KindHeld Kind = "held"
	// KindEffect: the upstream committed a change. Synced.
	KindEffect Kind = "effect"
	// KindKept: a result was kept under a vendor key with no effect of its own. A failure that the vendor replays is
	// one. Synced.
	KindKept Kind = "kept"
	// KindAnswered: an answer was written, as far as the writer could tell.
	KindAnswered Kind = "answered"
	// KindEnded: the request's handling is over, whatever became of it.
	KindEnded Kind = "ended"
)

// synced reports whether an event of this kind must be durable before the
// upstream goes on.
func (k Kind) synced() bool { return k == KindEffect || k == KindKept }

func (k Kind) known() bool {
	switch k {
	case KindHead, KindReceived, KindHeld, KindEffect, KindKept, KindAnswered, KindEnded:
		return true
	}
	return false
}

// Event is one line of the file.
type Event struct {
	// Seq is the event's line number, from 1. It is set when the file is read.
	Seq int64 `json:"-"`
	// At is the time of the writer's clock.
	At time.Time `json:"at"`
	// Kind says what happened.
	Kind Kind `json:"kind"`
	// Request joins the events of one received request; it is unique in a file.
	Request string `json:"request,omitempty"`
	// Identity names what is changed, in the words of the upstream's own
	// documentation ("transfer:R-17"). It is empty for a read.
	Identity string `json:"identity,omitempty"`
	// Method, Target and Proto are the request's, Target with its query.
	Method string `json:"method,omitempty"`
	Target string `json:"target,omitempty"`
	Proto  string `json:"proto,omitempty"`
	// Host is the request's authority.
	Host string `json:"host,omitempty"`
	// Header holds the request's fields, repeated ones joined by ", ".
	// Credentials appear as "sha256:" and a digest of their value.
	Header map[string]string `json:"header,omitempty"`
	// Key is the vendor's idempotency key, if the request carried one.
	Key string `json:"key,omitempty"`
	// Digest is the hexadecimal SHA-256 of the request's body.
	Digest string `json:"digest,omitempty"`
	// Length is the number of body bytes that were read.
	Length int64 `json:"length,omitempty"`
	// Body is the request's body, at most [MaxBody] bytes of it.
	Body []byte `json:"body,omitempty"`
	// Complete says that the body was read to its end.
	Complete bool `json:"complete,omitempty"`
	// Gate is the name of the gate at which a request is held.
	Gate string `json:"gate,omitempty"`
	// Fault is the name of the fault that handles the request.
	Fault string `json:"fault,omitempty"`
	// Status is the answer's status.
	Status int `json:"status,omitempty"`
	// Kept is the answer that the vendor keeps under Key.
	Kept *Kept `json:"kept,omitempty"`
	// Details is the effect in the upstream's own form.
	Details json.RawMessage `json:"details,omitempty"`
}

// MaxBody is how many bytes of a request's body an event holds.
const MaxBody = 16 << 10

// Kept is an answer that a vendor keeps under an idempotency key.
type Kept struct {
	Scope  string            `json:"scope,omitempty"` // the account that the key belongs to
	Key    string            `json:"key"`
	Digest string            `json:"digest"` // of the request that the answer belongs to
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   []byte            `json:"body,omitempty"`
}
