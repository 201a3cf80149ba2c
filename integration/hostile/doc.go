// Package hostile holds the tests of bytes that parsers read differently. They come from clients
// and upstreams, and go through the whole program.
//
// The vectors are data (testdata), written from the RFCs before they were tried. Each is judged by
// an upstream that records every byte. Not one byte of a refused request may arrive, and of an
// accepted one only the rebuilt form.
package hostile
