// Command proof tries to break what docs/semantics.md promises, in stages that each print
// their part:
//
//	go run ./proof [-n NUMBER] [-seed SEED] [-match EXPRESSION] [-write] [STAGE...]
//
// Stages judge by what the APIs themselves counted, never by the program's own state. A stage that
// can't run here says "not run" and why, and does not pass. A stage that finds a fault, or misses
// one that it should find, makes the exit code 1. With -write, the report replaces the parts of
// these stages in docs/proof.md.
//
// It starts go, spin and a C compiler as programs, the latter two where installed. It imports
// nothing of keep-proxy and is no part of it.
package main
