package rules

import (
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"keep-proxy/internal/verdict"
)

// Effect is what an operation does to the world.
type Effect uint8

// Effects. The zero value denies.
const (
	// EffectDeny is never sent.
	EffectDeny Effect = iota
	// EffectRead changes nothing; it is streamed.
	EffectRead
	// EffectMutation changes the world and is recorded before it is sent.
	EffectMutation
	// EffectIgnore passes unrecorded: telemetry, token endpoints.
	EffectIgnore
)

// String is the word of the connector format; an unknown effect is "deny".
func (e Effect) String() string {
	switch e {
	case EffectRead:
		return "read"
	case EffectMutation:
		return "mutation"
	case EffectIgnore:
		return "ignore"
	case EffectDeny:
		return "deny"
	}
	return "deny"
}

// OnAbsent is what a believed absence leads to.
type OnAbsent string

// What a believed absence leads to. Anything else escalates.
const (
	// OnAbsentFail ends the mutation as failed; the next request sends again.
	OnAbsentFail OnAbsent = "fail"
	// OnAbsentRedispatch sends the mutation again by itself, at most MaxDispatches
	// times.
	OnAbsentRedispatch OnAbsent = "redispatch"
	// OnAbsentEscalate leaves it to a person.
	OnAbsentEscalate OnAbsent = "escalate"
)

// Verify is what happens before a stored result is replayed.
type Verify string

// What happens before a replay. Off is the default; an unknown word is read as strict.
const (
	// VerifyOff replays the stored result.
	VerifyOff Verify = "off"
	// VerifyWarn asks the API, and replays the result whatever it says.
	VerifyWarn Verify = "warn"
	// VerifyStrict replays it only if the API still agrees.
	VerifyStrict Verify = "strict"
	// VerifyHuman asks a person if it doesn't.
	VerifyHuman Verify = "human"
)

// Repeat is what happens when one run asks twice for the same applied mutation.
type Repeat string

// What a repeat inside one run is. Anything else is refused.
const (
	// RepeatRefuse takes it for a second intent and refuses it; the default.
	RepeatRefuse Repeat = "refuse"
	// RepeatReplay answers it with the stored result.
	RepeatReplay Repeat = "replay"
)

// WhenPresent is what happens to a native key that the script sent itself.
type WhenPresent string

// What happens to the script's own native key.
const (
	// PresentReplace overwrites it; the default.
	PresentReplace WhenPresent = "replace"
	// PresentKeepFirst keeps the first one with the record and uses that.
	PresentKeepFirst WhenPresent = "keep_first"
	// PresentRefuse refuses the request.
	PresentRefuse WhenPresent = "refuse"
)

// Replays is what the API answers to a repeat within the window.
type Replays string

// A repeat gets every first answer, those of success alone, an answer without what the first one said, or 409.
const (
	ReplaysAll      Replays = "all"
	ReplaysSuccess  Replays = "success"
	ReplaysNone     Replays = "none"
	ReplaysConflict Replays = "conflict"
)

// Mismatch is what another payload under a key of before leads to.
type Mismatch string

// Another payload gets an error, or the answer to the first. Or it takes effect as well, or is part of the key.
const (
	MismatchError    Mismatch = "error"
	MismatchCached   Mismatch = "cached"
	MismatchExecuted Mismatch = "executed"
	MismatchSeparate Mismatch = "separate"
)

// NativeKey is the API's own idempotency key.
type NativeKey struct {
	// In is header, json, form or query; Name the header's name or the place.
	In   string
	Name string
	// Format is uuid, uuid4, hex or token, as ledger.VendorKey makes them.
	Format string
	// MaxLength is in characters; 0 means no limit.
	MaxLength int
	// Window is how long the API remembers a key. It is unknown at 0: nothing may be sent again because of the key.
	Window time.Duration
	// WhenPresent is about a key that the script sent.
	WhenPresent WhenPresent
	// Replays and Mismatch are empty where the rule doesn't say.
	Replays  Replays
	Mismatch Mismatch

	at    place
	where Where
}

// Where is where the rule says it.
func (k *NativeKey) Where() Where { return k.where }

// Repeats reports whether the answer to a resend can be the mutation's own. It can where the rule doesn't say.
func (k *NativeKey) Repeats() bool {
	return k == nil || k.Replays != ReplaysNone && k.Replays != ReplaysConflict
}

// Resent is the rule's opinion of an answer to a resend. Where the API doesn't repeat its first answer, no success is
// the mutation's result: a probe must find that.
func (k *NativeKey) Resent(o verdict.Opinion, status int) verdict.Opinion {
	success := o.Kind == verdict.OpinionApplied || o.Kind == verdict.OpinionNone && status >= 200 && status <= 299
	if success && !k.Repeats() {
		return verdict.Opinion{Kind: verdict.OpinionUncertain, Reason: "the API doesn't repeat its first answer (replays: " + string(k.Replays) + ")"}
	}
	return o
}

// usable is how old a generation may be at the end of a resend: nine tenths of
// the window.
func (k *NativeKey) usable() time.Duration { return k.Window / 10 * 9 }

// Bounds is what is known of an API's delays, with where it is known from.
type Bounds struct {
	// Commit is the longest late commit after a dispatch ended.
	Commit time.Duration
	// Lag is how far the API's reads may be behind its writes.
	Lag time.Duration
	// Source is a URL, or where it was measured.
	Source string
}

// Operation is one kind of call of an API, with defaults, the rule's own numbers
// and the user's overrides resolved.
type Operation struct {
	Name      string
	Connector *Connector
	Effect    Effect
	// Accept is as the connector's, for this operation alone.
	Accept map[string]string
	// Evidence says where its facts are known from.
	Evidence []Evidence
	// BlockScope is workflow, item or mutation; empty leaves it to the run.
	BlockScope string
	// Settle, Confirmations and Spacing say when absence is believed.
	Settle        time.Duration
	Confirmations int
	Spacing       time.Duration
	// Bounds is nil unless the rule has one.
	Bounds   *Bounds
	OnAbsent OnAbsent
	// MaxDispatches bounds how often a mutation is sent, if it is sent again by
	// itself; resends don't count.
	MaxDispatches int
	Repeat        Repeat
	Drift         Drift
	// SubkeyHeader is empty or forbidden unless scripts may give a subkey.
	SubkeyHeader SubkeyHeader
	// Was are the operation's earlier names.
	Was []string
	// Verify is what happens before a replay.
	Verify Verify
	// Timeout is the deadline of one dispatch, at most Defaults.Total. Of a read it is how long its answer may pause;
	// zero for as long as any.
	Timeout time.Duration
	// MaxBody bounds the request's body and the kept answer, in bytes.
	MaxBody int64
	// NativeKey is nil where the API has none.
	NativeKey *NativeKey
	// Stream says that an answer may be a stream of events, one of which is the answer to the call.
	Stream bool
	// Watch is how a 202 is followed; nil where it counts as applied.
	Watch *Watch
	// Send is nil where the script's own request is sent.
	Send *Send
	// Undo is how one effect is taken back; nil where the rule knows no way.
	Undo *Undo
	// Strategies are tried in order; empty unless Effect is EffectMutation.
	Strategies []Strategy
	// NoIdentity says that the rule asks for one mutation per item and subkey.
	NoIdentity bool
	// Upgrade are the protocols to which a connection may change (RFC 9110 §7.8). What is
	// said in them is judged by nobody.
	Upgrade []string

	at          Where
	matches     []*matcher
	before      []string
	describe    *text
	manualCheck *text
	identity    []namedExpr
	subkey      *expr
	onSkip      *resultTemplate
	onNoResult  *resultTemplate
	ignored     *placed
	minor       *placed
	// insignificant is ignored and minor.
	insignificant *placed
	hasMinor      bool
	// ignores says that payload.ignore names a place.
	ignores bool
	// normal is nil where values are compared as they are.
	collations *collations
	// compare is nil where places alone decide.
	compare   *expr
	headers   []string
	markers   []*marker
	outcome   []*outcomeRule
	otherwise bool
	success   *expr
	secret    []place
	// unmarkable says that there are markers, but the parameter that names their place is empty.
	unmarkable bool
	// graphQL says that each of its matches takes requests of GraphQL alone.
	graphQL bool
	// named are the header fields and query members that the rule names.
	named        fieldNames
	encodedSlash bool
	// emptySegments says that a path with empty segments is another one than without.
	emptySegments bool
	// namesJSON says that the rule reads or names something in the request's JSON.
	namesJSON bool
	// view is the variable of its own by which the rule reads the body, such as multipart; "" for none.
	view string
	// rpc says that each match takes calls of JSON-RPC.
	rpc bool
	// mails says that each match takes a mail.
	mails bool
	// bytesOnly says that the rule reads and names nothing in the request's body, and knows it by its bytes at most.
	bytesOnly bool
}

// Reconciles reports whether the operation has a strategy other than none.
func (op *Operation) Reconciles() bool {
	for _, s := range op.Strategies {
		if s.Kind != StrategyNone {
			return true
		}
	}
	return false
}

// ProvesAbsence reports whether a strategy of the operation says that what it doesn't see isn't there.
func (op *Operation) ProvesAbsence() bool {
	return slices.ContainsFunc(op.Strategies, func(s Strategy) bool {
		return s.Exec != nil && s.Exec.AbsenceIsProof ||
			s.Probe != nil && slices.ContainsFunc(s.Probe.reads(), func(p *Probe) bool { return p.absenceIsProof })
	})
}

// OwnAddress reports whether it is sent to its own address alone: in steps, or with what is written into the query.
func (op *Operation) OwnAddress() bool {
	return op.Send != nil || op.NativeKey != nil && op.NativeKey.In == "query" ||
		slices.ContainsFunc(op.markers, func(mk *marker) bool { return mk.at.root == "query" })
}

// StrategyKind is a way to find out what happened.
type StrategyKind string

// Kinds of strategies. Anything else is no strategy.
const (
	// StrategyResend sends the stored request again under the same native key.
	StrategyResend StrategyKind = "resend"
	// StrategyProbe asks the API by reads.
	StrategyProbe StrategyKind = "probe"
	// StrategyExec asks a program.
	StrategyExec StrategyKind = "exec"
	// StrategyNone says why it can't be found out.
	StrategyNone StrategyKind = "none"
)

// Strategy is one entry of an operation's ordered list.
type Strategy struct {
	Kind StrategyKind
	// Probe is set for StrategyProbe.
	Probe *Probe
	// Exec is set for StrategyExec.
	Exec *Exec
	// Why is the reason given with StrategyNone.
	Why string
	// Natural says that StrategyResend depends on what the request does, and on no key.
	Natural bool
}

// Blind reports whether it looks for the marker of a mutation that has none. A probe with tie: marker reads it in ours.
// What a program looks for isn't known.
func (s Strategy) Blind(mu Mutation) bool {
	return mu.Unmarked && (s.Exec != nil || s.Probe != nil &&
		slices.ContainsFunc(s.Probe.exprs(), func(e *expr) bool { return e.readsName("mutation", "marker") }))
}

// Drift is what happens when a re-run asks for a new identity of the operation too early. It hasn't yet asked for what
// an earlier run did.
type Drift string

// What a drift is. Anything else is refused.
const (
	// DriftWarn sends, and says so; the default.
	DriftWarn Drift = "warn"
	// DriftRefuse sends nothing, and asks a person.
	DriftRefuse Drift = "refuse"
	// DriftAllow doesn't look.
	DriftAllow Drift = "allow"
)

// SubkeyHeader says whether a script may tell two intents of one identity apart by
// the header field Keep-Subkey.
type SubkeyHeader string

// Whether the field may be there. Anything else forbids it.
const (
	SubkeyForbidden SubkeyHeader = "forbidden"
	SubkeyOptional  SubkeyHeader = "optional"
	SubkeyRequired  SubkeyHeader = "required"
)

// SubkeyField is the name of that field, in its canonical form. It is read here and
// never sent.
const SubkeyField = "Keep-Subkey"

// maxSubkey bounds its value, in bytes.
const maxSubkey = 255

// headerSubkey is the subkey that the script gave, if the rule lets it.
func (op *Operation) headerSubkey(header http.Header) (string, *Refusal) {
	values, given := header[SubkeyField]
	if !given && op.SubkeyHeader != SubkeyRequired {
		return "", nil
	}
	switch op.SubkeyHeader {
	case SubkeyOptional, SubkeyRequired:
	case SubkeyForbidden:
		fallthrough
	default:
		return "", refuse(ProblemIdentity, "the rule of "+op.Name+" takes no "+SubkeyField+"; leave the field out, or give the rule a subkey or subkey_header")
	}
	switch {
	case !given:
		return "", refuse(ProblemIdentity, "the rule of "+op.Name+" needs the header field "+SubkeyField+
			", which tells mutations of the same identity apart; send one that is the same at each run")
	case len(values) != 1:
		return "", refuse(ProblemAmbiguous, SubkeyField+" comes more than once; send it once")
	case values[0] == "" || len(values[0]) > maxSubkey || !utf8.ValidString(values[0]):
		return "", refuse(ProblemIdentity, SubkeyField+" must be UTF-8 text of 1 to 255 bytes")
	}
	return values[0], nil
}

// StandsInForSkipped reports whether the rule has an answer of its own for a mutation that was skipped.
func (op *Operation) StandsInForSkipped() bool { return op.onSkip != nil }

// StandsInForResult is about a result that isn't known; see StandsInForSkipped.
func (op *Operation) StandsInForResult() bool { return op.onNoResult != nil }

// StandIn is the rule's answer in the place of a result: on_skip of a skipped
// mutation, else on_no_result. An error means that it can't be made of this request.
func (op *Operation) StandIn(skipped bool, env Env) (*Result, error) {
	template := op.onNoResult
	if skipped {
		template = op.onSkip
	}
	return template.build(op.scope(env))
}
