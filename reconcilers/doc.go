// Package reconcilers finds out what became of mutations whose outcome is unknown.
//
// A [Reconciler] makes tries. A try reads one record, runs one strategy of its
// operation's rule, and gives what it saw to the ledger, which alone decides
// what follows:
//
//   - resend sends the stored request again under the same vendor key, recorded
//     first, while the API certainly still remembers that key;
//   - probe asks the API by reads, as the rule describes;
//   - exec asks a program, which gets the record as JSON and answers in JSON;
//   - none says that nothing can be asked, and leaves the question to a person.
//
// The proxy calls [Reconciler.Inline] once, right after an uncertain dispatch.
// After that the runner ([Reconciler.Run]) makes the tries, by backoff.
// [Reconciler.Recover] hands it what a lost process left behind.
//
// Everything is asked with the rule file to which the record is pinned, and with
// credentials from configuration, fetched anew for each request: a script's own
// are gone by then and are never stored.
//
// # Failure behaviour
//
// A reconciler can't declare doubt for good: an error, a panic, an unexpected
// status, a cut listing, a missing credential or another account is a retry. What
// it saw counts only if the record did not move meanwhile. While the ledger is
// not healthy nothing is asked. A resend that was recorded is always given an
// end: when the ledger does not take it, it is kept and offered again until it is
// durable or the process ends.
package reconcilers
