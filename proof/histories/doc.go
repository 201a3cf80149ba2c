// Package histories simulates whole runs from a seed: scripts that are killed, run again and
// rewritten, rules that change between them, an API that is late, loses answers and does things
// twice, a machine that crashes, reboots and changes its clock, the runner, and people who
// decide on mutations and items. Everything is the real proxy path but the wire, the clock
// and the disk: requests go through proxy, rules, ledger, upstream and reconcilers over connections
// in memory, in the time of testing/synctest.
//
// The API keeps the conditions of docs/semantics.md (it commits no later than its bound,
// and its reads lag no more than theirs), and each history is judged by its books: how often
// an identity took effect, and which vendor key carried what; and by the order of the ledger's
// commits. In TestLies it breaks them, one at a time. See docs/proof.md.
package histories
