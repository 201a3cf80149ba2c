package wire

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Mutation is one ledger record: one intended effect.
type Mutation struct {
	ID        string `json:"id"`
	Version   int64  `json:"version"`
	Key       string `json:"key"`
	State     string `json:"state"`
	Committed bool   `json:"committed"`
	Watching  bool   `json:"watching"`
	// ResultState is known, unknown or too_large once the mutation is applied.
	ResultState string `json:"result_state,omitzero"`

	Connector        string `json:"connector"`
	ConnectorVersion int    `json:"connector_version"`
	ConnectorHash    string `json:"connector_hash,omitzero"`
	Operation        string `json:"operation"`
	// Target is the operation in the rule's words.
	Target   string                    `json:"target"`
	Account  string                    `json:"account,omitzero"`
	Identity map[string]jsontext.Value `json:"identity"`
	Subkey   string                    `json:"subkey,omitzero"`
	Workflow string                    `json:"workflow"`
	Item     string                    `json:"item"`
	Attempt  int                       `json:"attempt"`
	// Run is the run that claimed it first; absent for an unmanaged scope.
	Run        string `json:"run,omitzero"`
	VendorKey  string `json:"vendor_key,omitzero"`
	Marker     string `json:"marker,omitzero"`
	Generation int    `json:"generation"`
	// Unmarked says that the marker had no room in the request, and was left out.
	Unmarked bool   `json:"unmarked,omitzero"`
	Class    string `json:"class,omitzero"`
	Reason   string `json:"reason,omitzero"`

	CreatedAt  time.Time `json:"created_at"`
	UpdatedAt  time.Time `json:"updated_at"`
	NextTryAt  time.Time `json:"next_try_at,omitzero"`
	RetryAfter time.Time `json:"retry_after,omitzero"`
	Tries      int       `json:"tries"`

	Request      Request       `json:"request"`
	Result       *Result       `json:"result,omitzero"`
	Dispatches   []Dispatch    `json:"dispatches"`
	Observations []Observation `json:"observations"`
	// Escalation is the open or the latest question to a person.
	Escalation *EscalationRef `json:"escalation,omitzero"`
	// Verification is set once the world did not agree with the stored result.
	Verification *Verification `json:"verification,omitzero"`
	// Obligations are the mutations that take effects of this one back, the oldest effect
	// first; Undo is what this one takes back.
	Obligations []string `json:"obligations,omitzero"`
	Undo        *Undo    `json:"undo,omitzero"`
	// Diff says how the last refused payload differed from the stored one.
	Diff *Diff `json:"diff,omitzero"`
	// Events and Actions are left out of listings. Of a long history the first and the last events are
	// given, as many of each. EventsLeftOut counts those between them.
	Events        []Event  `json:"events,omitzero"`
	EventsLeftOut int      `json:"events_left_out,omitzero"`
	Actions       []Action `json:"actions,omitzero"`
	// CanVerify and what follows help to decide; they are there with Actions. CanVerify says whether keep-proxy can ask
	// the API, CannotVerify why not. ManualCheck says how a person finds out, with values filled in.
	CanVerify    *bool  `json:"can_verify,omitzero"`
	CannotVerify string `json:"cannot_verify,omitzero"`
	ManualCheck  string `json:"manual_check,omitzero"`
	// Blocks is what stands still meanwhile, ResumeHint how the work is started again.
	Blocks     *Blocks `json:"blocks,omitzero"`
	ResumeHint string  `json:"resume_hint,omitzero"`
}

// Verification is the last time at which the world did not agree with a stored result.
type Verification struct {
	At time.Time `json:"at"`
	// Said is disagrees, or nothing where it could not be asked.
	Said     string `json:"said"`
	Reason   string `json:"reason,omitzero"`
	Evidence string `json:"evidence,omitzero"`
	Count    int    `json:"count"`
	// Acknowledged says that the result is replayed all the same.
	Acknowledged bool `json:"acknowledged"`
}

// Request is what was judged: without credentials, and with secret places masked.
type Request struct {
	Method  string `json:"method"`
	URL     string `json:"url"`
	Headers Header `json:"headers" ledger:"Header"`
	Body    Body   `json:"body"`
}

// Result is the answer that a replay gives.
type Result struct {
	Status  int    `json:"status"`
	Headers Header `json:"headers,omitzero" ledger:"Header"`
	Body    Body   `json:"body,omitzero"`
	// Source says where it comes from: answer, observation or person.
	Source string `json:"source,omitzero"`
	// Trailers came behind the body.
	Trailers Header `json:"trailers,omitzero" ledger:"Trailer"`
}

// Dispatch is one sending of a mutation, with what was seen on the wire.
type Dispatch struct {
	ID         string    `json:"id"`
	Run        string    `json:"run,omitzero"`
	Generation int       `json:"generation"`
	Resend     bool      `json:"resend,omitzero"`
	StartedAt  time.Time `json:"started_at"      ledger:"Started"`
	// EndedAt is absent where no end was recorded.
	EndedAt time.Time `json:"ended_at,omitzero" ledger:"Ended"`
	Lost    bool      `json:"lost,omitzero"`
	Wire
	Verdict  string `json:"verdict,omitzero"`
	Class    string `json:"class,omitzero"`
	Reason   string `json:"reason,omitzero"`
	Resolved bool   `json:"resolved"`
}

// Wire is what was seen of a sending on the wire. It has the fields of the ledger's.
type Wire struct {
	// BytesWritten is recorded with the end: without one it says nothing.
	BytesWritten int64 `json:"bytes_written"`
	// Head says that a complete response head was read.
	Head         bool   `json:"head"`
	Status       int    `json:"status,omitzero"`
	BodyComplete bool   `json:"body_complete"`
	ErrorClass   string `json:"error_class,omitzero"`
	Error        string `json:"error,omitzero"`
	Protocol     string `json:"protocol,omitzero"`
	Remote       string `json:"remote,omitzero"`
}

// Observation is what one reconcile try saw.
type Observation struct {
	At       time.Time `json:"at"`
	Strategy string    `json:"strategy"`
	Seen     string    `json:"seen"`
	Reason   string    `json:"reason,omitzero"`
	Evidence string    `json:"evidence,omitzero"`
	Objects  []string  `json:"objects,omitzero"`
	// Counted says that it is one of the confirmations of absence.
	Counted bool `json:"counted,omitzero"`
	// Voided says that a later dispatch made it worthless.
	Voided bool `json:"voided,omitzero"`
}

// Event is one line of history.
type Event struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Actor    string    `json:"actor"`
	What     string    `json:"what"`
	Why      string    `json:"why,omitzero"`
	Mutation string    `json:"mutation,omitzero"`
	Dispatch string    `json:"dispatch,omitzero"`
	Run      string    `json:"run,omitzero"`
	Workflow string    `json:"workflow,omitzero"`
	Item     string    `json:"item,omitzero"`
	From     string    `json:"from,omitzero"`
	To       string    `json:"to,omitzero"`
	Evidence string    `json:"evidence,omitzero"`
}

// Diff says how a refused payload differs from the stored one.
type Diff struct {
	At  time.Time `json:"at"`
	Run string    `json:"run,omitzero"`
	// Payload is the digest of the refused payload.
	Payload string `json:"payload"`
	// Why says what decided.
	Why     string   `json:"why,omitzero"`
	Changes []Change `json:"changes"`
	// More says that there are other changes than those listed.
	More bool `json:"more,omitzero"`
}

// Change is one place in which payloads differ.
type Change struct {
	// Place is as a rule writes it, such as json.items[2].price.
	Place string `json:"place"`
	// Kind is changed, added or removed.
	Kind string `json:"kind"`
	// Stored and Asked are as JSON writes them, shortened, with secrets masked.
	Stored string `json:"stored,omitzero"`
	Asked  string `json:"asked,omitzero"`
	// Weight is significant, minor or equivalent.
	Weight string `json:"weight,omitzero"`
}

// Touched is one mutation that a rule version, a time or a run touched. It has its item and what came
// of it.
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
	Dispatches       int    `json:"dispatches"              ledger:"-"`
	// Status and ResultState tell the result, if there is one.
	Status      int       `json:"status,omitzero"`
	ResultState string    `json:"result_state,omitzero"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
}
