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
