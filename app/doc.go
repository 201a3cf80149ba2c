// Package app makes one program of all packages: New opens everything, Start listens, Stop lets dispatches end. The
// command line runs it as a process; tests run it inside theirs.
//
// # Order
//
// New refuses a bad configuration, bad connectors, and a ledger that can't be trusted. Recovery runs in Start before
// any listener opens. It alone never dispatches again a record that an earlier process left in flight. Stop closes the
// listeners first and the ledger last.
//
// # Failure
//
// New returns every problem of configuration and connectors at once, and has then released what it had opened. Start
// does the same. A listener that stops serving by itself ends Wait with its error, and so the program. A reload that
// fails changes nothing. Stop waits for what is being sent as long as its context allows. What is cut off then is in
// flight in the ledger, and is asked about after the next start.
package app
