// Package server runs a fake API as a real upstream. It is an HTTP server on loopback over TLS, with HTTP/1.1 and
// HTTP/2. It writes what it sees into an [oracle.Log] and follows the faults of package script.
//
// One request runs like this:
//
//	head event → (an early fault answers) → body read → received event
//	→ fault or "commit, answer" → ended event
//
// Commit calls the API. The API records its effect through [Call.Commit], which returns only when the effect is on
// stable storage. Then the API returns the answer, and that is sent. A log that can't be written ends the service. The
// connection is closed without an answer, and [Server.Err] says why.
//
// A read is answered once what came before it has committed, however slow the machine is.
// What a fault has wait is late on purpose, and isn't waited for.
//
// # Control
//
// A second listener is for tests and demos in other processes. It is plain HTTP on loopback and never the one under
// test. Package control is its client.
//
//	POST   /_control/faults        arm a fault (JSON of script.Fault, or {"named": NAME,
//	                               "match": {...}, "times": N}) → 201
//	GET    /_control/faults        the faults that are armed, with the times left
//	DELETE /_control/faults        disarm all → 204
//	POST   /_control/release/GATE  open a gate → 204
//	GET    /_control/log           the events so far, as JSON lines
//	GET    /_control/counts        {identity: {"sends": n, "effects": n, "answers": n}}
//	GET    /_control/books         the API's own books, as text
//	POST   /_control/settings      change the API's settings (JSON of its own) → 204
//	GET    /_control/health        {"api": NAME, "url": URL, "connections": n}
//
// Errors there are text/plain sentences: 400 for a bad fault or setting, 404
// for what an API does not have.
package server
