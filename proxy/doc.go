// Package proxy takes a script's requests and answers them.
//
// # The life of a request
//
//  1. Connection. A listener takes plain proxy requests and CONNECT. A tunnel ends here: its TLS
//     gets a leaf of the proxy's own CA. Package h1 serves HTTP/1, and net/http the HTTP/2 inside tunnels
//     (server.go, connect.go). A strict scanner reads HTTP/1 ahead of h1. It holds back what
//     parsers might read differently (guard.go, package strict). CONNECT and plain requests come by
//     goproxy, none of whose own ways to send is left (goproxy.go).
//  2. Who (caller.go). Proxy credentials name a managed run; without any, the configured unmanaged
//     scope, else 407. Inside a tunnel its CONNECT counts. Host, server name and tunnel must agree,
//     else 421.
//  3. Gate (gate.go). A run that is over, and every scope that an unresolved mutation stops, is
//     refused, reads too. A refused run is over.
//  4. Match (pipeline.go). The request is brought into the one form that is judged and sent, and
//     the rules say what it is. What no rule declares is denied, but for safe methods on hosts of
//     no connector.
//  5. Reads and ignored requests are streamed both ways (pass.go). Where the rule says so their
//     connection may change protocols (upgrade.go).
//  6. A mutation is read whole, and its identity, payload and key are derived (mutate.go). One caller
//     of its key does the work while others wait for the same answer (calls.go).
//  7. Claim (claim.go). The ledger decides, durably, in one transaction with the gate: dispatch,
//     replay, blocked, mismatch, repeated, or refused. Where the connector has a rate, what it
//     would dispatch waits for its turn first.
//  8. One sending (dispatch.go), in steps where the rule says so (steps.go). The script going away
//     cancels nothing. A success whose body is late is recorded as committed ahead of it.
//  9. Verdict and record (conclude.go). The outcome is durable before the script hears of it. One that
//     can't be recorded is unknown to the script. Recording it goes on until it succeeds or the
//     process ends.
//  10. An unknown outcome is asked about once, at once. Then it is parked, its scope is stopped, and
//     what is being streamed there is cut (open.go).
//  11. Answer (answer.go, refusal.go). The delivery is noted once the client has the whole of it.
//
// # Failure
//
// The zero value of each decision refuses. An error inside the proxy means that
// nothing was sent, or that the outcome is unknown. A panic in a handler is
// answered as a refusal; a mutation which it had claimed is recorded as uncertain.
//
// # Caveats
//
// Raw header case is not kept. Blind tunnels (Config.Passthrough) are seen only at CONNECT,
// connections that changed protocols only at their request. Mutations in them are not seen.
package proxy
