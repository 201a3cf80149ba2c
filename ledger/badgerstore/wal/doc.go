// Package wal is the ledger's log: a ring of frames in one file of fixed length.
//
// # File
//
// Two equal pages begin it, with the file's key and its length. The ring follows. A frame is written twice, side by
// side, each copy on pages of its own. No single damage takes both. Each copy begins with the file's key, which is
// random: content is never taken for a frame.
//
// A frame has a number, its writer's epoch, the time in that epoch, and the digest of the frame before. Its own
// digest covers all of that and its content.
//
// # Durability
//
// Append returns once its frame is synced. The next frame is written only then, so a crash can tear
// the last frame alone. Free lets the oldest frames be overwritten. The newest stays: the next one
// follows from it.
//
// # Opening
//
// Open looks at every page and keeps the tail: the newest frames that follow one another. It writes the newest once
// more and syncs it, since its writer may not have. What came before the tail must be known from elsewhere: that is
// for the caller to check.
//
// # Failure
//
// A read error is an error, never an end of the log. After a failed write or sync nobody knows what the
// file holds: every later Append fails.
package wal
