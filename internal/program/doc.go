// Package program runs a program that the operator or a rule names, within limits of
// time, memory and output.
//
// It is started directly, without a shell, in a process group of its own with an
// environment of its own. At its end, at the end of its time, and when it writes more
// than it may, the whole group is killed with SIGKILL; where its exit code alone counts
// (Spec.Unheard), what it left running when it ended well goes on.
//
// # Failure
//
// Whatever goes wrong is an error that names the program and never holds what it wrote:
// an exit code other than 0, a signal, ErrTimeout, ErrOutput, or why it could not be
// started. Its standard error goes nowhere.
//
// # Caveats
//
// The memory limit holds per process (RLIMIT_DATA), from just after the start, and on
// Linux only. A descendant that makes a session of its own leaves the group and isn't
// killed; it keeps nobody waiting.
package program
