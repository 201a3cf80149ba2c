// Package ledger is the durable record of every mutation that keep-proxy carries.
//
// It holds the words of docs/semantics.md as types. State and Next are the mutation states and their one transition
// table, drawn in docs/states.md. The records are Mutation, Dispatch, Observation, Run, Item, Escalation and Event. A
// mutation is known by its keys: MutationKey, VendorKey, Marker. The commands that change records are methods of
// Ledger: Claim, EndDispatch, Observe, Resolve, OpenRun, Recover and so on.
//
// What decides is pure and can be asked without a store: Next, Admit, AdmitMutation, Settled,
// Deniable, ResendOpen, NaturalOpen, RedispatchOpen, WindowOpen and OpenActions.
//
// A command is a pure function over a Tx, the view of one storage transaction.
// Commands are evaluated one after another by a Store; a command that returns
// an error has changed nothing. Ledger, made by New, binds the commands to a
// Store and is what the rest of the program holds.
//
// # What is durable when
//
// When a method of Ledger returns nil, its change has been synced to stable storage. The record, its events, its run
// and item, and its queue entries change in one transaction. Deliver, Refuse and Replayed are the exceptions: they
// are appended without waiting. A delivery that is not known to be durable counts as not delivered.
//
// # Failure
//
// A Store that can't commit answers ErrUnavailable from then on: nothing may be
// sent on its word. A missing, damaged, foreign or shortened ledger refuses to
// open (ErrDamaged, ErrMissing, ErrForeign, ErrShortened). A command that the
// table doesn't hold answers ErrNotAllowed and changes nothing. A refused claim is
// an answer, not an error; the zero Claimed and the zero Admission refuse.
//
// # Caveats
//
// The package knows no clock, no disk and no network: callers pass a Stamp.
// It knows nothing of rules either: the proxy turns a match into a Claim.
package ledger
