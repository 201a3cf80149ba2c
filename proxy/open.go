package proxy

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"keep-proxy/upstream"
)

// cutInterval is how often open streams are compared with the gate, so that a
// stop that came from elsewhere (a person, a takeover, a time limit) cuts them, and
// with their clients, which may have gone.
const cutInterval = 50 * time.Millisecond

// past is a deadline that is over.
var past = time.Unix(1, 0)

// open is what is being streamed now: it is cut when its scope is stopped.
type open struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
}

func newOpen() *open { return &open{streams: make(map[*stream]struct{})} }

// add registers a stream of the caller; the client's context says when nobody waits
// for it any more. It must be ended.
func (o *open) add(client context.Context, c caller) *stream {
	s := &stream{Context: client, caller: c, open: o}
	o.mu.Lock()
	o.streams[s] = struct{}{}
	o.mu.Unlock()
	return s
}

// sweep cuts the streams whose clients have gone, and shows the others, those of one
// caller together.
func (o *open) sweep(look func(caller, streams)) {
	o.mu.Lock()
	gone, open := streams(nil), map[caller]streams{}
	for s := range o.streams {
		if s.Context.Err() != nil {
			gone = append(gone, s)
			continue
		}
		open[s.caller] = append(open[s.caller], s)
	}
	o.mu.Unlock()
	gone.cut()
	for c, s := range open {
		look(c, s)
	}
}

// streams are some that are cut together.
type streams []*stream

// unheld are those that no proxy.hold is for.
func (all streams) unheld() streams {
	return slices.DeleteFunc(all, func(s *stream) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.held
	})
}

func (all streams) cut() {
	for _, s := range all {
		s.cut()
	}
}

// stream is something that is being streamed, and the context of the request that it
// answers: with the client's values, and done when the stream was cut. The standard
// library's contexts do the same, but each keeps lists of its children, and there are
// two of them to every read.
type stream struct {
	//nolint:containedctx // It is one itself.
	context.Context
	caller caller
	open   *open

	mu   sync.Mutex
	over bool
	done chan struct{} // made when it is asked for
	// atEnd run in goroutines of their own when the stream is cut.
	atEnd []*func()
	// answer is where the stream goes to, once it goes there.
	answer *answerWriter
	// asking is whose content is awaited, nil for nobody.
	asking *answerWriter
	// interims takes the interim responses to the request; nil for nobody. It is set
	// before the request is sent.
	interims *interims
	// stopped says that it was cut, and not because its client had gone.
	stopped bool
	// held says that it is a request which a stop that may pass lets wait.
	held bool
}

// cut ends the stream. It may be called at any time, more than once. A client that
// doesn't read what it was sent keeps nothing open: no more is written to it. Nor does
// one that doesn't send what it announced: no more is read from it.
func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.stopped = s.Context.Err() == nil
	if s.answer != nil {
		s.answer.sever()
	}
	if s.asking != nil {
		// Where there is no such deadline proxy.timeouts.request has to do.
		_ = http.NewResponseController(s.asking.ResponseWriter).SetReadDeadline(past)
	}
	s.close()
}

// mayBeHeld says that proxy.hold is for s: it is not an answer yet.
func (s *stream) mayBeHeld() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = true
}

// awaits lets content come from a client, for as long as extend says. It reports whether
// the stream is still open.
func (s *stream) awaits(from *answerWriter, extend func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.asking = from
	extend()
	return true
}

// came says that nobody's content is awaited any more.
func (s *stream) came() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking = nil
}

// wasStopped reports whether it was cut for another reason than that its client left.
func (s *stream) wasStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// close is the end of the stream, with s.mu held.
func (s *stream) close() {
	s.over = true
	if s.done != nil {
		close(s.done)
	}
	for _, f := range s.atEnd {
		go (*f)()
	}
	s.atEnd = nil
}

// content is what the answer of the stream consists of from now on.
func (s *stream) content(answer *answerWriter, body io.ReadCloser) io.ReadCloser {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
	return &uncut{body, s}
}

// end takes the stream out, and ends what is left of it.
func (s *stream) end() {
	s.open.mu.Lock()
	delete(s.open.streams, s)
	s.open.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.close()
	}
}

// Done implements context.Context.
func (s *stream) Done() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.over {
			close(s.done)
		}
	}
	return s.done
}

// Err implements context.Context.
func (s *stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return context.Canceled
	}
	return nil
}

// Value implements context.Context.
func (s *stream) Value(key any) any {
	if key == (upstream.InterimsKey{}) && s.interims != nil {
		return s.interims
	}
	return s.Context.Value(key)
}

// Deadline implements context.Context: there is none.
func (*stream) Deadline() (time.Time, bool) { return time.Time{}, false }

// AfterFunc is what context.AfterFunc does for s; package context looks for it.
func (s *stream) AfterFunc(f func()) (stop func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		go f()
		return func() bool { return false }
	}
	at := &f
	s.atEnd = append(s.atEnd, at)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.atEnd, at)
		if i >= 0 {
			s.atEnd = slices.Delete(s.atEnd, i, i+1)
		}
		return i >= 0
	}
}
