// Package upstream sends. One dispatch is one sending: [Sender.Send] hands a request to one
// connection once. It never sends again, neither on another connection nor after a refusal, and it
// follows no redirect. The dispatch's [Evidence] is what it saw on the wire. From that [Judge]
// makes a [Verdict] by a table: the mutation committed, it didn't, or nobody can tell.
//
// # One sending
//
// A request is rebuilt from its parsed form. HTTP/1.1 goes out over this package's own connections.
// They are new, or were used less than two seconds ago, and are looked at again before byte one.
// HTTP/2, where TLS negotiated it, goes out over net/http's ClientConn, which has no retry loop.
// Each connection carries one stream at a time, so its bytes belong to one dispatch. Bytes are
// counted above TLS, where they are plaintext, and below it.
//
// # Deadlines
//
// The boot-time clock measures the total deadline, the wait for the answer's head and the age of
// idle connections. It goes on while the machine sleeps. The total deadline is looked at
// immediately before byte one; while a dispatch waits, at least once a second.
//
// # Failure behaviour
//
// Send always returns an [Answer]. One without a head has Status 0 and a Body that returns
// [ErrNoAnswer]. NotSent is false unless it is proven that nothing was sent. BodyComplete is false
// unless the body is proven whole. The zero values of Evidence and Verdict are uncertain. A
// connection is used again only after a whole exchange with nothing left over. After anything else
// it is closed before the evidence is final. A dispatch that breaks off, or whose process is lost,
// resets it: nothing arrives after its end.
//
// # Caveats
//
// An answer must be drained or closed, or its connection and its deadline stay.
// Closing early means giving up on the body: the evidence then says that it was
// cut. The context given to Send must outlive the script's connection, since its
// cancellation ends the dispatch.
package upstream
