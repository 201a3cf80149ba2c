// Package oracle is the witness of every test that counts effects: an
// append-only file in which a fake upstream writes what it received, what it
// committed and what it answered.
//
// Each event is one line of JSON. An effect (and a result that a vendor keeps
// under an idempotency key) is on stable storage before the call that records
// it returns, so an upstream that answers afterwards can be killed at any
// instant and its file still holds every effect that anyone was told of. The
// other kinds are written without waiting for the disk: they survive the death
// of the process, not of the machine.
//
// One process writes a file at a time, which [Open] holds by a lock on it; any
// process may read it with [Read], or wait for something to appear in it with
// [Wait]. All counts are taken from the file and never from the memory of the
// writer, so a count means the same in the process that serves, in the test
// that started it, and after a restart.
//
// A line that is torn (its writer died inside the write) is closed by the next
// [Open] and counted in [Tally.Torn]; it was never acknowledged, so it stands
// for nothing. A file that cannot be written makes its [Log] unusable: every
// later append fails with the first error, and the upstream that owns it must
// stop answering.
package oracle
