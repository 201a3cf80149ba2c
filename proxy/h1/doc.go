// Package h1 serves HTTP/1 on connections that are handed to it, with the interfaces
// of net/http: a handler gets an http.Request and an http.ResponseWriter, with all that
// http.ResponseController knows.
//
// It is for connections whose bytes a strict.Scanner has let through: it trusts the
// framing, and reads a head once it is whole. net/http's server reads everything a
// second time, and starts a goroutine for each request that notices when the client
// goes. Here that is noticed once somebody asks for it, or looked at (see request context),
// so that neither a short read nor a mutation costs the goroutine and its read.
//
// # Failure
//
// A head that can't be read, or is over the limit, is Server.Refuse's to answer: behind a
// strict.Scanner none is known. What can't be read of content is told to its reader. A panic in a handler ends its connection, and
// nothing more is written to it.
//
// # Caveats
//
// An answer's head is written when WriteHeader is called. A media type is never
// guessed.
package h1
