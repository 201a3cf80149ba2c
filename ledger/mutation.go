package ledger

import (
	"encoding/hex"
	"fmt"
	"time"

	"keep-proxy/internal/verdict"
)

// Key identifies a mutation; see MutationKey.
type Key [32]byte

// String returns the key as 64 lower-case hex digits.
func (k Key) String() string {
	var digits [2 * len(k)]byte
	hex.Encode(digits[:], k[:])
	return string(digits[:])
}

// MarshalText writes the key as hex.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads 64 hex digits.
func (k *Key) UnmarshalText(b []byte) error {
	if len(b) != hex.EncodedLen(len(k)) {
		return fmt.Errorf("mutation key: want %d hex digits, got %d", hex.EncodedLen(len(k)), len(b))
	}
	if _, err := hex.Decode(k[:], b); err != nil {
		return fmt.Errorf("mutation key: %w", err)
	}
	return nil
}

// ID is the name for people: "m-" and the first 20 hex digits of the key.
func (k Key) ID() string {
	id := [22]byte{'m', '-'}
	hex.Encode(id[2:], k[:10])
	return string(id[:])
}

// Scope is on whose behalf a mutation is made.
type Scope struct {
	Workflow string `cbor:"81,keyasint" json:"workflow"`
	Item     string `cbor:"82,keyasint" json:"item"`
	Attempt  int    `cbor:"83,keyasint" json:"attempt"`
	// Run is empty for an unmanaged scope.
	Run string `cbor:"84,keyasint,omitempty" json:"run,omitempty"`
}

// Header maps a field name to its values, in the order received.
type Header map[string][]string

// Body refers to stored content, which can be dropped. The zero value is an empty body.
type Body struct {
	// SHA256 is the hex digest of the whole content; empty for no content.
	SHA256 string `cbor:"1,keyasint,omitempty" json:"sha256,omitempty"`
	// Size is in bytes.
	Size int64 `cbor:"2,keyasint,omitempty" json:"size,omitempty"`
	// Dropped is set when retention removed the content.
	Dropped bool `cbor:"3,keyasint,omitempty" json:"dropped,omitempty"`
}

// Request is what was judged, without credentials and with secret places masked.
type Request struct {
	Method string `cbor:"1,keyasint"           json:"method"`
	URL    string `cbor:"2,keyasint"           json:"url"`
	Header Header `cbor:"3,keyasint,omitempty" json:"headers,omitempty"`
	Body   Body   `cbor:"4,keyasint"           json:"body"`
}

// Result is the answer that a replay gives.
type Result struct {
	Status int    `cbor:"1,keyasint"           json:"status"`
	Header Header `cbor:"2,keyasint,omitempty" json:"headers,omitempty"`
	Body   Body   `cbor:"3,keyasint"           json:"body"`
	// Source says where it comes from: "answer", "observation" or "person".
	Source string `cbor:"4,keyasint,omitempty" json:"source,omitempty"`
	// Trailer holds the trailer fields (RFC 9110 §6.5) that came behind the body.
	Trailer Header `cbor:"5,keyasint,omitempty" json:"trailers,omitempty"`
}

// Policy is what rule and configuration said at the last claim, or more careful since (Caution). It moves the record
// on without the rule.
type Policy struct {
	// Reconciler says that a strategy other than none exists.
	Reconciler bool `cbor:"1,keyasint" json:"reconciler"`
	// Resend says that resend is one of the strategies.
	Resend bool `cbor:"2,keyasint,omitempty" json:"resend,omitempty"`
	// NativeKey says that the API dedupes on our vendor key.
	NativeKey bool `cbor:"3,keyasint,omitempty" json:"native_key,omitempty"`
	// KeyFormat and KeyMaxLength shape the vendor key, see VendorKey.
	KeyFormat    string `cbor:"4,keyasint,omitempty" json:"key_format,omitempty"`
	KeyMaxLength int    `cbor:"5,keyasint,omitempty" json:"key_max_length,omitempty"`
	// KeyWindow is how long the API remembers the vendor key.
	KeyWindow     time.Duration `cbor:"6,keyasint,omitempty" json:"key_window,omitempty"`
	BlockScope    BlockScope    `cbor:"7,keyasint"           json:"block_scope"`
	OnAbsent      OnAbsent      `cbor:"8,keyasint"           json:"on_absent"`
	Settle        time.Duration `cbor:"9,keyasint"           json:"settle"`
	Confirmations int           `cbor:"10,keyasint"          json:"absent_confirmations"`
	Spacing       time.Duration `cbor:"11,keyasint"          json:"absent_spacing"`
	// MaxDispatches is the number of sendings, without resends, after which an absence no longer queues another. The
	// default is DefaultMaxDispatches.
	MaxDispatches int `cbor:"12,keyasint,omitempty" json:"max_dispatches,omitempty"`
	// WatchEvery, WatchMax and WatchClass say how a 202 is followed, and the class of its failure.
	WatchEvery time.Duration `cbor:"13,keyasint,omitempty" json:"watch_every,omitempty"`
	WatchMax   time.Duration `cbor:"14,keyasint,omitempty" json:"watch_max,omitempty"`
	WatchClass verdict.Class `cbor:"15,keyasint,omitempty" json:"watch_class,omitempty"`
	// ResultLimit is the longest answer kept, in bytes.
	ResultLimit int64 `cbor:"16,keyasint,omitempty" json:"result_limit,omitempty"`
	// Prepares says that nothing takes effect before what the first steps gave is kept.
	Prepares bool `cbor:"17,keyasint,omitempty" json:"prepares,omitempty"`
	// Natural says that Resend needs no vendor key: setting the state again changes nothing.
	Natural bool `cbor:"18,keyasint,omitempty" json:"natural,omitempty"`
	// Idempotent says that sending it again is always safe. Only an undo can be.
	Idempotent bool `cbor:"20,keyasint,omitempty" json:"idempotent,omitempty"`
	// OnFailure of the run decides what a definite failure does; it is not here.
}

// OnAbsent says what a believed absence leads to. The zero value is AbsentEscalate.
type OnAbsent string

const (
	// AbsentFail moves the record to Failed: safe to attempt again.
	AbsentFail OnAbsent = "fail"
	// AbsentRedispatch moves it to Failed, and sends it again while RedispatchOpen.
	AbsentRedispatch OnAbsent = "redispatch"
	// AbsentEscalate moves it to Indeterminate.
	AbsentEscalate OnAbsent = "escalate"
)

// Mutation is one record: one intended effect. The number in a cbor tag is never used for another field.
type Mutation struct {
	Version int64 `cbor:"3,keyasint" json:"version"`
	Intent
	Payload
	Outcome
	Asking
	Question
	CreatedAt time.Time `cbor:"28,keyasint" json:"created_at"`
	UpdatedAt time.Time `cbor:"29,keyasint" json:"updated_at"`
	// Forgotten is when retention dropped the contents; zero while they are kept.
	Forgotten time.Time `cbor:"44,keyasint,omitzero" json:"forgotten,omitzero"`
}

// Intent is which effect is meant, by which rule, for whom, and the names under which it is sent.
type Intent struct {
	Key              Key    `cbor:"1,keyasint" json:"key"`
	ID               string `cbor:"2,keyasint" json:"id"`
	Connector        string `cbor:"8,keyasint" json:"connector"`
	ConnectorVersion int    `cbor:"9,keyasint" json:"connector_version"`
	// ConnectorHash names the pinned content of the rule file (Tx.Connector).
	ConnectorHash string `cbor:"10,keyasint" json:"connector_hash"`
	// ConnectorHosts are the hosts in force then, from which host variables were read: these are in the key.
	ConnectorHosts string `cbor:"50,keyasint,omitempty" json:"connector_hosts,omitempty"`
	Operation      string `cbor:"11,keyasint"           json:"operation"`
	// Target is the operation in the rule's words ("Refund 12 of pi_1").
	Target  string `cbor:"12,keyasint,omitempty" json:"target,omitempty"`
	Account string `cbor:"13,keyasint,omitempty" json:"account,omitempty"`
	// HostGroup is part of the key, see KeyParts.
	HostGroup string `cbor:"14,keyasint,omitempty" json:"host_group,omitempty"`
	// Identity holds canonical JSON by name.
	Identity map[string]string `cbor:"15,keyasint,omitempty" json:"identity,omitempty"`
	Subkey   string            `cbor:"16,keyasint,omitempty" json:"subkey,omitempty"`
	Scope
	Marker     string `cbor:"22,keyasint,omitempty" json:"marker,omitempty"`
	VendorKey  string `cbor:"23,keyasint,omitempty" json:"vendor_key,omitempty"`
	Generation int    `cbor:"24,keyasint"           json:"generation"`
	// KeyKnown is the longest Policy.KeyWindow of the earlier rules that it was sent by.
	KeyKnown time.Duration `cbor:"48,keyasint,omitempty" json:"key_known,omitempty"`
	// Remade is how many records of the key were removed before; each gets other markers and vendor keys.
	Remade int `cbor:"51,keyasint,omitempty" json:"remade,omitempty"`
	// Undo is set for an obligation: a mutation that takes an effect of another one back.
	Undo *Undo `cbor:"46,keyasint,omitempty" json:"undo,omitempty"`
}

// Payload is what was asked for, what else counts as the same, and what the rule says of it.
type Payload struct {
	// Equal payload digests are the same payload, equal significant ones differ in minor places only.
	PayloadDigest     string `cbor:"17,keyasint" json:"payload_digest"`
	SignificantDigest string `cbor:"18,keyasint" json:"significant_digest"`
	// Accepted holds payload digests which a person accepted as covered.
	Accepted []string `cbor:"19,keyasint,omitempty" json:"accepted,omitempty"`
	// Disputed is the digest of the last payload that was refused; accept_payload moves it to Accepted.
	Disputed string `cbor:"20,keyasint,omitempty" json:"disputed,omitempty"`
	// Diff says how that request differed; it stays when the payload is accepted.
	Diff    *Diff   `cbor:"21,keyasint,omitempty" json:"diff,omitempty"`
	Request Request `cbor:"38,keyasint"           json:"request"`
	Policy  Policy  `cbor:"37,keyasint"           json:"policy"`
	// Unmarked says that the marker has no room in it, and is left out.
	Unmarked bool `cbor:"53,keyasint,omitempty" json:"unmarked,omitempty"`
}

// Outcome is what came of it: its state, each sending, and the answer.
type Outcome struct {
	State State `cbor:"4,keyasint" json:"state"`
	// Committed says that success is known. Then absence, "it did not happen" and dispatches are closed.
	Committed   bool        `cbor:"5,keyasint,omitempty" json:"committed,omitempty"`
	ResultState ResultState `cbor:"6,keyasint,omitempty" json:"result_state,omitempty"`
	// Watching marks a 202 that is followed to its end; it stops nothing.
	Watching bool          `cbor:"7,keyasint,omitempty"  json:"watching,omitempty"`
	Class    verdict.Class `cbor:"25,keyasint,omitempty" json:"class,omitempty"`
	Reason   string        `cbor:"26,keyasint,omitempty" json:"reason,omitempty"`
	// RetryAfter is the earliest time at which the API wants to be asked again.
	RetryAfter time.Time `cbor:"27,keyasint,omitzero" json:"retry_after,omitzero"`
	// UnknownSince is when the outcome became unknown, or the mutation was accepted.
	UnknownSince Stamp      `cbor:"35,keyasint,omitzero"  json:"unknown_since,omitzero"`
	Dispatches   []Dispatch `cbor:"40,keyasint,omitempty" json:"dispatches,omitempty"`
	// SentTo is the second address to which it was sent last, "" for its own. MovedTo is what a last answer 307 or 308 names.
	SentTo  string `cbor:"54,keyasint,omitempty" json:"sent_to,omitempty"`
	MovedTo string `cbor:"55,keyasint,omitempty" json:"moved_to,omitempty"`
	// Kept holds what the newest dispatch's preparing steps gave, as canonical JSON; see Prepared.
	Kept   map[string]string `cbor:"45,keyasint,omitempty" json:"kept,omitempty"`
	Result *Result           `cbor:"39,keyasint,omitempty" json:"result,omitempty"`
	// Verification is set once the world did not agree with the stored result.
	Verification *Verification `cbor:"43,keyasint,omitempty" json:"verification,omitempty"`
	// Obligations are the mutations that take effects of this one back, in their order.
	Obligations []Key `cbor:"47,keyasint,omitempty" json:"obligations,omitempty"`
}

// Asking says when the runner asks or sends next, how often it did, and what was seen.
type Asking struct {
	// NextTryAt is when the runner is due (Queued only).
	NextTryAt time.Time `cbor:"30,keyasint,omitzero" json:"next_try_at,omitzero"`
	// RedispatchSince is when an absence queued a failed record to be sent again; zero for none.
	RedispatchSince time.Time `cbor:"31,keyasint,omitzero" json:"redispatch_since,omitzero"`
	// Tries counts tries that reached the API, from the beginning or from a person's check_again.
	Tries int `cbor:"32,keyasint,omitempty" json:"tries,omitempty"`
	// ResendClosed is set after a resend that failed, or after three.
	ResendTries  int           `cbor:"33,keyasint,omitempty" json:"resend_tries,omitempty"`
	ResendClosed bool          `cbor:"34,keyasint,omitempty" json:"resend_closed,omitempty"`
	RunningAge   time.Duration `cbor:"36,keyasint,omitempty" json:"running_age,omitempty"`
	Observations []Observation `cbor:"41,keyasint,omitempty" json:"observations,omitempty"`
	// Dropped is how many observations are listed no more.
	Dropped int `cbor:"49,keyasint,omitempty" json:"dropped,omitempty"`
}

// Question is what a person is asked.
type Question struct {
	Escalation *Escalation `cbor:"42,keyasint,omitempty" json:"escalation,omitempty"`
	// Displaced are open questions whose place Escalation took. They are asked again after it.
	Displaced []Escalation `cbor:"52,keyasint,omitempty" json:"displaced,omitempty"`
}

// Dispatch is one sending of a mutation.
type Dispatch struct {
	// ID is made before the claim, so that an ambiguous commit can be read again.
	ID string `cbor:"1,keyasint" json:"id"`
	// Owner is the process that sends it.
	Owner      string `cbor:"2,keyasint"           json:"owner"`
	Run        string `cbor:"3,keyasint,omitempty" json:"run,omitempty"`
	Generation int    `cbor:"4,keyasint"           json:"generation"`
	// Resend says that it was made by the resend strategy.
	Resend bool `cbor:"5,keyasint,omitempty" json:"resend,omitempty"`
	// Redispatch says that a believed absence made it, without a script's asking.
	Redispatch    bool   `cbor:"6,keyasint,omitempty" json:"redispatch,omitempty"`
	PayloadDigest string `cbor:"7,keyasint"           json:"payload_digest"`
	// Gap is the number of the gap in which it may have been made; 0 for a known sending.
	Gap int `cbor:"25,keyasint,omitempty" json:"gap,omitempty"`
	// Gaps is how many gaps the ledger knew of when it was made: it came after these.
	Gaps int `cbor:"28,keyasint,omitempty" json:"gaps,omitempty"`
	// ClientKey is the digest of the client's own Idempotency-Key, if it sent one.
	ClientKey string `cbor:"8,keyasint,omitempty" json:"client_key,omitempty"`
	Started   Stamp  `cbor:"9,keyasint"           json:"started"`
	// Ended is zero until the end was recorded. A lost owner's dispatch keeps it zero.
	Ended Stamp `cbor:"10,keyasint,omitzero" json:"ended,omitzero"`
	// Lost says that its owner was lost before an end was recorded.
	Lost bool `cbor:"11,keyasint,omitempty" json:"lost,omitempty"`
	// Verdict is empty until judged; see the Verdict constants.
	Verdict Verdict       `cbor:"12,keyasint,omitempty" json:"verdict,omitempty"`
	Class   verdict.Class `cbor:"13,keyasint,omitempty" json:"class,omitempty"`
	Reason  string        `cbor:"14,keyasint,omitempty" json:"reason,omitempty"`
	// Resolved says that its own verdict, an absence or a person answers for it.
	Resolved bool `cbor:"15,keyasint,omitempty" json:"resolved,omitempty"`
	// PassedOn marks a 307, a 308 or a question that was handed to the script.
	PassedOn bool `cbor:"16,keyasint,omitempty" json:"passed_on,omitempty"`

	Wire

	// Prepares says that it has preparing steps. Prepared says that their results were kept: only then the last step
	// is sent.
	Prepares bool `cbor:"26,keyasint,omitempty" json:"prepares,omitempty"`
	Prepared bool `cbor:"27,keyasint,omitempty" json:"prepared,omitempty"`
}

// Wire is what was seen of a sending on the wire.
type Wire struct {
	BytesWritten int64  `cbor:"17,keyasint"           json:"bytes_written"`
	Head         bool   `cbor:"18,keyasint"           json:"head"`
	Status       int    `cbor:"19,keyasint,omitempty" json:"status,omitempty"`
	BodyComplete bool   `cbor:"20,keyasint"           json:"body_complete"`
	ErrorClass   string `cbor:"21,keyasint,omitempty" json:"error_class,omitempty"`
	Error        string `cbor:"22,keyasint,omitempty" json:"error,omitempty"`
	Protocol     string `cbor:"23,keyasint,omitempty" json:"protocol,omitempty"`
	Remote       string `cbor:"24,keyasint,omitempty" json:"remote,omitempty"`
}

// unsent reports whether the step that can take effect is proven not to have been sent.
func (d *Dispatch) unsent() bool { return d.Prepares && !d.Prepared }

// Verdict is how one dispatch ended. The zero value means not judged yet.
type Verdict string

const (
	// VerdictApplied: success, with its whole answer (or one over the limit).
	VerdictApplied Verdict = "applied"
	// VerdictCommitted: success, the answer's body was lost.
	VerdictCommitted Verdict = "committed"
	// VerdictAccepted: a whole 202 that is followed; it resolves nothing by itself.
	VerdictAccepted Verdict = "accepted"
	// VerdictFailed: a definite failure verdict.
	VerdictFailed Verdict = "failed"
	// VerdictNotSent: nothing was sent, or processed by the upstream's own word; a failure.
	VerdictNotSent Verdict = "not_sent"
	// VerdictUncertain: any other end.
	VerdictUncertain Verdict = "uncertain"
)

// Failure reports whether v is a definite failure verdict, proven not sent included.
func (v Verdict) Failure() bool { return v == VerdictFailed || v == VerdictNotSent }

// Seen is what one reconcile try saw. The zero value is SeenRetry.
type Seen string

const (
	// SeenRetry: nothing can be said; ask again.
	SeenRetry Seen = "retry"
	// SeenApplied: the effect is there.
	SeenApplied Seen = "applied"
	// SeenAbsent: the effect is not there; believed only as docs/semantics.md says.
	SeenAbsent Seen = "absent"
	// SeenFailed: what a 202 accepted failed for good.
	SeenFailed Seen = "failed"
	// SeenDuplicate: the effect is there more than once.
	SeenDuplicate Seen = "duplicate"
)

// Observation is what a reconciler saw.
type Observation struct {
	// At is when the asking started: absence counts from there.
	At       Stamp  `cbor:"1,keyasint"           json:"at"`
	Strategy string `cbor:"2,keyasint"           json:"strategy"`
	Seen     Seen   `cbor:"3,keyasint"           json:"seen"`
	Reason   string `cbor:"4,keyasint,omitempty" json:"reason,omitempty"`
	// Evidence is readable and free of secrets.
	Evidence string `cbor:"5,keyasint,omitempty" json:"evidence,omitempty"`
	// Objects are the upstream's ids of what was found, oldest first.
	Objects []string `cbor:"6,keyasint,omitempty" json:"objects,omitempty"`
	// Strong says that the tie is vendor_key or marker.
	Strong bool `cbor:"7,keyasint,omitempty" json:"strong,omitempty"`
	// Counted says that it is one of the confirmations of absence.
	Counted bool `cbor:"8,keyasint,omitempty" json:"counted,omitempty"`
	// Voided says that a later dispatch made it worthless.
	Voided bool `cbor:"9,keyasint,omitempty" json:"voided,omitempty"`
}

// Unresolved reports whether the outcome is unknown, so that it stops its block scope. A watching record isn't, nor
// is one in flight before a dispatch ended uncertain, lost its answer or its owner.
func (m *Mutation) Unresolved() bool {
	switch m.State {
	case NeedsReconcile, Indeterminate:
		return !m.Watching
	case InFlight:
		return len(m.Dispatches) == 0 || m.unknownAmong(len(m.Dispatches))
	case Applied, Failed, Skipped:
		return false
	}
	return true
}

// Queued reports whether the runner has the record, to be asked about or sent.
func (m *Mutation) Queued() bool {
	return m.State == NeedsReconcile || m.State == Failed && !m.RedispatchSince.IsZero()
}

// unknownAmong reports whether one of the first n dispatches ended without its effect or answer being known.
func (m *Mutation) unknownAmong(n int) bool {
	for _, d := range m.Dispatches[:n] {
		if !d.Resolved && (d.Lost || d.Verdict == VerdictUncertain || d.Verdict == VerdictCommitted) {
			return true
		}
	}
	return false
}

// Current returns the newest dispatch, nil if there is none.
func (m *Mutation) Current() *Dispatch {
	if len(m.Dispatches) == 0 {
		return nil
	}
	return &m.Dispatches[len(m.Dispatches)-1]
}

// Dispatch returns the dispatch with this id, nil if there is none.
func (m *Mutation) Dispatch(id string) *Dispatch {
	for i := range m.Dispatches {
		if m.Dispatches[i].ID == id {
			return &m.Dispatches[i]
		}
	}
	return nil
}
