package wire

import "time"

// Touched is one mutation that a rule version, a time or a run touched, with its item and
// what came of it.
type Touched struct {
	ItemID    string `json:"item_id"`
	Workflow  string `json:"workflow"`
	Item      string `json:"item"`
	Attempt   int    `json:"attempt"`
	ItemState string `json:"item_state"`

	Mutation         string `json:"mutation"`
	State            string `json:"state"`
	Connector        string `json:"connector"`
	ConnectorVersion int    `json:"connector_version"`
	ConnectorHash    string `json:"connector_hash,omitzero"`
	Operation        string `json:"operation"`
	Account          string `json:"account,omitzero"`
	Target           string `json:"target"`
	Run              string `json:"run,omitzero"`
	Dispatches       int    `json:"dispatches" ledger:"-"`
	// Status and ResultState tell the result, if there is one.
	Status      int       `json:"status,omitzero"`
	ResultState string    `json:"result_state,omitzero"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}
