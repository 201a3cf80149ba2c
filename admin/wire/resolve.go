package wire

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
