package rules

import "time"

// File is one connector file: the name that findings use, and its bytes.
type File struct {
	Name string
	Data []byte
}

// Settings are what a user says about one connector in config.yaml. Credentials
// are not among them, but for the name of their header field: rules never see any.
type Settings struct {
	// Connector names the connector; a name that isn't loaded is an error.
	Connector string
	// Hosts replaces the file's list of hosts; empty keeps it.
	Hosts []string
	// CredentialHeader is the header field of the configured credential; empty for none.
	// What a script sends in it is a credential too.
	CredentialHeader string
	// Overrides are by operation name; an unknown name is an error.
	Overrides map[string]Override
}

// Override replaces single numbers of one operation. A nil or empty field keeps
// what the rule says. Numbers weaker than the defaults of Settle, Confirmations
// or Spacing only hold where the rule has bounds; elsewhere they are reported and
// the default holds.
type Override struct {
	Settle        *time.Duration
	Confirmations *int
	Spacing       *time.Duration
	OnAbsent      OnAbsent
	Verify        Verify
	// MaxDispatches is at least 1.
	MaxDispatches *int
	BlockScope    string
	Timeout       *time.Duration
	MaxBody       *int64
}

// Defaults are the numbers of operations that say nothing themselves. A zero
// field takes the built-in default.
type Defaults struct {
	// Settle is how long after its dispatches ended a mutation can still turn
	// up; default 5 min.
	Settle time.Duration
	// Confirmations is how often absence must be seen; default 2.
	Confirmations int
	// Spacing is the least time between two confirmations; default 10 s.
	Spacing time.Duration
	// Verify is what happens before a replay of operations with a probe or program.
	Verify Verify
	// BlockScope is workflow, item or mutation; empty leaves it to the run.
	BlockScope string
	// MaxBody bounds a mutation's body in bytes; default 10 MiB.
	MaxBody int64
	// Total is the deadline of one dispatch; default 10 min.
	Total time.Duration
}

// Built-in defaults. Settle, confirmations and spacing are also the floor below
// which only a rule with bounds may go.
const (
	DefaultSettle        = 5 * time.Minute
	DefaultConfirmations = 2
	DefaultSpacing       = 10 * time.Second
	DefaultMaxDispatches = 2
	DefaultMaxBody       = 10 << 20
	DefaultTotal         = 10 * time.Minute
)

// filled returns d with every zero field set to its built-in default.
func (d Defaults) filled() Defaults {
	if d.Settle <= 0 {
		d.Settle = DefaultSettle
	}
	if d.Confirmations <= 0 {
		d.Confirmations = DefaultConfirmations
	}
	if d.Spacing <= 0 {
		d.Spacing = DefaultSpacing
	}
	if d.MaxBody <= 0 {
		d.MaxBody = DefaultMaxBody
	}
	if d.Total <= 0 {
		d.Total = DefaultTotal
	}
	return d
}
