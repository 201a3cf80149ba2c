// Package histories simulates whole runs from a seed. Scripts are killed, run again and rewritten,
// and rules change between them. The API is late, loses answers and does things twice. The machine
// crashes, reboots and changes its clock. The runner works, and people decide on mutations and
// items. All but the wire, the clock and the disk is real: requests go through proxy, rules,
// ledger, upstream and reconcilers. Connections are in memory, and time is that of
// testing/synctest.
//
// The API keeps the conditions of docs/semantics.md: its commits and the lag of its reads stay
// within their bounds. Each history is judged by the API's books: how often an identity took
// effect, and which vendor key carried what. The order of the ledger's commits is judged too. In
// TestLies the API breaks them, one at a time. See docs/proof.md.
package histories
