// Package demo plays what keep-proxy is for, on loopback: a bank that commits and
// drops the connection, a script that tries again, and the bank's own books.
//
// The bank and the quote API are servers of package fakes, over real TLS, and count
// for themselves. The proxy is a process of its own, so that it can be killed. The
// script is sh with curl where both are there, else a client built into the program;
// it knows nothing of keep-proxy.
//
// Everything is kept in a temporary folder, which is removed at the end, and listens
// on free ports of 127.0.0.1.
//
// # Failure
//
// Run fails if the books don't show what each act promises, if a command ends with another
// code than its act tells of, or if the proxy doesn't know again within 30 s. However it
// ends, the bank, the proxy and the folder are gone; of a demo that is killed the proxy ends
// too, and the folder stays.
package demo
