// Package badgerstore is the embedded ledger: a ledger.Store over Badger, for one
// process at a time.
//
// # Folder
//
//	ledger.id     identity, format, and the version that is needed to read it
//	ledger.lock   held while the ledger is open; names the holder
//	              (beside a high-water file elsewhere, too: NAME.lock)
//	highwater     how far commands were acknowledged, and a journal of the last commits
//	              with their content (or Config.HighWaterFile); 4 MiB
//	reserve       space that is given back when the disk runs low, also at a start
//	data/         Badger
//	probe/        a manifest that was made anew is tried here
//	bodies/       bodies over ledger.InlineBody, named by their SHA-256
//	spool/        content on its way in; see bodyfile.go
//
// # What is durable when
//
// One goroutine evaluates the commands one after another, each over an overlay of
// its own, so that the error of one drops only its own changes. Commands that wait
// together share one commit. A second goroutine writes that into the journal of the high-water
// file and syncs it: from then on it is durable and acknowledged. Then it adds it to the backlog,
// publishes the in-memory gate, and wakes the callers; meanwhile the first evaluates what comes
// next, over what Badger has, the backlog, and the commit before.
//
// A third goroutine gives Badger what is in the backlog, many commits in one transaction, when
// the journal is half full, when somebody reads more than single values, when no command has come
// for a while, and at closing. In the first case and the last it syncs Badger's log then, and the
// marks of the high-water file are moved. Commits go on meanwhile, as long as the journal has room.
// A commit too long for the journal waits until Badger has all before it, and is durable once
// Badger's log is. Open gives Badger what it lacks and the journal holds, after a loss of power as
// after a kill. So: Badger never has a commit that isn't durable in the journal or in a log; all
// up to the mark is durable in Badger; the journal after the mark is never written over; and it
// lies twice in the file, so that no single damage takes an acknowledged commit.
//
// Readers see what is durable, in the backlog or in Badger; listings wait until Badger has it.
// Commands of Note wait in a list for the next commit, at most noteDelay. A long body's file,
// and its folder, are synced before WriteBody or Keep returns, so before a record can name it.
//
// # Formats
//
// The folder and each value have format 4. Formats 1 to 3 are refused, as none was released. From 4
// on each format is kept: testdata has a small ledger of each, and a test opens all of them. Values
// are CBOR. A field that this program doesn't know was written by a newer one, and is refused.
//
// # What is verified when
//
// Every value carries a checksum that covers its key, its format and its content.
// Events form a hash chain. Every transaction writes a numbered commit record, and
// a checkpoint at least once per eighth of a memtable. Open verifies the numbering
// of all checkpoints, and every event and commit since the checkpoint that lies
// four memtables back, which is more than Badger can hold in logs. Before Badger opens
// the folder, all tables are read and held against their checksums, so that a damaged
// one is named at each start and nothing was changed (0.9 GB: 0.2 s on two cores). A manifest that a
// failed write left is made anew if all is there with it; see manifest.go. A long body is held against its digest by
// each read of it. Scrub reads all that is stored while the store works, and SweepBodies
// removes bodies that no record names. Verify checks everything.
//
// # Failure
//
// A commit or sync that fails, and a value that doesn't match its checksum, poison
// the store: every later Update answers ledger.ErrUnavailable, and Healthy says
// why. So does one that takes longer than 30 s: callers are answered then, and what hangs
// may become durable all the same. What Badger doesn't take of the backlog stops the store, too:
// it was acknowledged, and the next start has it from the journal; and so does what Badger only
// logs as an error, since it tries that again behind a sync that failed. Of a last write that was torn, the commit is there whole or
// not at all, as it was never acknowledged; a commit of the journal that is missing before the
// last one is damage. Below Config.MinFree new mutations answer ledger.ErrLowSpace while outcomes
// are still recorded. Open refuses as docs/semantics.md §9 says; its errors name
// the command that goes on.
//
// # Caveats
//
// A consistent older copy of the whole folder is found only if the high-water file
// is kept elsewhere, and then only if it lacks more than the journal holds, which is put back
// otherwise. A copy of data/ while the store is open lacks what is in the backlog. Stored
// content is not encrypted, and the high-water file holds some, too. A full disk can kill the
// process (Badger writes through memory maps): keep MinFree above zero.
package badgerstore
