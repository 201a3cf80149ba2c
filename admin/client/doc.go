// Package client is the Go client of keep-proxy's admin API.
//
// # Failure
//
// A refusal is a [*Problem]. Of a refused decision it has the actions that are open. Any other error
// means that the API could not be asked, or that the answer was not its own. Whether a command took
// effect is then unknown: read again what can be read.
//
// # Caveats
//
// The client sends every request once. It uses no proxy: the API is on this
// machine and unreachable through the proxy that it administers.
package client
