// Package powerloss makes of a folder what a loss of power leaves of it.
//
// A [Shadow] is told of each sync, by the program or by a file system below it. It keeps what was
// made durable. A [Loss] then builds a folder from it. What nobody told of counts as lost. So an
// error while telling ends the trial, which would show something untrue. The steps passed on the
// way are named by [Steps], which says where to end the program.
//
// It follows files in a way that only Linux has.
package powerloss
