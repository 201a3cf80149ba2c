// Package h1 serves HTTP/1 on connections that are handed to it, with the interfaces of net/http. A
// handler gets an http.Request and an http.ResponseWriter that supports all of
// http.ResponseController.
//
// It is for connections whose bytes a strict.Scanner has let through. It trusts the framing, and
// reads a head once it is whole. The server of net/http reads everything twice, and has a goroutine
// for each request that notices when the client goes. Here that is noticed once somebody asks for
// it, or looks (see requestContext). Short reads and mutations need no such goroutine.
//
// # Failure
//
// Server.Refuse answers a head that can't be read, or is over the limit. Behind a strict.Scanner no
// such head is known. What can't be read of content is told to its reader. A panic in a handler
// ends its connection, and nothing more is written to it.
//
// # Caveats
//
// An answer's head is written when WriteHeader is called. A media type is never
// guessed.
package h1
