// Package arch holds the module's import table and checks that the source obeys
// it.
//
// [Check] parses every Go file of the module itself. It does not ask the go command. Answers of that are cached with a
// test's result and would leave a new import unseen. Files of every build constraint are read, so that a rule holds for
// systems the test does not run on.
//
// Failure behaviour: whatever can't be checked is a finding, never passed over. Examples are a package without a row or
// without its failure behaviour, an unparsable file, and an unreadable folder.
//
// # Caveats
//
// Modules nested in this one, such as tools, are left out: they are not linked
// into the program.
package arch
