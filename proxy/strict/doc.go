// Package strict reads along the HTTP/1 requests of a connection, ahead of net/http. It stops at
// the first byte which two parsers might take differently.
//
// The parser of net/http accepts more than RFC 9112 does. It takes lines that end in a bare LF,
// folded fields, equal doubled lengths and HTTP/1.0 with chunked. In chunk sizes it takes spaces
// and empty extensions. Each of these is harmless to a server by itself, and a way to smuggle in a
// chain of servers. A [Scanner] frames requests by the letter. What it lets through ends for
// net/http where it ends for the Scanner.
//
// It is pure: bytes in, decision out. It copies only lines that are split over two reads, and the
// authority and Host field to compare later.
//
// # Failure
//
// A [Fault] is final: after it nothing more of the connection can be framed. A fault in a head
// holds back the whole request. One in a body comes after the bytes before it, which never make a
// whole body.
//
// # Caveats
//
// Paths, names and values are judged where they are normalised, in package rules. A Scanner looks
// at what frames, routes and delimits.
package strict
