package config

import (
	"slices"
	"strings"
)

// Unmatched is the policy for a mutation on a host that no connector covers.
// The zero value is invalid and must be treated as deny.
type Unmatched string

// The policies for unmatched mutations.
const (
	UnmatchedDeny    Unmatched = "deny"    // refused
	UnmatchedObserve Unmatched = "observe" // recorded and passed, every answer says so
	UnmatchedAllow   Unmatched = "allow"   // passed
)

// BlockScope is what an unresolved mutation stops. The zero value is invalid
// and must be treated as workflow.
type BlockScope string

// The block scopes, from the widest.
const (
	BlockWorkflow BlockScope = "workflow"
	BlockItem     BlockScope = "item"
	BlockMutation BlockScope = "mutation"
)

// Engine is a ledger engine.
type Engine string

// EngineBadger is the embedded engine.
const EngineBadger Engine = "badger"

// CredentialUse says on which requests a credential is set. The zero value is
// invalid and must be treated as reconcile.
type CredentialUse string

// The uses of a credential.
const (
	UseReconcile CredentialUse = "reconcile" // only on requests the proxy makes to find out an outcome
	UseAlways    CredentialUse = "always"    // on those and on the script's requests
)

// OnAbsent is what a believed absence leads to. The zero value is no override.
type OnAbsent string

// The ways on after a believed absence.
const (
	OnAbsentFail       OnAbsent = "fail"       // the record fails; the next request may claim it again
	OnAbsentRedispatch OnAbsent = "redispatch" // keep-proxy sends it again, at most max_dispatches times
	OnAbsentEscalate   OnAbsent = "escalate"   // a person decides
)

// Verify says what happens before a stored result is replayed. The zero value is no
// override.
type Verify string

// What happens before a replay.
const (
	VerifyOff    Verify = "off"    // the stored result is replayed
	VerifyWarn   Verify = "warn"   // the API is asked, and the result replayed whatever it says
	VerifyStrict Verify = "strict" // the result is replayed only if the API still agrees
	VerifyHuman  Verify = "human"  // a person is asked if it doesn't
)

// LogLevel is the least level that is logged.
type LogLevel string

// The log levels, from the most talkative.
const (
	LevelTrace LogLevel = "trace"
	LevelDebug LogLevel = "debug"
	LevelInfo  LogLevel = "info"
	LevelWarn  LogLevel = "warn"
	LevelError LogLevel = "error"
)

// LogFormat is the form of a log line.
type LogFormat string

// The log formats.
const (
	FormatAuto    LogFormat = "auto"    // console on a terminal, json off it
	FormatConsole LogFormat = "console" // for people
	FormatJSON    LogFormat = "json"    // one object a line
)

// TokenRole is what the holder of a token may do. The zero value is invalid and must be
// treated as nothing.
type TokenRole string

// The roles.
const (
	TokenViewer   TokenRole = "viewer"   // reads, contents included
	TokenOperator TokenRole = "operator" // reads, opens runs, decides
	TokenHost     TokenRole = "host"     // opens and ends runs, and reads what became of them
)

// Parameter is the value of a connector's parameter as it is written: one text, or a list of them. The connector says
// what it must be.
type Parameter struct {
	List  bool
	Texts []string
}

// Bundled selects bundled connectors: all, none (the zero value), or those
// named.
type Bundled struct {
	// All selects every bundled connector; Names is then empty.
	All bool
	// Names selects these.
	Names []string
}

// Includes reports whether the bundled connector name is selected.
func (b Bundled) Includes(name string) bool {
	return b.All || slices.Contains(b.Names, name)
}

// String returns true, false, or the names joined with commas: the forms that
// the environment variable takes.
func (b Bundled) String() string {
	switch {
	case b.All:
		return "true"
	case len(b.Names) == 0:
		return "false"
	default:
		return strings.Join(b.Names, ",")
	}
}
