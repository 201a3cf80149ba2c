package wire

import "github.com/go-json-experiment/json/jsontext"

// Explain asks what would happen to a request. Nothing is sent.
type Explain struct {
	Method  string `json:"method"`
	URL     string `json:"url"`
	Headers Header `json:"headers,omitzero"`
	Body    Body   `json:"body,omitzero"`
	// Workflow, Item and Attempt are the scope under which to explain; they may
	// be absent.
	Workflow string `json:"workflow,omitzero"`
	Item     string `json:"item,omitzero"`
	Attempt  int    `json:"attempt,omitzero"`
	// Account is what the API would say where a connector asks it whose data is changed,
	// as explaining asks nobody; it may be absent.
	Account string `json:"account,omitzero"`
}

// Explanation is the answer to [Explain], as the rules give it.
type Explanation = jsontext.Value
