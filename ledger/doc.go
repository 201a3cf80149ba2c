// Package ledger is the durable record of every mutation that keep-proxy carries.
//
// It holds the words of docs/semantics.md as types: mutation states and the one
// transition table that moves them (State, Next), the records (Mutation,
// Dispatch, Observation, Run, Item, Escalation, Event), the keys by which a
// mutation is known (MutationKey, VendorKey, Marker), and the commands that change
// them (Claim, MarkCommitted, Finish, Park, Resend, Redispatch, Observe, Resolve, RunObligation, OpenRun,
// FinishRun, Recover and so on). docs/states.md draws the table.
//
// What decides is pure and can be asked without a store: Next, Admit, Settled,
// Deniable, ResendOpen, NaturalOpen, RedispatchOpen, WindowOpen and OpenActions.
//
// A command is a pure function over a Tx, the view of one storage transaction.
// Commands are evaluated one after another by a Store; a command that returns
// an error has changed nothing. Ledger, made by New, binds the commands to a
// Store and is what the rest of the program holds.
//
// # What is durable when
//
// A method of Ledger that returns nil has been synced to stable storage, with
// the record, its events, its run and item, and its queue entries in one
// transaction. The exceptions are Deliver, Refuse and Replayed, which are
// appended without waiting: a delivery that is not known to be durable counts
// as not delivered.
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
