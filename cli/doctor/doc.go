// Package doctor examines an installation, and a sandbox from inside.
//
// Every examination ends in findings; it changes nothing that lasts, and sends nothing
// to anybody but the proxy itself, unless it is given targets to try to reach past it:
// those get a TCP connection without a byte.
//
// # Failure
//
// What can't be found out is said to be unknown, with the reason, and never sound. One
// examination that fails leaves the others as they are.
package doctor
