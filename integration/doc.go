// Package integration holds the tests of the whole program: app, with real TLS on both sides. Where
// app is to be killed it runs in a process of its own. The upstreams sync a log of their effects
// before they answer.
//
// A test is decided by that log alone: how often an identity took effect, and how
// often it was sent. What the ledger says through the admin API is held against it,
// never the other way round. The scripts are plain HTTP clients which know nothing
// but the environment that a run was given.
//
// The rules of the tests (testdata/connectors) declare bounds, so that settle is a fraction of a
// second. Nothing waits longer than it has to, and nothing sleeps.
//
// KEEP_TEST_KILLS is how often the program is killed at random moments; default 16.
// KEEP_TEST_MATRIX=all goes through the whole crash matrix. KEEP_TEST_DISK names the program of
// integration/powerloss/disk to lose power on. KEEP_TEST_MATRIX_RESULTS names a file for what came
// of each cell.
package integration
