// Package reconcilers finds out what became of mutations whose outcome is unknown.
//
// A [Reconciler] makes tries. A try reads one record and runs one strategy of its operation's rule.
// It tells the ledger what it saw, and the ledger alone decides what follows.
//
// A resend sends the stored request again under the same vendor key. It is recorded first, and made
// only while the API certainly remembers that key. A probe asks the API by reads, as the rule
// describes. An exec asks a program, which gets the record as JSON and answers in JSON. None leaves
// the question to a person.
//
// The proxy calls [Reconciler.Inline] once, right after an uncertain dispatch.
// After that the runner ([Reconciler.Run]) makes the tries, by backoff.
// [Reconciler.Recover] hands it what a lost process left behind.
//
// Everything is asked with the rule file to which the record is pinned. Credentials come from
// configuration, anew for each request: a script's own are never stored.
//
// # Failure behaviour
//
// A reconciler can't declare doubt for good. An error, a panic, an unexpected status, a cut
// listing, a missing credential or another account is a retry. What it saw counts only if the
// record did not move meanwhile. While the ledger is not healthy nothing is asked. A resend that
// was recorded always gets an end. If the ledger doesn't take it, it is offered again until it is
// durable or the process ends.
package reconcilers
