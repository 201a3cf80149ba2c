// Package trials tries a connector against a fake of its API, through the whole program.
//
// The program runs in this process, with a ledger in a temporary folder. What it sends to any host goes to the fake. The
// fake is data (internal/fakes/data); faults are injected before it.
//
// Nothing depends on the machine's time. The clock stands still until a trial moves it on, and a request to the fake
// takes a little of it. What is due by then the trial has done, and waits until it is done. Trials of one connector share
// a program; so much time passes between two of them that no record of the first matters to the second.
//
// Each trial of an operation has a fake of its own, and sends the request of one of the connector's cases. It then
// counts effects in the fake's log. What the proxy says is held against that log, never believed alone.
//
// # Failure
//
// A trial that can't be judged has failed, and so has one that takes longer than a minute. What can't be known for
// certain, so that a person is asked, is no failure.
package trials
