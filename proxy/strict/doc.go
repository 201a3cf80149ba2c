// Package strict reads along the HTTP/1 requests of a connection, ahead of
// net/http, and stops at the first byte which two parsers might take differently.
//
// net/http accepts more than RFC 9112 does: lines that end in a bare LF, folded
// fields, equal doubled lengths, spaces and empty extensions in chunk sizes,
// HTTP/1.0 with chunked. Each of these is harmless to a server that serves by
// itself, and a way to smuggle for one that stands in a chain. A [Scanner] frames
// requests by the letter, so that net/http, which sees only what the Scanner let
// through, finds their ends where the Scanner does.
//
// It is pure: bytes in, decision out. It copies only lines that are split over two
// reads, and what it must compare later (the authority and the Host field).
//
// # Failure
//
// A [Fault] is final: after it nothing more of the connection can be framed. A fault
// in a head holds back the whole request; one in a body comes after the bytes before
// it, which never make a whole body.
//
// # Caveats
//
// Paths, names and values are judged where they are normalised, in package rules:
// a Scanner looks at what frames, routes, and delimits.
package strict
