// Package program runs a program that the operator or a rule names, within limits of
// time, memory and output.
//
// It is started directly, without a shell, in a process group of its own with an environment of its own. The whole
// group is killed with SIGKILL at its end, after its time, and when it writes too much. Where its exit code alone
// counts (Spec.Unheard), what it left running when it ended well continues.
//
// # Failure
//
// Whatever goes wrong is an error that names the program and never holds what it wrote. The error is an exit code other
// than 0, a signal, ErrTimeout, ErrOutput, or why it could not be started. The program's standard error is dropped.
//
// # Caveats
//
// The memory limit holds per process (RLIMIT_DATA), from just after the start, and on
// Linux only. A descendant that makes a session of its own leaves the group and isn't
// killed; it keeps nobody waiting.
package program
