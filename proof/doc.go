// Command proof tries to break what docs/semantics.md promises, in stages that each print
// their part:
//
//	go run ./proof [-n NUMBER] [-seed SEED] [-match EXPRESSION] [-write] [STAGE...]
//
// Stages judge by what the APIs themselves counted, never by the program's own state. A
// stage that can't run here says "not run" and why, and does not pass for one that did;
// a stage that finds what it should not, or misses what it should find, makes the exit
// code 1. With -write, the report replaces the parts of these stages in docs/proof.md.
//
// It starts go, and where they are installed spin and a C compiler, as programs; it is no
// part of keep-proxy and imports nothing of it.
package main
