package proxy

import (
	"context"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"keep-proxy/upstream"
)

// followAfter is when the client of a stream is followed: most streams end before.
const followAfter = 50 * time.Millisecond

// past is a deadline that is over.
var past = time.Unix(1, 0)

// open is what is being streamed now: it is cut when its scope is stopped, and when its
// client has gone.
type open struct {
	// begun holds one if follow is wanted.
	begun chan struct{}

	mu sync.Mutex
	// fresh are the streams whose clients nobody follows yet.
	fresh, followed map[*stream]struct{}
	// following says that follow was asked for, and will be called.
	following bool
}

func newOpen() *open {
	return &open{begun: make(chan struct{}, 1), fresh: make(map[*stream]struct{}), followed: make(map[*stream]struct{})}
}

// add registers a stream of the caller; the client's context says when nobody waits
// for it any more, held whether proxy.hold is for it. It must be ended.
func (o *open) add(client context.Context, c caller, held bool) *stream {
	s := &stream{Context: client, caller: c, open: o, held: held}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fresh[s] = struct{}{}
	if !o.following {
		o.following = true
		select {
		case o.begun <- struct{}{}:
		default:
		}
	}
	return s
}

// follow follows the clients of the streams that are open now. It must be called a while
// after begun said so, and goes on being called as long as it reports more; open says whether any is.
func (o *open) follow() (more, open bool) {
	o.mu.Lock()
	fresh := slices.Collect(maps.Keys(o.fresh))
	maps.Copy(o.followed, o.fresh)
	clear(o.fresh)
	o.following = len(fresh) > 0
	more, open = o.following, len(o.followed) > 0
	o.mu.Unlock()
	for _, s := range fresh {
		s.follow()
	}
	return more, open
}

// all are the open streams, with o.mu held.
func (o *open) all() iter.Seq[*stream] {
	return func(yield func(*stream) bool) {
		for _, some := range []map[*stream]struct{}{o.fresh, o.followed} {
			for s := range some {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// uncover cuts what may go unseen no more.
func (o *open) uncover() {
	o.mu.Lock()
	all := slices.Collect(o.all())
	o.mu.Unlock()
	for _, s := range all {
		if !s.mayGoUnseen() {
			s.cut()
		}
	}
}

// count is how many streams are open.
func (o *open) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.fresh) + len(o.followed)
}

// sweep cuts the streams whose clients have gone, and shows the others, those of one
// caller together.
func (o *open) sweep(look func(caller, streams)) {
	o.mu.Lock()
	gone, open := streams(nil), map[caller]streams{}
	for s := range o.all() {
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

// stopped are those that no proxy.hold is for, and those whose hold is over; begins says
// that some have to wait from now on.
func (all streams) stopped(now, hold time.Duration) (out streams, begins bool) {
	for _, s := range all {
		over, first := s.holds(now, hold)
		if begins = begins || first; over {
			out = append(out, s)
		}
	}
	return out, begins
}

// free says that nothing stops them.
func (all streams) free() {
	for _, s := range all {
		if s.held {
			s.mu.Lock()
			s.heldSince = 0
			s.mu.Unlock()
		}
	}
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
	// before the request is sent (see shows).
	interims *interims
	// stopped says that it was cut, and not because its client had gone.
	stopped bool
	// held says that it is a request which a stop that may pass lets wait: proxy.hold is
	// for it, as it is not an answer yet. heldSince is when that began, 0 while nothing
	// stops it.
	held      bool
	heldSince time.Duration
	// unseen asks whether what the stream carries may still go unseen; nil for what is
	// looked into.
	unseen func() bool
	// unfollow ends following the client, nil before that began.
	unfollow func() bool
}

// follow cuts the stream when its client goes.
func (s *stream) follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.unfollow = context.AfterFunc(s.Context, s.cut)
	}
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
	s.interims.sever()
	if s.asking != nil {
		// Where there is no such deadline proxy.timeouts.request has to do.
		_ = http.NewResponseController(s.asking.ResponseWriter).SetReadDeadline(past)
	}
	s.close()
}

// goUnseen says that nobody looks at what the stream carries from now on, for as long as may
// says so, and reports whether it does now. A reload before this is seen here, and one after it
// sees the stream.
func (s *stream) goUnseen(may func() bool) bool {
	s.mu.Lock()
	s.unseen = may
	s.mu.Unlock()
	return may()
}

func (s *stream) mayGoUnseen() bool {
	s.mu.Lock()
	may := s.unseen
	s.mu.Unlock()
	return may == nil || may()
}

// shows passes interim responses on from now on, until the stream is cut.
func (s *stream) shows(i *interims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interims = i; s.over {
		i.sever()
	}
}

// holds reports whether a stop ends the stream at once, as no proxy.hold is for it or its
// hold is over, and whether that begins now.
func (s *stream) holds(now, hold time.Duration) (over, begins bool) {
	if !s.held {
		return true, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heldSince == 0 {
		s.heldSince = now
		return false, true
	}
	return now-s.heldSince >= hold, false
}

// waited is how a request that was cut has waited for the end of what stops it.
func (s *stream) waited(p *Proxy) patience {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heldSince == 0 {
		return patience{}
	}
	// The inline try was over by then.
	return patience{since: s.heldSince - p.config.Inline}
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
	if s.unfollow != nil {
		s.unfollow()
	}
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
	delete(s.open.fresh, s)
	delete(s.open.followed, s)
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
