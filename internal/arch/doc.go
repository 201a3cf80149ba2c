// Package arch holds the module's import table and checks that the source obeys
// it.
//
// [Check] parses every Go file of the module itself. It does not ask the go
// command, whose answers are cached with a test's result and would leave a new
// import unseen; and it reads files of every build constraint, so that a rule
// holds for systems the test does not run on.
//
// Failure behaviour: a package without a row, one that doesn't say how it fails, a file that does not parse and a
// folder that cannot be read are findings, never passed over.
//
// # Caveats
//
// Modules nested in this one, such as tools, are left out: they are not linked
// into the program.
package arch
