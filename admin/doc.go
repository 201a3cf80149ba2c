// Package admin is the HTTP API. By it runs are opened, the ledger is read, and people decide what
// keep-proxy could not find out.
//
// [New] makes a [Server] from a [Config]. Its routes are one table (routes.go), from which the OpenAPI
// document is made too. The package knows the ledger and nothing else of the program. Rules, the
// proxy's address and its CA reach it through [Explainer], [Rules] and [Environment].
//
// # Who may ask
//
// Everything under /v1 needs a bearer token. The operator's own is in a file (see [OperatorToken]).
// Others are configured by their SHA-256 with a [Role]. /healthz, /readyz, /metrics and /openapi.json
// need none. Without TLS the server serves loopback addresses and unix sockets alone. It refuses Host
// fields that are not its own (DNS rebinding). It refuses everything that a browser's page sent, and
// grants no CORS. A listener for probes ([Server.ServeHealth]) answers /healthz and /readyz and
// nothing else.
//
// # Failure
//
// Every error is problem+json (RFC 9457) with a type of its own; problem.go maps errors to statuses,
// once. An error that isn't known there is answered 500 `internal`. Its text goes to the log alone: it
// may hold what the caller must not see. A decision carries the version of the record that the person
// saw. A record that has changed meanwhile answers 409 `version` and stays as it is.
//
// # Caveats
//
// Answers hold the stored bodies of requests and answers. Places that a rule calls secret were masked
// before they were stored. What a rule doesn't name is shown as it was.
package admin
