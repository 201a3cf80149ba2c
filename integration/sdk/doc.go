// Package sdk tries vendors' own libraries, unmodified, under keep-proxy run. Each makes one change of its API and loses
// the answer. It is run again, and the fake counts one effect.
//
// The libraries come from the lock files below clients and node. `make sdk` installs and tries them, and `go test` alone
// leaves them out. Those of npm run in a network of their own (run --isolate=transparent), since most know no proxy.
package sdk
