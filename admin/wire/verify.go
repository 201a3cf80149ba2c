package wire

// Progress is one line of a verification under way, or its last line.
type Progress struct {
	// What is being done ("records").
	What  string `json:"what,omitzero"`
	Done  int64  `json:"done"`
	Total int64  `json:"total,omitzero"`
	// Report is set in the last line of a verification that came to its end.
	Report *VerifyReport `json:"report,omitzero"`
	// Problem is set in the last line of one that did not.
	Problem *Problem `json:"problem,omitzero"`
}

// VerifyReport is what a verification found.
type VerifyReport struct {
	// Sound says that nothing was found.
	Sound    bool     `json:"sound"`
	Findings []string `json:"findings"`
	Events   uint64   `json:"events"`
	Records  uint64   `json:"records"`
}
