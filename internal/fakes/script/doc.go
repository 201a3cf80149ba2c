// Package script says how a fake upstream misbehaves. A [Fault] is a list of steps. It is followed, in place of
// ordinary service, for the next requests that match it.
//
// Ordinary service is the list "commit, answer": the API does the work, and its answer is sent. A fault tells another
// story with the same words. That the acknowledgement is lost is "commit, close". That a server commits after the
// sender has left is "gone, wait, commit". Steps run in their order. The body of the request has been read before the
// first of them, unless that is [Early].
//
//	do       what happens                                        fields
//	early    answer at once, then read the body                  status header body
//	commit   the API does the work; its answer is kept in hand   hold, for, status body
//	fail     the API fails inside, having changed nothing        status body, hold, for
//	wait     wait for a gate to be released, or for a time       hold | for
//	gone     wait until the client has closed or reset
//	answer   send the answer in hand                             chunked
//	status   send another answer                                 status header body
//	cut      send the head and a part of the body, then close    bytes, chunked
//	slow     send the body a few bytes at a time                 bytes, for
//	huge     send a body of this many bytes                      bytes
//	close    close the connection (TLS: with close_notify)
//	reset    reset the connection (TCP RST)
//	abort    end the stream: h2 RST_STREAM, h1 an abrupt close
//
// A gate (hold) stays shut until it is released by name and stays open after that. So a release that comes first is not
// lost. Arming a fault that names a gate shuts it again. On commit and fail, hold and for act inside the API. They act
// after it has taken in the idempotency key, and before the effect. A status there is the API's own answer, which a
// vendor keeps under the key. The status step is a gateway's, of which the API knows nothing. A commit may be repeated,
// as a gateway that retries inside does.
//
// Every script ends the request's connection or answers it exactly once. The steps early, gone, answer, status, cut,
// slow, huge, close, reset and abort do so. Only wait, commit and fail may follow. A script that does not is refused
// when it is armed.
//
// # Named faults
//
// [Named] holds the common stories. Those that begin with "commit" change something. So do answer, hang, hang-inside,
// silence-then-late and early-200-and-commit. The others change nothing.
//
//	answer                 ordinary service, to let some requests pass first
//	commit-close           committed, then closed before a byte of the answer
//	commit-reset           the same with a TCP reset
//	commit-abort           the same with RST_STREAM (h1: an abrupt close)
//	commit-500, -502, -503 committed, and a gateway says otherwise
//	commit-own-500         committed, and the API itself fails; kept under a key
//	commit-cut             committed, head and half of the body by Content-Length
//	commit-cut-chunked     committed, head and half of the body, no last chunk
//	commit-silence         committed, never answered: until the client leaves
//	commit-twice           a gateway sends it to the API twice (a key dedupes)
//	commit-twice-close     the same, and the answer is lost
//	commit-error-in-200    committed, and 200 {"ok":false,"error":"internal_error"}
//	commit-chunked         committed, answered without Content-Length
//	commit-slow            committed, answered 16 bytes at a time
//	commit-huge            committed, answered with 12 MiB of spaces
//	commit-late            closed; committed once gate "late" is released
//	silence-then-late      the client leaves; committed once "late" is released
//	hang                   held at gate "hang", then served
//	hang-inside            held at "hang" with the key in use, then served
//	close, reset, abort    the connection ends; nothing was done
//	silence                never answered and never done
//	400, 409, 500, 502, 503  refused by a gateway
//	429                    the same, with Retry-After: 1
//	own-500                the API fails inside; some vendors keep that
//	error-in-200           200 {"ok":false,"error":"internal_error"}, nothing done
//	early-413              answered before the body is read
//	early-200-and-commit   answered before the body is read, then committed
package script
