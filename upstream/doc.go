// Package upstream sends. One dispatch is one sending: [Sender.Send] hands a
// request to one connection once. It never sends again, neither on another
// connection nor after a refusal, and it follows no redirect. What it saw on the
// wire is the dispatch's [Evidence]; [Judge] makes of it, by a table that is data,
// a [Verdict]: did the mutation commit, did it not, or can nobody tell.
//
// # One sending
//
// A request is rebuilt from its parsed form. HTTP/1.1 goes out over this
// package's own connections, which were used less than two seconds ago or are
// fresh, and which are looked at once more before byte one. HTTP/2, where TLS
// negotiated it, goes out over net/http's ClientConn, which has no retry loop, one
// stream at a time: so each connection's bytes belong to one dispatch. Bytes are
// counted above TLS, where they are plaintext, and below it.
//
// # Deadlines
//
// The total deadline of a dispatch, the wait for its answer's head and the age of
// an idle connection are measured on the boot-time clock, which does not stand
// still while the machine sleeps. The total deadline is looked at immediately
// before byte one; while a dispatch waits, at least once a second.
//
// # Failure behaviour
//
// Send always returns an [Answer]. One without a head has Status 0 and a Body that
// returns [ErrNoAnswer]. Where it can't be proven that nothing was sent, NotSent is
// false; where a body can't be proven to be whole, BodyComplete is false; the zero
// value of Evidence and of Verdict is uncertain. A connection is used again only
// after a whole exchange with nothing left over; after anything else it is closed
// before the evidence is final. A dispatch that breaks off, or whose process is lost, resets it:
// nothing arrives after its end.
//
// # Caveats
//
// An answer must be drained or closed, or its connection and its deadline stay.
// Closing early means giving up on the body: the evidence then says that it was
// cut. The context given to Send must outlive the script's connection, since its
// cancellation ends the dispatch.
package upstream
