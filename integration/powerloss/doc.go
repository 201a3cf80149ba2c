// Package powerloss makes of a folder what a loss of power leaves of it.
//
// A [Shadow] is told of each sync, by the program that makes it or by a file system below
// that program, and keeps what was made durable. A [Loss] then builds a folder from it.
// What nobody told of counts as lost: an error to tell is one that ends the trial, since
// what it would show were not so. [Steps] names the steps that are passed on the way, and says at
// which of them the program is to be ended.
//
// It follows files in a way that only Linux has.
package powerloss
