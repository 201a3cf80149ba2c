package dispatch

import (
	"bufio"
	"bytes"
	"errors"
	"mime"
	"net/http"

	"keep-proxy/rules"
	"keep-proxy/upstream"
)

// Events takes what comes ahead of the answer in a stream of events.
type Events interface {
	// Begin is given the head, before the first event.
	Begin(status int, h http.Header)
	// Pass is given an event that answers nothing, as it came. It must not wait.
	Pass(event []byte)
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
func (d *Dispatcher) readEvents(s *Sending) {
	var id []byte
	if err := d.Contents.Load(s.Request, s.Body, func(req *rules.Request) { id = rules.CallID(req) }); err != nil {
		s.unanswered = "the request can't be read again: " + err.Error()
		return
	}
	if s.Events != nil {
		s.Events.Begin(s.Answer.Status, s.Header)
	}
	in := eventReader{in: bufio.NewReader(s.Answer.Body), limit: s.Limit}
	for {
		event, data, err := in.next()
		switch {
		case err != nil:
			s.unanswered = "the stream ended before the event that answers"
			if errors.Is(err, errLongEvent) {
				s.unanswered = errLongEvent.Error()
			}
			s.Answer.Close()
			return
		case data != nil && rules.AnswersCall(id, data):
			s.Content, s.answered = InMemory(data), true
			s.Header.Set("Content-Type", "application/json")
			s.Header.Del("Content-Length")
			s.Answer.Close() // What follows belongs to no answer.
			return
		case s.Events != nil:
			s.Events.Pass(event)
		}
	}
}

// eventReader reads events one by one.
type eventReader struct {
	in    *bufio.Reader
	limit int64
	// skipLF says that the line before ended with CR, whose LF may follow.
	skipLF bool
}

// next is the next event as it came, and its data; nil for an event without. One that is cut is an error.
func (r *eventReader) next() (event, data []byte, err error) {
	for {
		start := len(event)
		if event, err = r.line(event); err != nil {
			return nil, nil, err
		}
		line := bytes.Trim(event[start:], "\r\n")
		if len(line) == 0 {
			return event, bytes.TrimSuffix(data, []byte("\n")), nil
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); string(name) == "data" {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
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
