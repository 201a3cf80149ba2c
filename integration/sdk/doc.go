// Package sdk tries vendors' own libraries, unmodified, under keep-proxy run. Each makes one change of its API and loses
// the answer. It is run again, and the fake counts one effect.
//
// Clients of MCP call real servers in place of a fake: one of the Go SDK's, and a reference server. The client of S3
// calls gofakes3. What lies between loses the answer, and the server's own log counts.
//
// The libraries come from the lock files below clients and node. `make sdk` installs and tries them, and `go test` alone
// leaves them out. Those of npm run in a network of their own (run --isolate=transparent), since most know no proxy.
package sdk
