// Package notify calls somebody when a person is asked, or work stands still, and when that has ended.
//
// Each destination, a command or a webhook, has a queue of its own in one file beside the ledger (Queue). So one that
// can't be reached holds up no other, and a message outlives the process. Messages are made from the ledger's history.
// An event that opened or closed an escalation becomes one message for each destination. What stands still is compared
// with what was told of it. What was told, and the place up to which the history was read, are kept in the same file, in
// the same write.
//
// # Failure
//
// A message is tried until it was taken: a command that exits 0, or an answer of 2xx. It may arrive more than once,
// always with the same id. Messages of one destination come in order. Waits grow from 5 s to 15 min. A process that
// ends in order tries once more what it has not tried in vain (Last). A queue holds at most MaxQueue messages. Beyond
// it the oldest are dropped, first those of questions that are over. Status tells of that. A destination that is new is
// told what is open. So are all when an older copy was put back. Then the ledger's history ends before the place up to
// which it was read.
//
// # Secrets
//
// A webhook's URL and its signing key are secrets: neither is logged, stored, or named in an error. Messages hold what
// the ledger tells about a mutation, which is masked already, and neither bodies nor header fields.
package notify
