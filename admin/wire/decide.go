package wire

import "time"

// EscalationRef is a question to a person, as its mutation shows it.
type EscalationRef struct {
	ID       string    `json:"id"`
	Kind     string    `json:"kind"`
	Why      string    `json:"why"`
	OpenedAt time.Time `json:"opened_at"`
	ClosedAt time.Time `json:"closed_at,omitzero"`
	ClosedBy string    `json:"closed_by,omitzero"`
}

// Escalation is an open question to a person, with all that is needed to answer it.
type Escalation struct {
	ID       string `json:"id"`
	Mutation string `json:"mutation"`
	// Version must be given back with the decision.
	Version  int64     `json:"version"`
	State    string    `json:"state"`
	Kind     string    `json:"kind"`
	OpenedAt time.Time `json:"opened_at"`
	// Waits is how long it has been open.
	Waits     Duration `json:"waits"`
	Connector string   `json:"connector"`
	Operation string   `json:"operation"`
	Account   string   `json:"account,omitzero"`
	Target    string   `json:"target"`
	// Attempted says what was attempted, in the rule's words.
	Attempted string `json:"attempted"`
	// Asked says why a person is asked.
	Asked string `json:"asked"`
	// WhyUnknown says what is known of each sending, and why that isn't enough.
	WhyUnknown string `json:"why_unknown"`
	// Evidence holds the sendings.
	Evidence []Dispatch `json:"evidence" ledger:"Dispatches"`
	// Diff says how the refused payload differs, where that is the question.
	Diff *Diff `json:"diff,omitzero"`
	// Probed says what was asked of the API and what it showed.
	Probed       string        `json:"probed"`
	Observations []Observation `json:"observations"`
	// CanVerify says whether keep-proxy can ask the API; CannotVerify why not.
	CanVerify    bool   `json:"can_verify"`
	CannotVerify string `json:"cannot_verify,omitzero"`
	// ManualCheck says how a person finds out, with values filled in.
	ManualCheck string   `json:"manual_check"`
	Actions     []Action `json:"actions"`
	Workflow    string   `json:"workflow"`
	Item        string   `json:"item"`
	Attempt     int      `json:"attempt"`
	Run         string   `json:"run,omitzero"`
	// ResumeHint says how to start the work again.
	ResumeHint string `json:"resume_hint,omitzero"`
	// Blocks is what stands still meanwhile; null if nothing does.
	Blocks *Blocks `json:"blocks"`
}

// Blocks names a stopped scope.
type Blocks struct {
	// Scope is workflow, item or mutation.
	Scope string `json:"scope"`
	// Name is the workflow, "WORKFLOW/ITEM", or the mutation's id.
	Name string `json:"name"`
}

// Names of the actions by which a person decides.
const (
	ActionCheckAgain    = "check_again"
	ActionDidNotHappen  = "did_not_happen"
	ActionNewKey        = "new_key"
	ActionHappened      = "happened"
	ActionSkip          = "skip"
	ActionAcceptPayload = "accept_payload"
	ActionAcknowledge   = "acknowledge"
)

// ActionNames lists every action, in the order in which they are offered.
func ActionNames() []string {
	return []string{
		ActionCheckAgain, ActionDidNotHappen, ActionNewKey, ActionHappened,
		ActionSkip, ActionAcceptPayload, ActionAcknowledge,
	}
}

// Resolve is a person's decision.
type Resolve struct {
	// Action is one of those that the mutation offers (actions).
	Action string `json:"action"`
	Reason string `json:"reason"`
	// Actor is the person who decides.
	Actor string `json:"actor"`
	// Version is the record's version that the person saw.
	Version int64 `json:"version"`
	// Force allows did_not_happen before it is safe by itself.
	Force bool `json:"force,omitzero"`
	// NewKey asks, with did_not_happen, for a new vendor key as well.
	NewKey bool `json:"new_key,omitzero"`
	// Result is what the script shall get (happened); else NoResult says that
	// there is none to give.
	Result   *Result `json:"result,omitzero"`
	NoResult bool    `json:"no_result,omitzero"`
	// Compensate asks, with happened, for it to be undone, by the rule's compensate;
	// Object is the API's own id of what is to be undone, as the person found it.
	Compensate bool   `json:"compensate,omitzero"`
	Object     string `json:"object,omitzero"`
}

// Action is a decision that is open now.
type Action struct {
	Action string `json:"action"`
	// Consequence says in a sentence what it leads to.
	Consequence string `json:"consequence"`
	// NeedsForce says that it is taken only with force.
	NeedsForce bool `json:"needs_force,omitzero"`
}

// Standings of an obligation.
const (
	// StandingOwed: nothing is sent before a person says so.
	StandingOwed = "owed"
	// StandingQueued: it is sent by itself, newer effects first.
	StandingQueued = "queued"
	// StandingSending: it is being sent.
	StandingSending = "sending"
	// StandingUnknown: whether it was undone is not known.
	StandingUnknown = "unknown"
	// StandingGivenUp: it was not undone, and a person is asked.
	StandingGivenUp = "given_up"
	// StandingDone and StandingWaived are its ends.
	StandingDone   = "done"
	StandingWaived = "waived"
)

// OpenStandings are those of an obligation that has not ended.
func OpenStandings() []string {
	return []string{StandingOwed, StandingQueued, StandingSending, StandingUnknown, StandingGivenUp}
}

// Obligation is the undoing of one effect of a mutation. It is a mutation itself, with
// the same id: GET /v1/mutations/{id} shows it whole.
type Obligation struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	// Standing is owed, queued, sending, unknown, given_up, done or waived; State is the mutation's.
	Standing string `json:"standing"`
	State    string `json:"state"`
	// Mutation is the one of which an effect is undone, and Object the API's own id of
	// that effect.
	Mutation string `json:"mutation"`
	Object   string `json:"object"`
	// Order counts the obligations of Mutation, the oldest effect first; the highest is
	// sent first.
	Order int `json:"order"`
	// Auto says that the rule has it sent by itself.
	Auto      bool   `json:"auto"`
	Connector string `json:"connector"`
	Operation string `json:"operation"`
	Target    string `json:"target"`
	Account   string `json:"account,omitzero"`
	Workflow  string `json:"workflow"`
	Item      string `json:"item"`
	Attempt   int    `json:"attempt"`
	Request   string `json:"request"          ledger:"-"`
	// Sent is how often it was sent, resends apart.
	Sent      int       `json:"sent"`
	Reason    string    `json:"reason,omitzero"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	NextTryAt time.Time `json:"next_try_at,omitzero"`
}

// DecideObligation is a person's decision on an obligation. All of it is required.
type DecideObligation struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
	// Version is the version that the person saw.
	Version int64 `json:"version"`
}

// Undo is what a mutation takes back.
type Undo struct {
	Mutation string `json:"mutation" ledger:"Of"`
	Object   string `json:"object"`
}
