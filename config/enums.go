package config

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

// Verify says what happens before a stored result is given. The zero value is no
// override.
type Verify string

// What happens before a replay.
const (
	VerifyOff    Verify = "off"    // the stored result is given
	VerifyWarn   Verify = "warn"   // the API is asked, and the result given whatever it says
	VerifyStrict Verify = "strict" // the result is given only if the API still agrees
	VerifyHuman  Verify = "human"  // a person is asked if it doesn't
)

var readVerify = readEnum([]Verify{VerifyOff, VerifyWarn, VerifyStrict, VerifyHuman})

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
