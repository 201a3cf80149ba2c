// Package managed puts one managed run around one command: it keeps the run alive,
// ends the command when the run has ended, finishes the run when the command has,
// and says in an exit code what became of both.
//
// Failure behaviour: a proxy that can't be asked doesn't end the command, which
// gets nothing through it meanwhile; the run then ends by its time limit. A run
// that can't be finished as done is never reported as a success, whatever the
// command returned.
package managed
