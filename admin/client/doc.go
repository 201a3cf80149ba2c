// Package client is the Go client of keep-proxy's admin API.
//
// # Failure
//
// A refusal is a [*Problem], with its type, status, detail and, where a decision was
// refused, the actions that are open. Any other error means that the API could
// not be asked, or that its answer was none of its own: whether a command took
// effect is then unknown, and what can be read again must be.
//
// # Caveats
//
// The client sends every request once. It uses no proxy: the API is on this
// machine and unreachable through the proxy that it administers.
package client
