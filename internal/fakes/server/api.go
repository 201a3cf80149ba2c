package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"keep-proxy/internal/fakes/oracle"
)

// API is a fake of one external service. Its methods are called concurrently,
// except for Restore.
type API interface {
	// Name is the API's name, in lower case.
	Name() string
	// Identity names what the request would change, for the log; "" for a
	// read. It must not depend on anything but the request.
	Identity(*Request) string
	// Restore is called once, before anything is served, with the events of
	// earlier lives: effects and kept results.
	Restore([]oracle.Event) error
	// Serve does the work and returns the answer. It returns an error only if the work could not be recorded or was
	// abandoned in a wait. Nothing is answered then.
	Serve(context.Context, *Call) (*Answer, error)
}

// Bookkeeper is an API that can print what it holds, for people.
type Bookkeeper interface {
	// Books returns a small table, with a line feed at its end.
	Books() string
}

// Adjustable is an API with settings.
type Adjustable interface {
	// Adjust changes the settings that are named in the JSON object and keeps
	// the others. Unknown names are errors, and nothing is changed then.
	Adjust(settings []byte) error
}

// Request is what an API sees of a request.
type Request struct {
	Method   string
	Scheme   string // http or https
	Host     string
	Path     string // decoded
	Query    url.Values
	Header   http.Header
	Body     []byte
	Complete bool // the body was read to its end
}

// Call is one execution of a request inside an API.
type Call struct {
	*Request
	// ID is the request's id in the log.
	ID string
	// Digest is the hexadecimal SHA-256 of the body.
	Digest string
	// Now is the time of the server's clock.
	Now func() time.Time
	// Own, if not nil, is how the API itself must answer. It fails after the effect, or, when NoEffect is set, without
	// one.
	Own *Answer
	// NoEffect forbids the effect; Own is set then.
	NoEffect bool

	pause  func(context.Context) error
	record func(oracle.Event) error
}

// Pause must be called between taking in an idempotency key and the effect. It
// returns at once unless a fault holds the request there, and fails when the
// server is closed meanwhile.
func (c *Call) Pause(ctx context.Context) error { return c.pause(ctx) }

// Commit records an effect and, with it, the answer that the API keeps under a
// key (kept may be nil). It returns when both are on stable storage. Details is
// the effect in a form from which Restore can rebuild it.
func (c *Call) Commit(identity string, details any, kept *oracle.Kept) error {
	data, err := json.Marshal(details)
	if err != nil {
		return err
	}
	e := oracle.Event{Kind: oracle.KindEffect, Identity: identity, Kept: kept, Details: data}
	if kept != nil {
		e.Key = kept.Key
	}
	return c.record(e)
}

// Keep records an answer that is kept under a key and stands for no effect.
func (c *Call) Keep(identity string, kept *oracle.Kept) error {
	return c.record(oracle.Event{Kind: oracle.KindKept, Identity: identity, Key: kept.Key, Kept: kept})
}

// Answer is what an API answers. Either Body or Stream holds the content.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Stream writes an answer without an end known before. Each call of its argument sends its bytes at once.
	Stream func(ctx context.Context, send func([]byte) error) error
}

// JSON returns an answer with the JSON of v, which must be encodable; alternate
// names and values of fields follow.
func JSON(status int, v any, fields ...string) *Answer {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"code":"encoding"}}`)
	}
	a := &Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
	for i := 0; i+1 < len(fields); i += 2 {
		a.Header.Set(fields[i], fields[i+1])
	}
	return a
}
