package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/script"
)

// exchange is one request on its way through the server.
type exchange struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	id    string
	req   *Request
	ident string
	sum   string
	fault script.Fault
	hand  *Answer // what commit or fail gave, to be sent
	over  bool    // answered, or its connection ended
	lost  bool    // its connection or stream ended without a whole answer
}

// plain is the story of a request that no fault is armed for.
var plain = script.Fault{Steps: []script.Step{{Do: script.Commit}, {Do: script.Answer}}}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.working.Done()
	x := &exchange{s: s, w: w, r: r, fault: plain, id: fmt.Sprintf("%s-%d", s.prefix, s.nextID.Add(1))}
	if !reads(r) {
		s.rest.begin(x)
		defer s.rest.end(x)
	}
	if err := x.run(); err != nil { //nolint:contextcheck // the exchange holds the request and its context
		s.fail(err)
	}
	if !x.over || x.lost {
		panic(http.ErrAbortHandler) // leaves no answer of net/http's own behind
	}
}

// run follows the request to its end. Only an unusable log is an error.
func (x *exchange) run() error {
	if err := x.note(x.headEvent()); err != nil {
		return err
	}
	x.req = request(x.r)
	steps, err := x.beforeBody()
	if err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	if !x.req.Complete {
		return x.ended(x.refuseCut())
	}
	if steps == nil {
		x.choose(true)
		steps = x.fault.Steps
	}
	for i, step := range steps {
		if !commits(steps[i:]) {
			x.s.rest.end(x)
		}
		if err := x.step(step); err != nil {
			return x.ended(err)
		}
	}
	return x.ended(nil)
}

func request(r *http.Request) *Request {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &Request{Method: r.Method, Scheme: scheme, Host: r.Host, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header}
}

// beforeBody answers early if a fault wants that, and returns the steps that
// are left of it.
func (x *exchange) beforeBody() ([]script.Step, error) {
	if !x.choose(false) {
		return nil, nil
	}
	// Without this an HTTP/1 server stops reading the body once it has answered.
	if err := http.NewResponseController(x.w).EnableFullDuplex(); err != nil && x.r.ProtoMajor < 2 {
		return nil, err
	}
	first := x.fault.Steps[0]
	if err := x.send(stepAnswer(first), false); err != nil {
		return nil, err
	}
	return append([]script.Step{}, x.fault.Steps[1:]...), nil
}

func (x *exchange) choose(bodyRead bool) bool {
	subject := script.Subject{Method: x.req.Method, Path: x.req.Path, Identity: x.ident, Header: x.req.Header.Get, Body: x.req.Body}
	fault, ok := x.s.deck.Take(subject, bodyRead)
	if ok {
		x.fault = fault
	}
	return ok
}

// readBody reads what comes, notes it, and names the request's identity. A body
// that was cut is served no further.
func (x *exchange) readBody() error {
	body, readErr := io.ReadAll(x.r.Body)
	sum := sha256.Sum256(body)
	x.sum = hex.EncodeToString(sum[:])
	x.req.Body, x.req.Complete = body, readErr == nil
	x.ident = x.s.cfg.API.Identity(x.req)
	e := oracle.Event{Kind: oracle.KindReceived, Method: x.r.Method, Target: x.r.RequestURI, Key: x.r.Header.Get("Idempotency-Key"),
		Digest: x.sum, Length: int64(len(body)), Body: body[:min(len(body), oracle.MaxBody)], Complete: x.req.Complete}
	return x.note(e)
}

// refuseCut ends a request whose body was cut, unless it was answered early.
func (x *exchange) refuseCut() error {
	if x.over {
		return nil
	}
	return x.hangUp(script.Abort)
}

// note writes an event of this request.
func (x *exchange) note(e oracle.Event) error {
	e.Request, e.Fault = x.id, x.fault.Name
	if e.Identity == "" {
		e.Identity = x.ident
	}
	return x.s.cfg.Log.Append(e)
}

func (x *exchange) headEvent() oracle.Event {
	return oracle.Event{Kind: oracle.KindHead, Method: x.r.Method, Target: x.r.RequestURI, Proto: x.r.Proto,
		Host: x.r.Host, Header: witnessed(x.r.Header)}
}

// ended notes the end. A wait that was given up since the server closes is no
// failure of the service.
func (x *exchange) ended(err error) error {
	if err != nil && x.s.life.Err() == nil {
		return err
	}
	return x.note(oracle.Event{Kind: oracle.KindEnded})
}

// commit calls the API, with the step's wishes for its inside. A read shows what came before it. One that a busy
// machine lets overtake a change would tell of an absence that isn't one.
func (x *exchange) commit(step script.Step) error {
	if reads(x.r) {
		_ = x.s.rest.wait(x.r.Context()) // Nobody gets the answer if that ended.
	}
	call := &Call{Request: x.req, ID: x.id, Digest: x.sum, Now: x.s.cfg.Now, NoEffect: step.Do == script.Fail}
	if step.Status != 0 {
		call.Own = stepAnswer(step)
	}
	call.pause = func(ctx context.Context) error { return x.wait(ctx, step) }
	call.record = x.note
	answer, err := x.s.cfg.API.Serve(x.s.life, call)
	if err != nil {
		return err
	}
	x.hand = answer
	return nil
}

// wait waits as the step says; a step that says nothing doesn't wait. What it commits after
// that is late.
func (x *exchange) wait(ctx context.Context, step script.Step) error {
	if step.Hold == "" && step.For == 0 {
		return ctx.Err()
	}
	if x.s.rest.end(x) {
		defer x.s.rest.begin(x)
	}
	switch {
	case step.Hold != "":
		opened := x.s.gates.Opened(step.Hold)
		if err := x.note(oracle.Event{Kind: oracle.KindHeld, Gate: step.Hold}); err != nil {
			return err
		}
		select {
		case <-opened:
		case <-ctx.Done():
		}
	case step.For != 0:
		select {
		case <-x.s.cfg.After(step.For.Std()):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// witnessed returns the fields for the log, credentials as digests.
func witnessed(h http.Header) map[string]string {
	out := make(map[string]string, len(h))
	for name, values := range h {
		value := strings.Join(values, ", ")
		switch name {
		case "Authorization", "Proxy-Authorization", "Cookie", "X-Api-Key":
			sum := sha256.Sum256([]byte(value))
			value = "sha256:" + hex.EncodeToString(sum[:])
		}
		out[name] = value
	}
	return out
}
