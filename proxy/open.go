package proxy

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// followAfter is when the client of a stream is followed: most streams end before.
const followAfter = 50 * time.Millisecond

// longOver is a deadline that is over.
var longOver = time.Unix(1, 0)

// open is what is being streamed now. It is cut when its scope is stopped, and when its client has
// gone.
type open struct {
	// followAfter is as the constant of that name, but in tests.
	followAfter time.Duration

	mu      sync.Mutex
	streams map[*stream]struct{}
}

func newOpen() *open { return &open{followAfter: followAfter, streams: make(map[*stream]struct{})} }

// add registers a stream of the caller. The client's context ends when nobody waits for it any
// more; held says that proxy.hold is for it. It must be ended.
func (o *open) add(client context.Context, c caller, held bool) *stream {
	s := &stream{client: client, caller: c, open: o, held: held}
	s.Context, s.cancel = context.WithCancelCause(context.WithoutCancel(client))
	s.mu.Lock()
	s.following = time.AfterFunc(o.followAfter, s.follow)
	s.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.streams[s] = struct{}{}
	return s
}

// all are the open streams.
func (o *open) all() []*stream {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.streams))
}

// uncover cuts what may go unseen no more.
func (o *open) uncover() {
	for _, s := range o.all() {
		if !s.mayGoUnseen() {
			s.cut()
		}
	}
}

// count is how many streams are open.
func (o *open) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.streams)
}

// sweep cuts the streams whose clients have gone, and shows the others, those of one
// caller together.
func (o *open) sweep(look func(caller, streams)) {
	open := map[caller]streams{}
	for _, s := range o.all() {
		if s.client.Err() != nil {
			s.cut()
			continue
		}
		open[s.caller] = append(open[s.caller], s)
	}
	for c, s := range open {
		look(c, s)
	}
}

// streams are some that are cut together.
type streams []*stream

// stopped are the streams without proxy.hold, and those whose hold is over. Some have to wait from
// now on if begins is set.
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

// Why a stream was cut: its client has gone, or anything else.
var (
	errLeft    = fmt.Errorf("%w: the client has gone", context.Canceled)
	errStopped = fmt.Errorf("%w: it was stopped", context.Canceled)
)

// stream is something that is being streamed, and the context of the request that it answers. It
// has the client's values, and is done when the stream was cut or has ended.
type stream struct {
	//nolint:containedctx // It is one itself, and its client's.
	context.Context
	cancel context.CancelCauseFunc
	client context.Context //nolint:containedctx // Whether anybody waits is asked later.
	caller caller
	open   *open
	// following follows the client, once it is time for that.
	following *time.Timer

	mu sync.Mutex
	// answer is where the stream goes to, once it goes there.
	answer *answerWriter
	// asking is whose content is awaited, nil for nobody.
	asking *answerWriter
	// interims takes the interim responses to the request; nil for nobody.
	interims *interims
	// held says that a stop which may pass lets the request wait. As it is no answer yet, proxy.hold
	// is for it. That began at heldSince, 0 while nothing stops it.
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
	if s.Err() == nil {
		s.unfollow = context.AfterFunc(s.client, s.cut)
	}
}

// cut ends the stream. It may be called at any time, more than once. A client that
// doesn't read what it was sent keeps nothing open: no more is written to it. Nor does
// one that doesn't send what it announced: no more is read from it.
func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Err() != nil {
		return
	}
	why := errStopped
	if s.client.Err() != nil {
		why = errLeft
	}
	if s.answer != nil {
		s.answer.sever()
	}
	s.interims.sever()
	if s.asking != nil {
		// Where there is no such deadline proxy.timeouts.request has to do.
		_ = http.NewResponseController(s.asking.ResponseWriter).SetReadDeadline(longOver)
	}
	s.close(why)
}

// goUnseen says that nobody looks at what the stream carries from now on, as long as may allows. It
// reports whether may allows it now. A reload before this is seen here, and one after it sees the
// stream.
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
	if s.interims = i; s.Err() != nil {
		i.sever()
	}
}

// holds reports whether a stop ends the stream at once: no proxy.hold is for it, or its hold is
// over. It also reports whether the hold begins now.
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
	if s.Err() != nil {
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
func (s *stream) wasStopped() bool { return context.Cause(s) == errStopped } //nolint:errorlint // It is this value or another.

// close is the end of the stream, with s.mu held.
func (s *stream) close(why error) {
	s.following.Stop()
	if s.unfollow != nil {
		s.unfollow()
	}
	s.cancel(why)
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
	s.close(nil)
}

// Value implements context.Context.
func (s *stream) Value(key any) any {
	if key == (upstream.InterimsKey{}) && s.interims != nil {
		return s.interims
	}
	return s.Context.Value(key)
}

const (
	// lookEvery is how often what is open is checked against the gate although nothing told of a
	// change. If a stop's cause ever fails to tell, the stop comes this late.
	lookEvery = time.Second
	// Looking because of changes takes at most a fifth of a processor's time. Where very much is open
	// it comes at most maxPause late.
	lookPause = 4
	leastLook = time.Millisecond
	maxPause  = 50 * time.Millisecond
)

// stops is what makes the proxy look whether something that is open has to be cut.
type stops struct {
	// changed holds one if something has changed since the latest look. All that standing asks tells
	// it: the ledger's gate, what is unrecorded, and inline tries.
	changed chan struct{}

	mu sync.Mutex
	// ending are the runs whose end is being recorded, before their streams are cut.
	ending map[string]*refusing
}

// refusing is a run that is over once the ledger says so, and its open streams.
type refusing struct {
	cause   string
	streams streams
	cut     chan struct{}
}

func newStops() *stops {
	return &stops{changed: make(chan struct{}, 1), ending: make(map[string]*refusing)}
}

// tell says that something has changed.
func (s *stops) tell() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// watch cuts open streams whose scope was stopped, until Close; then it calls unwatch.
func (p *Proxy) watch(unwatch func()) {
	defer unwatch()
	again := time.NewTicker(p.config.lookEvery)
	defer again.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-again.C:
			if p.open.count() > 0 {
				p.look()
			}
		case <-p.stops.changed:
			p.lookAtChange()
		}
	}
}

// lookAtChange looks, and then waits so long that looking doesn't take all the time.
func (p *Proxy) lookAtChange() {
	began := p.config.Clock.Mono()
	p.look()
	took := p.config.Clock.Mono() - began
	if took < leastLook {
		return
	}
	select {
	case <-p.ctx.Done():
	case <-time.After(min(lookPause*took, maxPause)):
	}
}

// cutStopped looks, and returns once what it found is cut.
func (p *Proxy) cutStopped() {
	for _, r := range p.look() {
		<-r.cut
	}
}

// look cuts what is being streamed to stopped scopes, but not while an inline try may still lift
// the stop. A run cut because of a stop is over, as refused, unless its requests would be held.
// Runs that are over are returned, and cut once the ledger has been told.
func (p *Proxy) look() []*refusing {
	p.stops.mu.Lock()
	defer p.stops.mu.Unlock()
	over := map[string]*refusing{}
	p.open.sweep(func(c caller, all streams) {
		a := p.standing(c)
		if a.Hold && !p.inline.trying(a.Blocker.Key) {
			// The try may have ended since the gate was asked.
			a = p.standing(c)
		}
		switch {
		case a.Open:
			all.free()
		case a.Hold && p.inline.trying(a.Blocker.Key):
		case c.managed() && a.Problem == string(problemBlocked) && p.config.Hold <= 0:
			if over[c.run] == nil {
				over[c.run] = &refusing{cause: a.Blocker.ID, cut: make(chan struct{})}
			}
			over[c.run].streams = append(over[c.run].streams, all...)
		case a.Problem == string(problemBlocked) && p.config.Hold > 0:
			stopped, begins := all.stopped(p.config.Clock.Mono(), p.config.Hold)
			if stopped.cut(); begins {
				time.AfterFunc(p.config.Hold, p.stops.tell)
			}
		default:
			all.cut()
		}
	})
	found := make([]*refusing, 0, len(over))
	for run, r := range over {
		if going := p.stops.ending[run]; going != nil {
			going.streams = r.streams // All that are open, those that came since among them.
			r = going
		} else {
			p.stops.ending[run] = r
			// All together, so that the ledger makes one commit of them.
			go p.cutRun(run, r)
		}
		found = append(found, r)
	}
	return found
}

// cutRun ends a run because of a stop, and then cuts its streams. Where the ledger can't say that
// it is over, it still is. The stop may pass, and the run must not go on without what it was
// reading.
func (p *Proxy) cutRun(run string, r *refusing) {
	over := ledger.Over{Cause: r.cause, Why: "its open streams were cut because of a stop"}
	if _, err := p.ledger.RefuseRun(p.ctx, run, over.Why, over.Cause); err != nil && p.ctx.Err() == nil {
		p.config.Log.Error().Err(err).Str("run", run).Msg("run not ended; trying on")
		p.endLater(run, over)
	}
	p.stops.mu.Lock()
	delete(p.stops.ending, run)
	all := r.streams
	p.stops.mu.Unlock()
	all.cut()
	close(r.cut)
}
