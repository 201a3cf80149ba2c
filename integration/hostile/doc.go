// Package hostile holds the tests of what tries to confuse: bytes that parsers read
// differently, from clients and from upstreams, through the whole program.
//
// The vectors are data (testdata), written from the RFCs before they were tried. Each
// is judged by the other side: an upstream that records every byte shows that not one
// of a refused request arrived, and that of an accepted one only the rebuilt form did.
package hostile
