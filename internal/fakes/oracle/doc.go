// Package oracle is the witness of every test that counts effects. It is an append-only file in which a fake upstream
// writes what it received, committed and answered.
//
// Each event is one line of JSON. An effect is on stable storage before the call that records it returns. So is a
// result that a vendor keeps under an idempotency key. An upstream that answers afterwards can be killed at any
// instant. Its file still holds every effect that anyone was told of. Other kinds are written without waiting for the
// disk. They survive the death of the process, not of the machine.
//
// One process writes a file at a time, which [Open] holds by a lock on it. Any process may read it with [Read], or wait
// for something to appear in it with [Wait]. All counts are taken from the file and never from the memory of the
// writer. So a count means the same in the process that serves and in its test, also after a restart.
//
// A torn line, whose writer died inside the write, is closed by the next [Open] and counted in [Tally.Torn]. It was
// never acknowledged, so it stands for nothing. A file that cannot be written makes its [Log] unusable. Every later
// append fails with the first error, and the upstream that owns it must stop answering.
package oracle
