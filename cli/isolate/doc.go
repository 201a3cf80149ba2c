// Package isolate serves, from outside, a command that runs in a network namespace of its own. [Names] answers its DNS
// queries: each name gets addresses of its own, by which it is found again. [Reach] carries connections past the proxy,
// and [Refusals] counts what was refused.
//
// # Failure
//
// A name that can't be looked up gets SERVFAIL, and so does one after the last address. What is no query gets no answer.
//
// A connection that finds no entry of Reach isn't carried. One whose entry can't be reached is reset.
package isolate
