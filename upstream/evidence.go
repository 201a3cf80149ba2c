package upstream

import (
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/internal/verdict"
)

// Evidence is what was seen of one dispatch. It is stored with the dispatch and
// holds no content of request or answer. The zero value proves nothing.
type Evidence struct {
	// Started is when Send was called, Ended when the answer was complete or the
	// connection closed. Ended is zero while the dispatch goes on.
	Started clock.Stamp `json:"started"`
	Ended   clock.Stamp `json:"ended"`

	// BytesWritten counts the plaintext bytes that were written to the connection
	// for this dispatch. Over HTTP/2 it can include frames of the connection.
	BytesWritten int64 `json:"bytes_written"`

	// RequestComplete says that the request was written whole.
	RequestComplete bool `json:"request_complete"`

	// NotSent says that it is proven that the upstream got no byte of the request.
	NotSent bool `json:"not_sent"`

	// Refused says that the upstream first of all declared that it did not process the request. It did
	// so by REFUSED_STREAM or a GOAWAY below the stream (HTTP/2), and the request lets us believe
	// that. When it does not, only ErrorClass tells.
	Refused bool `json:"refused"`

	// Head says that a complete, well-formed final head was read; Status is its
	// status code, and HeadAt when it had been read (wall clock).
	Head   bool      `json:"head"`
	Status int       `json:"status,omitempty"`
	HeadAt time.Time `json:"head_at,omitzero"`

	// BodyComplete says that the answer was read to its proven end, trailers
	// included. BodyBytes counts the content that was read.
	BodyComplete bool  `json:"body_complete"`
	BodyBytes    int64 `json:"body_bytes"`

	// ErrorClass says what went wrong, empty for nothing. Error says it in words,
	// without any content of request or answer.
	ErrorClass ErrorClass `json:"error_class,omitempty"`
	Error      string     `json:"error,omitempty"`

	// Link is zero if there was no connection.
	Link
}

// Link is what evidence says of the connection. The dialer and the pool set it.
type Link struct {
	// Protocol is "HTTP/1.1" or "HTTP/2.0", Remote the address of the upstream.
	Protocol string `json:"protocol,omitempty"`
	Remote   string `json:"remote,omitempty"`
	// Reused says that the connection had carried a dispatch before.
	Reused bool `json:"reused"`
}

// ErrorClass says at which point, and how, a dispatch went wrong.
type ErrorClass string

const (
	// ErrorRequest: the request can't be written as it is. Nothing was sent.
	ErrorRequest ErrorClass = "request"
	// ErrorDNS: the host name could not be resolved. Nothing was sent.
	ErrorDNS ErrorClass = "dns"
	// ErrorDial: no connection came about, in time. Nothing was sent.
	ErrorDial ErrorClass = "dial"
	// ErrorEgress: policy refuses the address. Nothing was sent.
	ErrorEgress ErrorClass = "egress"
	// ErrorTLS: the handshake failed. Nothing was sent.
	ErrorTLS ErrorClass = "tls"
	// ErrorCertificate: the upstream's certificate isn't trusted, or that of the proxy before it. Nothing was sent.
	ErrorCertificate ErrorClass = "certificate"
	// ErrorProxy: the upstream proxy did not connect. Nothing was sent.
	ErrorProxy ErrorClass = "proxy"
	// ErrorCheck: Request.Check refused. Nothing was sent.
	ErrorCheck ErrorClass = "check"
	// ErrorBody: the request's body could not be read, or was not as long as it
	// had said.
	ErrorBody ErrorClass = "body"
	// ErrorWrite: writing failed, and no answer could be read.
	ErrorWrite ErrorClass = "write"
	// ErrorReset: the upstream reset the connection or the stream.
	ErrorReset ErrorClass = "reset"
	// ErrorEOF: the connection ended before the answer did.
	ErrorEOF ErrorClass = "eof"
	// ErrorTimeout: a deadline ran out.
	ErrorTimeout ErrorClass = "timeout"
	// ErrorCanceled: the context given to Send was cancelled.
	ErrorCanceled ErrorClass = "canceled"
	// ErrorClosed: the answer was closed before it was drained.
	ErrorClosed ErrorClass = "closed"
	// ErrorMalformed: what the upstream sent is not HTTP.
	ErrorMalformed ErrorClass = "malformed"
	// ErrorTooBig: the head, with the interim responses before it, is over the limit.
	ErrorTooBig ErrorClass = "too_big"
	// ErrorRefused: HTTP/2 REFUSED_STREAM, or GOAWAY below the stream.
	ErrorRefused ErrorClass = "refused"
)

// Unreached is the class of what was not sent: somebody has to allow the address or the certificate, the rest may pass.
func (c ErrorClass) Unreached() verdict.Class {
	if c == ErrorEgress || c == ErrorCertificate {
		return verdict.Permission
	}
	return verdict.Transient
}

// Unsent reports whether the class alone says that nothing was sent.
func (c ErrorClass) Unsent() bool {
	switch c {
	case ErrorRequest, ErrorDNS, ErrorDial, ErrorEgress, ErrorTLS, ErrorCertificate, ErrorProxy, ErrorCheck:
		return true
	case ErrorBody, ErrorWrite, ErrorReset, ErrorEOF, ErrorTimeout, ErrorCanceled, ErrorClosed, ErrorMalformed, ErrorTooBig, ErrorRefused:
	}
	return false
}
