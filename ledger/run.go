package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"keep-proxy/internal/verdict"
)

// RunState is where a run stands. The zero value is invalid.
type RunState string

const (
	// RunRunning: the script may read and mutate.
	RunRunning RunState = "running"
	// RunFailing: for a grace after a transient failure or a 401 only what failed may be claimed.
	RunFailing RunState = "failing"
	// RunFinished: ended by finish with outcome done.
	RunFinished RunState = "finished"
	// RunAborted: over; class and reason say why.
	RunAborted RunState = "aborted"
	// RunPausedReconciliation: it caused an unknown outcome; over.
	RunPausedReconciliation RunState = "paused:reconciliation"
	// RunPausedAttention: a payload mismatch or refused drift; over.
	RunPausedAttention RunState = "paused:attention"
)

// Ended reports whether the run is over. An unknown state is.
func (s RunState) Ended() bool { return s != RunRunning && s != RunFailing }

// Mutations is how many different mutations a run may make.
type Mutations string

const (
	// MutationsMany is the default.
	MutationsMany Mutations = "many"
	// MutationsOne lets only the same mutation and reads pass after the first.
	MutationsOne Mutations = "one"
	// MutationsNone admits reads only.
	MutationsNone Mutations = "none"
)

// OnFailure is what a definite failure does to the run.
type OnFailure string

const (
	// FailureAbort ends the run; the default.
	FailureAbort OnFailure = "abort"
	// FailureReturn hands the answer to the script and goes on.
	FailureReturn OnFailure = "return"
)

// Run is one execution of the script.
type Run struct {
	ID       string `json:"id"`
	Version  int64  `json:"version"`
	Workflow string `json:"workflow"`
	Item     string `json:"item"`
	Attempt  int    `json:"attempt"`
	Once     bool   `json:"once,omitempty"`
	// ItemDone says that the item was over when the run was opened, which reads only.
	ItemDone bool `json:"item_done,omitempty"`
	// Items is ItemsMany for a run without an item of its own.
	Items Items    `json:"items,omitempty"`
	State RunState `json:"state"`
	// Closing is set while such a run is being finished: it claims nothing any more.
	Closing string        `json:"closing,omitempty"`
	Class   verdict.Class `json:"class,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	// Cause is the mutation that ended or stopped the run, if one did.
	Cause      string            `json:"cause,omitempty"`
	Mutations  Mutations         `json:"mutations"`
	OnFailure  OnFailure         `json:"on_failure"`
	BlockScope BlockScope        `json:"block_scope,omitempty"`
	Title      string            `json:"title,omitempty"`
	ResumeHint string            `json:"resume_hint,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// TokenSHA256 is the digest of the token, which is never stored.
	TokenSHA256 string    `json:"token_sha256"`
	OpenedAt    time.Time `json:"opened_at"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	// Only is the single mutation of a run with MutationsOne, once it has one.
	Only *Key `json:"only,omitempty"`
	// Failing is the mutation whose grace ends first, of those by which a run is RunFailing. FailingMore are the others.
	Failing
	FailingMore []Failing `json:"failing_more,omitempty"`
	// Steady are the operations ("connector/operation") of which the run needs no further look for drift.
	Steady []string `json:"steady,omitempty"`
	// Refused are requests that it was refused and that didn't get through since. RefusedMore says that there were more
	// than are listed.
	Refused     []Refused `json:"refused,omitempty"`
	RefusedMore bool      `json:"refused_more,omitempty"`
	// Tolerate are refusals that are meant, as CODE:HOST.
	Tolerate []string `json:"tolerate,omitempty"`
	// Traffic says that a request of the run came to the proxy. With RequireTraffic it isn't done before that.
	Traffic        bool `json:"traffic,omitempty"`
	RequireTraffic bool `json:"require_traffic,omitempty"`
	// Observed counts its requests of no connector that were let through.
	Observed int `json:"observed,omitempty"`
	// Passthrough lets a run with MutationsNone open blind tunnels.
	Passthrough bool `json:"passthrough,omitempty"`
}

// Failing is a mutation that failed for the moment, with its grace.
type Failing struct {
	FailingKey    Key           `json:"failing_key,omitzero"`
	FailingDigest string        `json:"failing_digest,omitempty"`
	FailingUntil  time.Time     `json:"failing_until,omitzero"`
	FailingTries  int           `json:"failing_tries,omitempty"`
	FailingLimit  time.Time     `json:"failing_limit,omitzero"` // the latest that FailingUntil may become
	FailingClass  verdict.Class `json:"failing_class,omitempty"`
	FailingReason string        `json:"failing_reason,omitempty"`
}

// ItemState is where a unit of work stands. The zero value is invalid.
type ItemState string

const (
	// ItemOpen may be worked on.
	ItemOpen ItemState = "open"
	// ItemDone can't produce new effects.
	ItemDone ItemState = "done"
	// ItemFailed: its last run was aborted after a definite failure; a new run opens it.
	ItemFailed ItemState = "failed"
	// ItemNeedsAttention admits no run until a person decided.
	ItemNeedsAttention ItemState = "needs_attention"
	// ItemSkipped is as done.
	ItemSkipped ItemState = "skipped"
)

// ItemStates lists the states of an item.
func ItemStates() []ItemState {
	return []ItemState{ItemOpen, ItemFailed, ItemNeedsAttention, ItemDone, ItemSkipped}
}

// Item is the unit of work that must not be done twice.
type Item struct {
	ID       string    `json:"id"`
	Version  int64     `json:"version"`
	Workflow string    `json:"workflow"`
	Item     string    `json:"item"`
	State    ItemState `json:"state"`
	Attempt  int       `json:"attempt"`
	Title    string    `json:"title,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	// Cause is the mutation that needs attention, if one does.
	Cause string `json:"cause,omitempty"`
	// ActiveRun is the running run of the current attempt, if any.
	ActiveRun string `json:"active_run,omitempty"`
	// Shared says that this run works on many items.
	Shared    bool      `json:"shared,omitempty"`
	OpenedAt  time.Time `json:"opened_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// Changes are the latest decisions on the item, oldest first.
	Changes []ItemChange `json:"changes,omitempty"`
	// Rules are the versions of rules under which the item has mutations; nil if they aren't known.
	Rules []ItemRule `json:"rules,omitempty"`
	// Drifts are the operations of which a person accepted drifts in the current attempt.
	Drifts []string `json:"drifts,omitempty"`
	// Redirected are its latest mutations that have, or had, a second address.
	Redirected []Key `json:"redirected,omitempty"`
	// Gaps is how many gaps the ledger knew of when the item came: it came after these.
	Gaps int `json:"gaps,omitempty"`
}

// Escalation is an open question to a person, inside its mutation.
type Escalation struct {
	ID string `cbor:"1,keyasint" json:"id"`
	// Number counts the escalations of one mutation from 1.
	Number int    `cbor:"2,keyasint" json:"number"`
	Kind   string `cbor:"3,keyasint" json:"kind"`
	// Why says in one sentence why a person is asked.
	Why      string    `cbor:"4,keyasint"           json:"why"`
	OpenedAt time.Time `cbor:"5,keyasint"           json:"opened_at"`
	ClosedAt time.Time `cbor:"6,keyasint,omitzero"  json:"closed_at,omitzero"`
	ClosedBy string    `cbor:"7,keyasint,omitempty" json:"closed_by,omitempty"`
	// AskedAgain is when it was shown again, after another question had displaced it.
	AskedAgain time.Time `cbor:"8,keyasint,omitzero" json:"asked_again,omitzero"`
}

// Kinds of escalation.
const (
	EscalationIndeterminate = "indeterminate"
	EscalationNoResult      = "no_result"
	EscalationMismatch      = "payload_mismatch"
	EscalationPermission    = "permission"
	EscalationPrecondition  = "precondition"
	// EscalationVerify asks about an applied mutation whose effect is not as it was.
	EscalationVerify = "verify"
	// EscalationAbsent tells that what should send itself again isn't sent; it stops nothing.
	EscalationAbsent = "absent"
	// EscalationDrift asks whether a re-run may do something else, EscalationAmbiguous which of two records is
	// meant. They stop the item, or the request.
	EscalationDrift     = "drift"
	EscalationAmbiguous = "ambiguous_record"
	// EscalationDuplicate tells that the newer ones of several effects have to be undone; it stops nothing.
	EscalationDuplicate = "duplicate"
	// EscalationUndo tells that an undo didn't succeed by itself; it stops nothing.
	EscalationUndo = "undo"
)

// EscalationKinds are all kinds of escalation.
func EscalationKinds() []string {
	return []string{
		EscalationIndeterminate, EscalationNoResult, EscalationMismatch, EscalationPermission, EscalationPrecondition,
		EscalationVerify, EscalationAbsent, EscalationDrift, EscalationAmbiguous, EscalationDuplicate, EscalationUndo,
	}
}

// ItemID is the name for people: "i-" and 20 hex digits, of workflow and item alone.
func ItemID(workflow, item string) string {
	sum := sha256.Sum256([]byte("keep/v1 item\x00" + workflow + "\x00" + item))
	return "i-" + hex.EncodeToString(sum[:10])
}

// newItem is an item at its first attempt, not stored yet. A ledger without gaps has no mutation of it.
func (c *command) newItem(workflow, item string) (*Item, error) {
	i := &Item{
		ID: ItemID(workflow, item), Workflow: workflow, Item: item,
		State: ItemOpen, Attempt: 1, OpenedAt: c.now.Wall,
	}
	gaps, err := c.Gaps()
	i.Gaps = len(gaps)
	if err == nil && len(gaps) == 0 {
		i.Rules = []ItemRule{}
	}
	return i, err
}

// mutationsOf reads the mutations of an item, the oldest first.
func mutationsOf(v View, workflow, item string) ([]*Mutation, error) {
	keys, err := v.ItemMutations(workflow, item)
	list := make([]*Mutation, len(keys))
	for i := 0; err == nil && i < len(keys); i++ {
		list[i], err = v.Mutation(keys[i])
	}
	return list, err
}

// putItem stores the next version of i.
func (c *command) putItem(i *Item) error {
	i.Version++
	i.UpdatedAt = c.now.Wall
	return c.PutItem(i)
}

// putRun stores the next version of r.
func (c *command) putRun(r *Run) error {
	r.Version++
	return c.PutRun(r)
}

// needAttention makes an item that is open or failed wait for a person because of m, in its attempt.
func (c *command) needAttention(m *Mutation, why string) error {
	item, err := c.Item(m.Workflow, m.Item)
	if err != nil || item.Attempt != m.Attempt || item.State != ItemOpen && item.State != ItemFailed {
		return err
	}
	item.State, item.Reason, item.Cause = ItemNeedsAttention, why, m.ID
	return c.putItem(item)
}

// attended opens the item again if it waited for m, unless another question about it keeps it waiting.
func (c *command) attended(m *Mutation) error {
	item, err := found(c.Item(m.Workflow, m.Item))
	if err != nil || item == nil || item.State != ItemNeedsAttention || item.Cause != m.ID || item.heldByLoss() {
		return err
	}
	if m.asks(EscalationMismatch) || m.asks(EscalationDrift) || m.asks(EscalationVerify) {
		return nil
	}
	item.State, item.Reason, item.Cause = ItemOpen, "", ""
	return c.putItem(item)
}
