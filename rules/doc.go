// Package rules says which operation of which API a request is. It says what the request changes (identity) and how
// (payload). It says how its answer is judged, and how to find out later whether it happened.
//
// Everything comes from connector files (docs/connectors.md), one per API. A file is loaded strictly. Every problem of
// every file is reported at once, and a set with one error is no set.
//
// Identity is what is changed, payload is how. Of
//
//	POST /v1/refunds   payment_intent=pi_1&amount=500&reason=duplicate
//
// the identity is {"of": "pi_1"}; amount and reason are payload. Asking again with the same identity is the same
// intent. With another payload it is a contradiction, and never a second refund.
//
// The package is pure. It reads no clock, disk or network, and two calls with the same input give the same output.
// Values of its types are immutable once made, and safe for concurrent use. Only [Asking] isn't: it belongs to one try.
//
// # Failure behaviour
//
// The zero [Effect] is deny, the zero opinion is none, the zero [Seen] is retry. A condition that can't be
// evaluated makes a match a refusal, a verdict uncertain, and an observation retry. Nothing panics for input.
package rules
