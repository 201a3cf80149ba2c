package ledger

import "time"

// OpenRun asks for a managed run.
type OpenRun struct {
	Workflow string
	Item     string
	// Once declares that a re-run is new work: the item becomes "once:" + run id.
	Once bool
	// Items is ItemsMany for a run whose mutations name their items; Item is empty then.
	Items Items
	// Attempt must be the item's current one; 0 takes it.
	Attempt    int
	Title      string
	Mutations  Mutations
	OnFailure  OnFailure
	BlockScope BlockScope
	// Takeover ends the item's running run instead of answering ErrItemBusy.
	Takeover bool
	// IfDone is what happens if the item is done or skipped.
	IfDone      IfDone
	TTL         time.Duration
	ResumeHint  string
	Labels      map[string]string
	TokenSHA256 string
	// Tolerate are refusals that are meant, each as CODE:HOST. They don't keep the run from being done.
	Tolerate []string
	// RequireTraffic keeps the run from being done before one of its requests came to the proxy.
	RequireTraffic bool
	// Passthrough lets a run with MutationsNone open blind tunnels.
	Passthrough bool
}

// Claim asks whether a mutation may be sent.
type Claim struct {
	Scope
	Key        Key
	DispatchID string
	// Record is stored if there is none, but for Version, State, times, dispatches and generation. Its
	// VendorKey is the script's own, where the rule keeps that, for the generation that this claim begins.
	Record Mutation
	// Body is the request's body up to InlineBody; a longer one is named by Record.Request.Body.
	Body []byte
	// Connector is the content of the rule file, stored under Record.ConnectorHash.
	Connector []byte
	// ClientKey is the digest of the client's own Idempotency-Key, "" without one.
	ClientKey string
	// RepeatReplay is the rule's repeat: replay.
	RepeatReplay bool
	// Hold says that a blocked request waits and asks again; without it its run is over.
	Hold bool
	// Redelivery says that nobody waits for the earlier answer, so that asking again is no repeat.
	Redelivery bool
	// Was are earlier names of the operation.
	Was []string
	// Elsewhere reports whether a version is for other hosts, so that no record of it is meant; nil for none.
	Elsewhere func(ItemRule) bool
	// EarlierKeys are the keys under earlier versions of the rule (Ahead). Without one the claim is stale.
	EarlierKeys []RuleKey
	// Compared is needed where the stored payload is another one (Ahead). Without it the claim is stale.
	Compared *Compared
	// Drift is what the rule says about a re-run that changed its mind.
	Drift Drift
	// OnSkip and OnNoResult say that the rule itself answers for what has no result: DecideStandIn.
	OnSkip     bool
	OnNoResult bool
	// SentTo is the record's second address, if the request is to that one.
	SentTo string
	// AwaitsTurn says that the connector's rate hasn't admitted the request: it isn't sent, but DecideTurn.
	AwaitsTurn bool
}

// Decision is what a claim answers. The zero value refuses.
type Decision string

const (
	// DecideRefused: not sent; Problem says why.
	DecideRefused Decision = ""
	// DecideDispatch: the record is in flight and yours to send, once.
	DecideDispatch Decision = "dispatch"
	// DecideReplay: answer with the stored result.
	DecideReplay Decision = "replay"
	// DecideJoin: it is in flight in this process.
	DecideJoin Decision = "join"
	// DecideBlocked: stopped by an unresolved mutation (its own, or another).
	DecideBlocked Decision = "blocked"
	// DecideMismatch: another payload than was applied, or than an open generation carried.
	DecideMismatch Decision = "mismatch"
	// DecideRepeated: a second intent without a subkey.
	DecideRepeated Decision = "repeated"
	// DecideStale: nothing is decided or changed; the claim lacks what would decide (Ahead).
	DecideStale Decision = "stale"
	// DecideTurn: nothing is changed; wait for the connector's rate, and claim without AwaitsTurn.
	DecideTurn Decision = "turn"
	// DecideStandIn: answer with what the rule says in the place of a result.
	DecideStandIn Decision = "stand_in"
)

// Claimed is the answer to a Claim.
type Claimed struct {
	Decision Decision
	// Problem names the refusal as the problem types do: "run-aborted", "one-mutation",
	// "read-only-run", "item-done", "skipped", "attempt", "no-result", "blocked",
	// "payload-mismatch", "repeated", "item-attention", "drift", "ambiguous-record", "run-failing".
	Problem string
	// Detail says why, in a sentence for the script's author.
	Detail string
	// Wait is when asking again makes sense ("run-failing" only). AdmitMutation tells sooner.
	Wait time.Duration
	// Again says that what is in flight has another payload (DecideJoin only): claim again after it.
	Again bool
	// Mutation is the record after the claim; nil if there is none.
	Mutation *Mutation
	// Dispatch is the new dispatch (DecideDispatch only).
	Dispatch *Dispatch
	// Run is the run after the claim; nil for an unmanaged scope.
	Run *Run
	// Drift tells that this run has changed its mind, and how (DecideDispatch only).
	Drift string
	// Blockers are what stops the scope (DecideBlocked only).
	Blockers []Blocker
	// RunRefused says that this refusal ended the managed run.
	RunRefused bool
}

// EndDispatch records the end of a dispatch.
type EndDispatch struct {
	Key      Key
	Dispatch Dispatch // the dispatch with its end, verdict and evidence
	// Result is the answer, with Body content in Body or written before.
	Result     *Result
	Body       []byte
	TooLarge   bool
	RetryAfter time.Time
	// PassedOn marks a 307, a 308 or a question, which don't abort the run. MovedTo is its Location, if that is the record's too.
	PassedOn bool
	MovedTo  string
	// Unauthorized marks a 401, which opens the retry grace.
	Unauthorized bool
	// Inline says that the inline try follows, so that an uncertain end leaves the record in flight.
	Inline bool
	// NextTryAt is when the runner shall look, if the outcome is unknown.
	NextTryAt time.Time
}

// Moved holds record and run after a command.
type Moved struct {
	Mutation *Mutation
	Run      *Run
}

// Observe records what a reconcile try saw.
type Observe struct {
	Key Key
	// Version is what the record had when the asking began; another one is ErrVersion.
	Version     int64
	Observation Observation
	// AbsenceIsProof says that the rule lets absence count.
	AbsenceIsProof bool
	// Caution is what the settings of now ask for before an absence is believed.
	Caution Caution
	// Result is what the script shall get (SeenApplied).
	Result *Result
	Body   []byte
	// Reached says that the API answered, so that the try counts.
	Reached bool
	// Inline marks the inline try of an in-flight record.
	Inline    bool
	NextTryAt time.Time
	// RetryAfter is when the API wants to be asked again, if it said so.
	RetryAfter time.Time
	// Ran is the running time since the previous try.
	Ran time.Duration
	// Owed are the obligations of SeenDuplicate: one for each object but the first, or none without an undo.
	Owed []Owed
}

// Owed is one obligation as its rule plans it.
type Owed struct {
	// Object is the upstream's own id of what is to be taken back.
	Object string
	// Auto lets it be sent without a person.
	Auto bool
	// Record holds Operation, Target, Policy, Request and PayloadDigest of the undo.
	Record Mutation
	// Body is the request's body, at most InlineBody.
	Body []byte
}

// RunObligation is a person's word that an obligation is to be met now.
type RunObligation struct {
	Key     Key
	Version int64
	Actor   string
	Reason  string
}

// Resend asks for a dispatch by the resend strategy, recorded before it is sent.
type Resend struct {
	Key        Key
	Version    int64
	DispatchID string
	// Deadline is the resend's own total deadline.
	Deadline time.Duration
	// Ran is the running time since the previous try.
	Ran time.Duration
	// Caution is what the settings of now ask for.
	Caution Caution
}

// Redispatch asks for the sending that a believed absence queued.
type Redispatch struct {
	Key        Key
	Version    int64
	DispatchID string
	// NextTryAt is when to ask again if the scope is stopped now.
	NextTryAt time.Time
	// Caution is what the settings of now ask for.
	Caution Caution
}

// Resolve is a person's decision.
type Resolve struct {
	Key     Key
	Action  Trigger
	Actor   string
	Reason  string
	Version int64
	Force   bool
	NewKey  bool
	// Result is what the script shall get (OnHappened); nil with NoResult.
	Result   *Result
	Body     []byte
	NoResult bool
	// Compensate asks, with OnHappened, for the mutation to be undone.
	Compensate *Owed
	// NextTryAt is when the runner shall look (OnCheckAgain).
	NextTryAt time.Time
}
