package ledger

import (
	"context"
	"io"
	"time"
)

// Process is the program that has the ledger open.
type Process struct {
	// ID is made anew at every start: a dispatch of another owner has lost it.
	ID string `json:"id"`
	// Ledger is the ledger's own id.
	Ledger string `json:"ledger"`
	// Started is when the store was opened, before its listener.
	Started Stamp `json:"started"`
}

// Blocker is an unresolved mutation, as the gate sees it.
type Blocker struct {
	Key      Key
	ID       string
	Workflow string
	Item     string
	Run      string
	Scope    BlockScope
	State    State
}

// Delivery says that an answer reached a run whole.
type Delivery struct {
	At time.Time `cbor:"1,keyasint" json:"at"`
	// ClientKey is the digest of the client's own Idempotency-Key, if it sent one.
	ClientKey string `cbor:"2,keyasint,omitempty" json:"client_key,omitempty"`
	// Dispatch and State are those of the record when it was answered.
	Dispatch string `cbor:"3,keyasint,omitempty" json:"dispatch,omitempty"`
	State    State  `cbor:"4,keyasint,omitempty" json:"state,omitempty"`
	// Begun says no more than that the run asked for it and was being answered.
	Begun bool `cbor:"5,keyasint,omitempty" json:"begun,omitempty"`
}

// answers reports whether the delivered answer is that of m as it is now. A 202 that was followed is, too.
func (d *Delivery) answers(m *Mutation) bool {
	if d.Begun {
		return false
	}
	current := m.Current()
	if current == nil || d.Dispatch != current.ID {
		return false
	}
	followed := m.State == Applied && d.State == NeedsReconcile && current.Verdict == VerdictAccepted
	return d.State == m.State || followed
}

// View is the read side of a transaction. Records are private copies. What is not there is ErrNotFound,
// damage ErrDamaged.
type View interface {
	Mutation(Key) (*Mutation, error)
	Run(id string) (*Run, error)
	RunByToken(sha256 string) (*Run, error)
	Item(workflow, item string) (*Item, error)
	// Blockers lists the unresolved mutations of a workflow.
	Blockers(workflow string) ([]Blocker, error)
	// RunMutations lists the keys of a run's mutations.
	RunMutations(run string) ([]Key, error)
	// ItemMutations lists the keys of an item's mutations, oldest first.
	ItemMutations(workflow, item string) ([]Key, error)
	// TakenItems lists up to limit items on which the run works, of one with ItemsMany.
	TakenItems(run string, limit int) ([]*Item, error)
	// EvidenceOf names the mutation for which an upstream object is evidence.
	EvidenceOf(connector, account, object string) (Key, error)
	Delivery(run string, key Key) (*Delivery, error)
	// RunDeliveries lists the keys of the mutations of which the run has a delivery.
	RunDeliveries(run string) ([]Key, error)
	// Gaps lists all gaps, closed ones too. They must not be changed.
	Gaps() ([]Gap, error)
	// Connector returns the content of a pinned rule file. It must not be changed.
	Connector(hash string) ([]byte, error)
	// LastEvent is the newest event before the transaction; ErrNotFound without any.
	LastEvent() (*Event, error)
	Process() Process
}

// Tx is the view and the pending changes of one command, dropped whole after an error. Its records may be drafts; see
// [Mutation.Draft].
type Tx interface {
	View
	// PutMutation stores m as version m.Version, the stored one plus one (1 for a new record), else ErrVersion.
	// Indexes and queues follow from the record.
	PutMutation(m *Mutation) error
	// DropMutation removes m in its stored version, else ErrVersion. Its events stay.
	DropMutation(m *Mutation) error
	// DropItem removes i likewise.
	DropItem(i *Item) error
	// PutRun and PutItem compare versions likewise.
	PutRun(r *Run) error
	PutItem(i *Item) error
	// PutEvidence ties an upstream object to one mutation; ErrEvidence if it is another's.
	PutEvidence(connector, account, object string, k Key) error
	PutDelivery(run string, k Key, d Delivery) error
	PutGaps(all []Gap) error
	// PutConnector keeps the content of a rule file under its hash.
	PutConnector(hash string, content []byte) error
	// PutBody keeps at most InlineBody bytes, and returns their name; see Store.WriteBody.
	PutBody(content []byte) (Body, error)
	// Append adds to the history; Seq is set by the store.
	Append(e Event)
}

// InlineBody is the longest body that is stored with its record, in bytes.
const InlineBody = 64 << 10

// Filter selects records for a listing. Zero fields don't filter.
type Filter struct {
	States    []State
	Connector string
	Operation string
	Workflow  string
	Item      string
	Run       string
	// ID selects items by theirs, and mutations whose ID begins so.
	ID string
	// ItemStates selects items in one of these states.
	ItemStates []ItemState
	// ConnectorVersion selects mutations under this version of the connector's file.
	ConnectorVersion int
	// Touched selects mutations by what happened to them, Since records by when they came.
	Touched Touched
	Since   time.Time
	// Unresolved selects unresolved mutations, or runs that have not ended.
	Unresolved bool
	// Escalated selects records with an open escalation.
	Escalated bool
	// Obligations selects obligations.
	Obligations bool
	// Cursor continues a listing after the page that returned it.
	Cursor string
	// Limit is the longest page; 0 means 100, at most 1000.
	Limit int
}

// Page is one part of a listing, newest first. Next is empty at the end.
type Page[T any] struct {
	Items []T
	Next  string
}

// Store keeps the ledger. Its implementations must pass ledgertest.TestStore.
type Store interface {
	// Update evaluates the command fn after every earlier one, and returns once its changes are synced. Commands that
	// wait together may share one sync. A command that changed nothing returns as soon as all that it read is synced.
	// The store may evaluate fn on another goroutine, and more than once: the last evaluation counts. An error of fn
	// is returned as it is, and nothing was changed. ErrUnavailable: the store can't commit (any more). Only a
	// restart tells whether this command's changes are kept. If ctx ends before fn was evaluated, nothing was
	// changed; after that Update waits for the sync regardless.
	Update(ctx context.Context, fn func(Tx) error) error
	// Note is Update without waiting for the sync: it returns once fn was evaluated, or queued.
	Note(fn func(Tx) error)
	// View evaluates fn on a consistent snapshot of what is durable. It may wait for what is
	// being committed as it is called, so as to see that, too.
	View(ctx context.Context, fn func(View) error) error
	// Follow tells follower, before it returns, what is durable of the runs that aren't over. It tells the same of
	// the mutations that are unresolved or queued. Then it tells what each commit changed, one commit after another,
	// before the command's caller is answered. What is told is durable. follower must neither wait nor use the store.
	Follow(follower func(Changes)) error

	// WriteBody stores and syncs content of any size. Without a record it is swept by the next start.
	WriteBody(ctx context.Context, content io.Reader) (Body, error)
	// Spool begins content of any size; what a process leaves there is removed at the next start.
	Spool() (Spool, error)
	// Body opens stored content. ErrBodyDropped if retention removed it.
	Body(ctx context.Context, b Body) (io.ReadCloser, error)

	Mutations(ctx context.Context, f Filter) (Page[*Mutation], error)
	Runs(ctx context.Context, f Filter) (Page[*Run], error)
	Items(ctx context.Context, f Filter) (Page[*Item], error)
	// Events returns the history of one mutation, or of all for "", after seq, at most limit.
	Events(ctx context.Context, mutation string, after uint64, limit int) ([]Event, error)
	// Due lists the Queued records with NextTryAt up to now, most overdue first, and when the next one is due.
	Due(ctx context.Context, now time.Time) ([]Key, time.Time, error)
	Process() Process
	// Healthy returns nil while the store takes updates, else why not.
	Healthy() error
	// Close syncs and lets the folder go.
	Close() error
}

// Spool is content on its way into the ledger, kept outside of memory, which becomes a body without being copied. It
// belongs to one goroutine at a time.
type Spool interface {
	// Write adds content; ErrLowSpace while the disk is nearly full.
	io.Writer
	io.ReaderAt
	// Size is the number of bytes written.
	Size() int64
	// Body names what was written by its digest.
	Body() Body
	// Keep makes what was written a body, as WriteBody does.
	Keep(ctx context.Context) (Body, error)
	// Close gives the spool up. A body stays if a record names it by then.
	Close() error
}
