package dispatch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Events takes what comes ahead of the answer in a stream of events.
type Events interface {
	// Begin is given the head, before the first event.
	Begin(status int, h http.Header)
	// Pass is given an event that answers nothing, as it came, with its id. It must not wait.
	Pass(id string, event []byte)
}

// errLongEvent says that an event is over the limit.
var errLongEvent = errors.New("an event of the stream is longer than the answer may be")

// isEvents knows a stream of events (WHATWG HTML §9.2) that can be read.
func isEvents(h http.Header) bool {
	mediaType, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && mediaType == "text/event-stream" && !upstream.Coded(h)
}

// readEvents reads the events up to the one that answers. Its data alone is the content. Head and earlier events prove
// nothing. Without it the outcome is unknown.
func (d *Dispatcher) readEvents(ctx context.Context, s *Sending) {
	var id []byte
	if err := d.Contents.Load(s.Request, s.Body, func(req *rules.Request) { id = s.Operation.CallID(req) }); err != nil {
		s.unanswered = "the request can't be read again: " + err.Error()
		return
	}
	s.Header = s.Header.Clone()
	if s.Events != nil {
		s.Events.Begin(s.Answer.Status, s.Header)
	}
	s.Header.Set("Content-Type", "application/json")
	s.Header.Del("Content-Length")
	for r, a := newEventReader(s.Answer.Body, s.Limit), s.Answer; ; {
		event, data, err := r.next()
		switch {
		case errors.Is(err, errLongEvent):
			a.Close()
			s.unanswered = errLongEvent.Error()
			return
		case err != nil:
			a.Close()
			if a = d.resume(ctx, s, r); a == nil {
				s.unanswered = "the stream ended before the event that answers"
				return
			}
			r = r.on(a.Body)
		case data != nil && rules.AnswersCall(id, data):
			s.Content, s.answered = InMemory(data), true
			a.Close() // What follows belongs to no answer.
			return
		case s.Events != nil:
			s.Events.Pass(r.id, event)
		}
	}
}

// Bounds of going on with a stream. A server may close its connection and let the client ask for the rest.
const (
	defaultRetry = time.Second
	maxRetry     = time.Minute
	// maxMisses is how often that may bring nothing.
	maxMisses = 3
)

// resume asks for the rest of a stream from its last event on, and returns the answer; nil for none.
func (d *Dispatcher) resume(ctx context.Context, s *Sending, r *eventReader) *upstream.Answer {
	total := s.Sent.Total
	if total <= 0 {
		total = upstream.DefaultTotal
	}
	if r.events > 0 {
		r.misses = 0
	}
	for r.events = 0; r.id != "" && r.misses < maxMisses; {
		r.misses++
		passed, ok := ledger.Stamp(clock.Take(d.Clock)).MonoSince(s.Dispatch.Started)
		if !ok || passed+r.retry >= total {
			return nil
		}
		select {
		case <-time.After(r.retry):
		case <-ctx.Done():
			return nil
		}
		a := d.Sender.Send(ctx, restOf(s.Sent, r.id, total-passed-r.retry))
		switch {
		case a.Status == http.StatusOK && isEvents(a.Header):
			return a
		case a.Status != 0 && a.Status < http.StatusInternalServerError:
			r.misses = maxMisses // It has no such stream.
		}
		a.Close()
	}
	return nil
}

// restOf asks for what comes after an event of the answer to sent.
func restOf(sent *upstream.Request, id string, total time.Duration) *upstream.Request {
	ask := *sent
	ask.Method, ask.Body, ask.Interim, ask.Check, ask.Total = http.MethodGet, nil, nil, nil, total
	ask.Header = sent.Header.Clone()
	maps.DeleteFunc(ask.Header, func(name string, _ []string) bool { return name == "Expect" || strings.HasPrefix(name, "Content-") })
	ask.Header.Set("Accept", "text/event-stream")
	ask.Header.Set("Last-Event-ID", id)
	return &ask
}

// eventReader reads events one by one.
type eventReader struct {
	in    *bufio.Reader
	limit int64
	// id is the last event's, retry how long the server wants to be left alone before it is asked for the rest.
	id    string
	retry time.Duration
	// events counts those of this connection, misses the connections without any.
	events, misses int
	// skipLF says that the line before ended with CR, whose LF may follow.
	skipLF bool
}

func newEventReader(in io.Reader, limit int64) *eventReader {
	return &eventReader{in: bufio.NewReader(in), limit: limit, retry: defaultRetry}
}

// on goes on with another connection.
func (r *eventReader) on(in io.Reader) *eventReader {
	next := *r
	next.in, next.skipLF = bufio.NewReader(in), false
	return &next
}

// next is the next event as it came, and its data; nil for an event without. One that is cut is an error.
func (r *eventReader) next() (event, data []byte, err error) {
	id := r.id
	for {
		start := len(event)
		if event, err = r.line(event); err != nil {
			return nil, nil, err
		}
		line := bytes.Trim(event[start:], "\r\n")
		if len(line) == 0 {
			r.id = id
			r.events++
			return event, bytes.TrimSuffix(data, []byte("\n")), nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			data = slices.Concat(data, value, []byte("\n"))
		case "id":
			id = string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
				r.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
			}
		}
	}
}

// line appends a line to the event. It ends with CR, LF or both.
func (r *eventReader) line(event []byte) ([]byte, error) {
	for {
		c, err := r.in.ReadByte()
		switch {
		case err != nil:
			return nil, err
		case int64(len(event)) >= r.limit:
			return nil, errLongEvent
		}
		skip := r.skipLF && c == '\n'
		r.skipLF = c == '\r'
		if event = append(event, c); skip {
			continue // It ended the line before.
		}
		if c == '\r' || c == '\n' {
			return event, nil
		}
	}
}
