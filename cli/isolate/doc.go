// Package isolate serves, from outside, a command that has a network of its own ([keep-proxy/cli/netns]).
//
// A [Front] takes each connection of the command, and brings it to the proxy. [Names] answers DNS: each name gets an
// address of its own, by which it is found again. [Reach] carries what the command may reach past the proxy. [Refusals]
// counts what the kernel, or the front, refused.
//
// # Failure
//
// A connection that can't be brought to whom it is for is reset. A name that can't be looked up gets SERVFAIL. So does
// one after the last address, as no address ever stands for two names. What is no query gets no answer.
package isolate
