package upstream

import (
	"errors"
	"io"
	"net/http"
)

// ErrNoAnswer is what the Body of an Answer without a head returns.
var ErrNoAnswer = errors.New("upstream: no answer")

// Answer is what came back for one dispatch. Its fields may be read once Send has returned. Trailer
// is complete once Body has returned io.EOF. One goroutine reads Body; the methods may be called by
// others.
type Answer struct {
	// Status is the final status code, 0 if no complete head was read.
	Status int
	// Proto is the answer's protocol, such as "HTTP/1.1".
	Proto string
	// Header holds the head's fields as they were read, hop-by-hop ones included.
	Header http.Header
	// Trailer holds the trailer fields.
	Trailer http.Header
	// ContentLength is the announced length of Body, -1 if there is none.
	ContentLength int64
	// AtHand says that reading Body to its end waits for nobody. All of it came with the head, and the
	// request is written. The zero value says nothing.
	AtHand bool
	// Body yields the content while it arrives, never decompressed. It returns
	// io.EOF if and only if the content was whole; a cut one ends with an *Error.
	// It is never nil.
	Body io.Reader
	// Secrets were sent beside what the request holds. An API may say them again.
	Secrets []string

	ex exchange
}

// exchange is the running dispatch behind an answer.
type exchange interface {
	evidence() Evidence
	abandon()
}

// Evidence returns what was seen so far. It is final once Body has returned an
// error, io.EOF included, or Close has returned.
func (a *Answer) Evidence() Evidence { return a.ex.evidence() }

// Close ends the dispatch. If Body was not drained, the connection is closed and
// the evidence says that the body was cut. Close may be called more than once, and
// while Body is being read.
func (a *Answer) Close() { a.ex.abandon() }

// ended is an exchange that is over.
type ended Evidence

func (e *ended) evidence() Evidence { return Evidence(*e) }
func (e *ended) abandon()           {}

// noBody is the Body of an answer without a head.
type noBody struct{}

func (noBody) Read([]byte) (int, error) { return 0, ErrNoAnswer }
