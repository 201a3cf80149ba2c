// Package serving tells commands of one data folder about the proxy that serves
// it.
//
// A serving process announces itself in the file serving.json, and holds a lock
// on that file as long as it lives. A file whose lock is free was left by a
// process that was killed, and counts as none: neither its process id nor its
// port proves anything, since both may be another program's by now, which must
// not be sent the operator's token.
//
// A proxy that a run embeds must stay until the last run that joined it has ended.
// Every run holds the folder shared (Join) while it lives; the embedding one, when
// its own work is over, takes the folder alone (Participant.Last), which waits for all others, and
// only then stops serving. The kernel releases the locks of a process however it
// ends.
//
// # Failure
//
// An announcement that is held and can't be read is an error, never "nobody serves". Who
// can't take a lock, for another reason than that somebody holds it, gets an error and
// starts nothing. Two that both find nobody are kept apart by the ledger's own lock.
//
// # Caveats
//
// Locks are advisory (flock), so the folder must be on a local disk.
package serving
