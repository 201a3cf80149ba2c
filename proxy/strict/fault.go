package strict

import "net/http"

// Fault is why a connection can't be read on. It is comparable: each is a variable
// of this package.
type Fault struct {
	// Status is how the client is answered.
	Status int
	// Section is the rule that was broken, such as "RFC 9112 §5.1".
	Section string
	// Detail is a sentence for the client's author.
	Detail string
}

// Error implements error.
func (f *Fault) Error() string { return f.Detail + " (" + f.Section + ")" }

func bad(section, detail string) *Fault { return &Fault{http.StatusBadRequest, section, detail} }

// What a Scanner may find in a head.
var (
	FaultNotHTTP     = bad("RFC 9112 §2.1", "This is not HTTP/1")
	FaultBareLF      = bad("RFC 9112 §2.2", "A line ends in LF without CR")
	FaultControl     = bad("RFC 9110 §5.5", "The head holds a control character")
	FaultRequestLine = bad("RFC 9112 §3", "The request line is not method, target and version with one space between")
	FaultMethod      = bad("RFC 9110 §9.1", "The method is not a token")
	FaultTarget      = bad("RFC 9112 §3.2", "The request target has none of the four forms")
	FaultFragment    = bad("RFC 9112 §3.2", "The request target holds a fragment or a character that no URI has")
	FaultAsterisk    = bad("RFC 9112 §3.2.4", "The target \"*\" goes with OPTIONS only")
	FaultAuthority   = bad("RFC 9110 §7.2", "The authority is not host or host:port")
	FaultUserinfo    = bad("RFC 9110 §4.2.4", "The authority holds user information")
	FaultPort        = bad("RFC 3986 §3.2.3", "The port is not a number from 1 to 65535")
	FaultFold        = bad("RFC 9112 §5.2", "A field line begins with a space: folded fields are obsolete")
	FaultName        = bad("RFC 9112 §5.1", "A field has no name, or one that is not a token directly before its colon")
	FaultUnderscore  = bad("RFC 9110 §5.1", "A field that frames or routes is spelt with \"_\", which some servers take for \"-\"")
	FaultNoHost      = bad("RFC 9112 §3.2", "An HTTP/1.1 request needs a Host field")
	FaultHosts       = bad("RFC 9112 §3.2", "The request has several Host fields")
	FaultHost        = bad("RFC 9112 §3.2", "The Host field is not host or host:port")
	FaultLength      = bad("RFC 9110 §8.6", "Content-Length is not a number in digits")
	FaultLengths     = bad("RFC 9112 §6.3", "The request has several Content-Length fields")
	FaultFraming     = bad("RFC 9112 §6.1", "The request has both Content-Length and Transfer-Encoding")
	FaultCoding      = bad("RFC 9112 §6.1", "Transfer-Encoding is not \"chunked\" alone, once")
	FaultOldCoding   = bad("RFC 9112 §6.1", "HTTP/1.0 knows no Transfer-Encoding")
	FaultConnectBody = bad("RFC 9110 §9.3.6", "A CONNECT request has no content")
	FaultEnded       = bad("RFC 9112 §8", "The connection ended within the head of a request")
	FaultHead        = bad("RFC 9112 §2.2", "The head of the request can't be read")

	FaultMisdirected = &Fault{http.StatusMisdirectedRequest, "RFC 9112 §3.2.2", "The Host field is not the authority of the request target"}
	FaultLate        = &Fault{http.StatusRequestTimeout, "RFC 9110 §15.5.9", "The head of the request did not arrive in time"}
	FaultLongTarget  = &Fault{http.StatusRequestURITooLong, "RFC 9112 §3", "The request line is over the limit of a head"}
	FaultExpectation = &Fault{http.StatusExpectationFailed, "RFC 9110 §10.1.1", "The only expectation that is known is 100-continue"}
	FaultLongHead    = &Fault{http.StatusRequestHeaderFieldsTooLarge, "RFC 6585 §5", "The head of the request is over the limit"}
	FaultUnknown     = &Fault{http.StatusNotImplemented, "RFC 9112 §6.1", "The transfer coding is not known; only chunked is"}
	FaultVersion     = &Fault{http.StatusHTTPVersionNotSupported, "RFC 9110 §15.6.6", "The version of HTTP is not 1.0 or 1.1; HTTP/2 is spoken over TLS only"}
)

// What a Scanner may find in a body.
var (
	FaultChunkSize    = bad("RFC 9112 §7.1", "A chunk's size is not a number in hexadecimal digits")
	FaultChunkExt     = bad("RFC 9112 §7.1.1", "A chunk extension is not a name with an optional value, without spaces")
	FaultChunkLine    = bad("RFC 9112 §7.1.1", "A chunk's size line is over the limit of 1 KiB")
	FaultChunkEnd     = bad("RFC 9112 §7.1", "A chunk's data does not end in CRLF")
	FaultTrailer      = bad("RFC 9110 §6.5.1", "A trailer holds a field that frames, routes or authenticates")
	FaultTrailerField = bad("RFC 9112 §7.1.2", "A trailer field is malformed")
	FaultLongTrailer  = &Fault{http.StatusRequestHeaderFieldsTooLarge, "RFC 6585 §5", "The trailers are over the limit of a head"}
)
