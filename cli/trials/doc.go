// Package trials tries a connector against a fake of its API, through the whole program.
//
// The program runs in this process, with a ledger in a temporary folder and a clock that can be moved on. What it sends
// to any host goes to the fake. The fake is data (internal/fakes/data); faults are injected before it.
//
// Each trial of an operation has a fake of its own, and sends the request of one of the connector's cases. It then
// counts effects in the fake's log. What the proxy says is held against that log, never believed alone.
//
// # Failure
//
// A trial that can't be judged has failed. What can't be known for certain, so that a person is asked, is no failure.
package trials
