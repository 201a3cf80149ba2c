// Package fakes runs fakes of external APIs, by which keep-proxy is judged. They are real HTTP servers on loopback,
// over TLS, with HTTP/1.1 and HTTP/2. They count for themselves and sync a log of their own before they answer.
//
//	subpackage  what it is
//	oracle      the log: every request, effect and answer, and how to count them
//	script      how a fake misbehaves: faults as lists of steps
//	server      the server, and the protocol of its control listener
//	control     the client of a control listener
//	testca      certificate authority and leaves
//	sockets     what the system was asked for of a connection
//	vendorkey   how a vendor dedupes on an idempotency key
//	bank        transfers, with a key and a listing; notices, with no read
//	quotes      a read-only API, with a stream of server-sent events
//	data        an API that a YAML file describes (docs/fakes.md)
//
// The mail API is mail.yaml here. Those of vendors and a webhook that can't be asked are in connectors/fakes.
//
// Each API's package tells its endpoints, the identities that its log counts,
// and its settings.
//
// # In process
//
//	ca, err := testca.New()
//	bank, err := fakes.Start(fakes.Options{API: "bank", Log: path, CA: ca})
//	bank.ArmNamed("commit-close")       // next mutation: committed, no answer
//	…                                   // through the proxy, with ca.PEM() as upstream_ca
//	tally, err := bank.Tally()
//	tally.Effects("transfer:R-17")      // how often it happened
//	tally.Sends("transfer:R-17")        // how often it was asked
//
// # As a process
//
// [Main] is the same from a command line. A program which embeds it can start a fake that outlives whatever else is
// killed; [Spawn] starts it. It prints an [Announcement] as one line of JSON when it listens. It ends with its context
// or, under -until-eof, with its standard input. Killing it loses nothing either. After a restart with the same -log
// and -ca-dir it has the same books, keys and authority. Set the address that it had with -listen.
package fakes
