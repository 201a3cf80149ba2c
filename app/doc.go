// Package app wires the rooms into one program: New opens everything, Start
// listens, Stop lets dispatches end. The command line runs it as a process;
// tests run it inside theirs.
//
// # Order
//
// New refuses a bad configuration, bad connectors, and a ledger that can't be
// trusted. Recovery runs in Start before any listener opens: a record that an
// earlier process left in flight is never dispatched again by that alone. Stop
// closes the listeners first and the ledger last.
//
// # Failure
//
// New returns every problem of configuration and connectors at once, and has then
// released what it had opened. Start does the same.
package app
