// Package badgerstore is the embedded ledger: a ledger.Store for one process at a time. Our log, of package
// wal, is the truth. Badger is the table that it is folded into. docs/store.md tells how.
//
// # Durability
//
// A command is answered once the frame of its commit is synced. Readers see what is durable. Commands of Note wait
// for the next commit, at most noteDelay. A long body's file and folder are synced before WriteBody or Keep
// returns: no record can name it earlier.
//
// # Verification
//
// Every value has a checksum that covers its key, its format and its content. Events form a hash chain. Each
// start verifies all tables, and that log and folds together cover every commit. A body is held against its
// digest by each read. Scrub reads all while the store works, and Verify checks everything.
//
// # Failure
//
// The store stops at the first failed write or sync. It also stops at the first value that doesn't fit its
// checksum, and at the first error that Badger logs. A write or a sync of more than 30 seconds counts as failed,
// and may become durable all the same. Then every call is ledger.ErrUnavailable, and Healthy says why. Below
// Config.MinFree new mutations are ledger.ErrLowSpace, and outcomes are still recorded. Open refuses as
// docs/semantics.md §9 says, and names the command that goes on.
//
// # Caveats
//
// An older copy of the whole folder is found only with a witness elsewhere. A copy of data/ alone lacks what
// isn't folded. Stored content is not encrypted. A full disk can kill the process, since Badger writes
// through memory maps: keep MinFree above zero.
package badgerstore
