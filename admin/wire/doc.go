// Package wire holds the JSON types of the admin API, as its server and its
// client share them.
//
// Names are snake_case, times RFC 3339, durations as Go prints them. A list is
// {"items": […], "next": cursor}. Every error is a [Problem] (RFC 9457).
//
// The types marshal alike with encoding/json and with github.com/go-json-experiment/json. The server decodes requests
// strictly: unknown and repeated member names are refused.
//
// # Failure
//
// A value that can't be read is an error that says how to write it, never the zero value.
// A member that is missing is one: each type's comment says what that means. Content that
// isn't shown is marked as missing, with the reason, and can't be taken for empty.
package wire
