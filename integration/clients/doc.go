// Package clients tries unmodified HTTP clients, as people run them in sandboxes, under keep-proxy
// run and keep-proxy env. Each does a read, a mutation, its replay, a stop and a wrong token,
// judged by the upstream's log. In a network of their own (run --isolate) they do a mutation
// and its replay, or must fail.
//
// The clients come from Debian's packages and npm's lock file (see install), and are
// many: `make clients` installs and runs them, and `go test` alone leaves them out. A
// client that is not on the machine is reported by name as not run.
package clients
