package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Errors that this package's own reading and writing brings about.
var (
	errHeadTooBig = errors.New("the head of the answer is over the limit")
	errMalformed  = errors.New("the answer is not HTTP")
	errTruncated  = errors.New("the connection ended without TLS's closing alert")
	errBodyLength = errors.New("the request's body is not as long as announced")
)

// bodyError is an error of the request's own body.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// dialError classifies what went wrong before TLS.
func dialError(err error) *Error {
	var own *Error
	var egress *egressError
	var dns *net.DNSError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &egress):
		return &Error{ErrorEgress, egress.Error()}
	case errors.As(err, &dns):
		return &Error{ErrorDNS, "looking up " + dns.Name + ": " + dns.Err}
	case errors.Is(err, context.Canceled):
		return &Error{ErrorCanceled, "cancelled while connecting"}
	}
	return &Error{ErrorDial, "connecting: " + reason(err)}
}

// tlsError classifies what went wrong in the handshake. Texts of crypto/tls and
// crypto/x509 speak of names and certificates, which are public.
func tlsError(err error) *Error {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var own *Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &verify):
		text := verify.Error()
		_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
		if wrong, named := errors.AsType[x509.HostnameError](err); unknown || named && !hasSAN(wrong.Certificate) {
			text += "; proxy.upstream_ca can name an authority, or this very certificate"
		}
		return &Error{ErrorCertificate, text}
	case errors.As(err, &alert):
		return &Error{ErrorTLS, alert.Error()}
	case errors.As(err, &record):
		return &Error{ErrorTLS, "the upstream does not speak TLS"}
	case errors.Is(err, context.Canceled):
		return &Error{ErrorCanceled, "cancelled in the TLS handshake"}
	}
	return &Error{ErrorTLS, "TLS handshake: " + reason(err)}
}

// exchangeError classifies what went wrong once bytes may have been sent.
func exchangeError(err error) *Error {
	var body *bodyError
	switch {
	case errors.As(err, &body):
		return &Error{ErrorBody, reason(body.err)}
	case errors.Is(err, errHeadTooBig):
		return &Error{ErrorTooBig, reason(err)}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return &Error{ErrorReset, "the connection was reset"}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errTruncated):
		return &Error{ErrorEOF, reason(err)}
	case isNet(err):
		return &Error{ErrorReset, reason(err)}
	}
	return &Error{ErrorMalformed, reason(errMalformed)}
}

func isNet(err error) bool {
	var op *net.OpError
	var alert tls.AlertError
	return errors.As(err, &op) || errors.As(err, &alert) || errors.Is(err, net.ErrClosed)
}

// reason says what happened without quoting what was sent or received.
func reason(err error) string {
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return errno.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "the deadline ran out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended early"
	}
	for _, own := range []error{errHeadTooBig, errMalformed, errTruncated, errBodyLength} {
		if errors.Is(err, own) {
			return own.Error()
		}
	}
	return "the connection failed"
}

// causeError describes why a watch ended a dispatch.
func causeError(cause ErrorClass) *Error {
	switch cause {
	case ErrorTimeout:
		return &Error{cause, "the deadline ran out"}
	case ErrorCanceled:
		return &Error{cause, "cancelled"}
	case ErrorBody:
		return &Error{cause, "the request's body could not be read as announced"}
	default:
		return &Error{cause, "closed before the answer was drained"}
	}
}

// Error is how a dispatch, a body or a passed-through request went wrong. Its text
// holds no content of request or answer.
type Error struct {
	Class ErrorClass
	// Text says it in words.
	Text string
}

// Error returns the class and the text.
func (e *Error) Error() string { return "upstream: " + string(e.Class) + ": " + e.Text }
