// Package data runs a fake API that a YAML file describes. docs/fakes.md describes the file.
//
// A [Fake] implements server.API, so that a fault of package script is injected before it. It knows nothing of
// connectors and imports none of their code: what it counts must not depend on what is judged by it.
//
// One request runs like this:
//
//	body kinds read → auth → route → key → pause → refusals → change and effect → answer
//
// A body kind is one file here: it gives variables to expressions. Its entry is in bodies.
//
// # Failure
//
// A file that can't be used is an error of [Load], with its line. An expression that can't be computed while a request
// is served is answered with 500 and the name fake_error. Nothing is changed then, and nothing is kept under a key. So
// a fault of the file shows as an answer that the file doesn't have.
package data
