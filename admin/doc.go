// Package admin is the HTTP API by which runs are opened, the ledger is read, and
// people decide what keep-proxy could not find out.
//
// [New] makes a [Server] from a [Config]; its routes are one table (routes.go),
// from which the OpenAPI document at /openapi.json is made too. The package
// knows the ledger and nothing else of the program: rules, the proxy's address
// and its CA reach it through [Explainer] and [Environment].
//
// # Who may ask
//
// Everything under /v1 needs a bearer token. The operator's own is in a file
// (see [OperatorToken]); others are configured by their SHA-256 with a [Role].
// /healthz, /readyz, /metrics and /openapi.json need none. Without TLS the server serves
// loopback addresses and unix sockets alone. It refuses Host fields that are not its own (DNS
// rebinding) and everything that a browser's page sent, and grants no CORS. A listener
// for probes ([Server.ServeHealth]) answers /healthz and /readyz and nothing else.
//
// # Failure
//
// Every error is problem+json (RFC 9457) with a type of its own; problem.go maps
// errors to statuses, once. An error that isn't known there is answered 500
// `internal` without its text, which goes to the log: it may hold what the
// caller must not see. A decision carries the version of the record that the
// person saw; a record that moved meanwhile answers 409 `version` and is not
// changed.
//
// # Caveats
//
// Answers hold the stored bodies of requests and answers. Places that a rule
// calls secret were masked before they were stored; what a rule doesn't name is
// shown as it was.
package admin
