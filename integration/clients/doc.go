// Package clients tries the HTTP clients that people run in sandboxes, unmodified,
// under keep-proxy run and keep-proxy env: a read, a mutation, its replay, a stop, and
// a wrong token, judged by the upstream's own log.
//
// The clients come from Debian's packages and npm's lock file (see install), and are
// many: `make clients` installs and runs them, and `go test` alone leaves them out. A
// client that is not on the machine is reported by name as not run.
package clients
