package wire

import "time"

// Modes of a proxy.
const (
	// ModeServing is the usual one.
	ModeServing = "serving"
	// ModePaused keeps mutations and asking back. It outlives a restart.
	ModePaused = "paused"
	// ModeDraining keeps every new request back. It ends with the process.
	ModeDraining = "draining"
)

// Mode is what the proxy does, and what it is still doing.
type Mode struct {
	// Mode is serving, paused or draining.
	Mode string `json:"mode"`
	// Since, Actor and Reason tell of the command that made it so; absent while serving.
	Since  time.Time `json:"since,omitzero"`
	Actor  string    `json:"actor,omitzero"`
	Reason string    `json:"reason,omitzero"`
	// Requests counts those that are being answered, Mutations those among them that may
	// still send one, Tries the runner's questions about outcomes that are under way.
	Requests  int `json:"requests"`
	Mutations int `json:"mutations"`
	Tries     int `json:"tries"`
}

// SetMode is an operator's command.
type SetMode struct {
	Reason string `json:"reason"`
	Actor  string `json:"actor"`
}
