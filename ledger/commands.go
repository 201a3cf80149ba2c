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
}

// Claim asks whether a mutation may be sent.
type Claim struct {
	Scope
	Key        Key
	DispatchID string
	// Record is the record to store if there is none: everything of it but
	// Version, State, times, dispatches and generation is taken from the claim.
	// Its VendorKey is set only if the rule keeps the script's own key: that one is
	// then the key of the generation which this claim begins, if it begins one.
	Record Mutation
	// Body is the request's body if it is at most InlineBody; a longer one was
	// written before and is named by Record.Request.Body.
	Body []byte
	// Connector is the content of the rule file, stored under Record.ConnectorHash.
	Connector []byte
	// ClientKey is the digest of the client's own Idempotency-Key, "" without one.
	ClientKey string
	// RepeatReplay is the rule's repeat: replay.
	RepeatReplay bool
	// Hold says that a request which is blocked will wait and ask again, so that
	// it wasn't refused: the run goes on. Without it a blocked run is over.
	Hold bool
	// Redelivery says that the caller of the earlier answer is gone or another
	// run's, so that asking again isn't a repeat. The proxy knows.
	Redelivery bool
	// Was are earlier names of the operation.
	Was []string
	// EarlierKeys are the keys under earlier versions of the rule; see Ahead. One that is
	// missing makes the claim stale.
	EarlierKeys []RuleKey
	// Compared is how the payload compares with the stored one, see Ahead. Where it would decide,
	// and is nil or about another payload, the claim is stale.
	Compared *Compared
	// Drift is what the rule says about a re-run that changed its mind.
	Drift Drift
	// OnSkip and OnNoResult say that the rule has an answer of its own for a mutation
	// that was skipped, or whose result is not known: DecideStandIn.
	OnSkip     bool
	OnNoResult bool
	// AwaitsTurn says that the connector has a rate and that this request has not been
	// admitted by it: where the claim would send, it is answered DecideTurn instead, and
	// claims again without.
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
	// DecideMismatch: another payload for what was applied, or, with a native key, for
	// what an open generation already carried.
	DecideMismatch Decision = "mismatch"
	// DecideRepeated: a second intent without a subkey.
	DecideRepeated Decision = "repeated"
	// DecideStale: nothing is decided, and nothing was changed. The claim lacks a key or a comparison
	// that decides, since what it was computed from has changed: see Ahead.
	DecideStale Decision = "stale"
	// DecideTurn: it may be sent once its turn has come; no dispatch was recorded. Wait
	// for the connector's rate, and claim again without AwaitsTurn.
	DecideTurn Decision = "turn"
	// DecideStandIn: answer with what the rule says in the place of a result.
	DecideStandIn Decision = "stand_in"
)

// Claimed is the answer to a Claim.
type Claimed struct {
	Decision Decision
	// Problem names the refusal as the problem types do: "run-aborted", "one-mutation",
	// "read-only-run", "item-done", "skipped", "attempt", "no-result", "blocked",
	// "payload-mismatch", "repeated", "item-attention", "drift", "ambiguous-record".
	Problem string
	// Detail says why, in a sentence for the script's author.
	Detail string
	// Again says that the payload differs from the one in flight (DecideJoin only):
	// wait for its end, then claim again instead of taking its answer.
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

// Finish records the end of a dispatch.
type Finish struct {
	Key      Key
	Dispatch Dispatch // the dispatch with its end, verdict and evidence
	// Result is the answer, with Body content in Body or written before.
	Result     *Result
	Body       []byte
	TooLarge   bool
	RetryAfter time.Time
	// PassedOn marks a 307 or 308, which don't abort the run.
	PassedOn bool
	// Unauthorized marks a 401, which opens the retry grace.
	Unauthorized bool
	// Pending says that an inline try follows: an uncertain end leaves the
	// record in flight, judged uncertain, until Observe or Park.
	Pending bool
	// NextTryAt is when the runner shall look, if the outcome is unknown.
	NextTryAt time.Time
}

// Finished is the answer to Finish, Observe and the like: the record and run as
// they are now.
type Finished struct {
	Mutation *Mutation
	Run      *Run
}

// Observe records what a reconcile try saw.
type Observe struct {
	Key Key
	// Version is the record's version when the asking began; a record that moved
	// meanwhile answers ErrVersion.
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
	// Ran is the running time since the previous try.
	Ran time.Duration
	// Owed are the obligations of SeenDuplicate: one for each of the observation's
	// objects but the first, in their order, or none where the rule knows no undo.
	Owed []Owed
}

// Owed is one obligation as its rule plans it.
type Owed struct {
	// Object is the upstream's own id of what is to be taken back.
	Object string
	// Auto lets it be sent without a person.
	Auto bool
	// Record holds Operation, Target, Policy, Request and PayloadDigest of the undo;
	// the rest of it is the mutation's, or the ledger's.
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
