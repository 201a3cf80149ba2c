package upstream

import (
	"cmp"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"keep-proxy/internal/clock"
)

// lastWords is how long an early success waits for more of the request to go out. The upstream may
// still need it.
const lastWords = 5 * time.Second

// dispatch is one sending from byte one to its end.
type dispatch struct {
	sender  *Sender
	plan    *plan
	conn    *conn
	trusted bool
	content *content // nil for none, and for what is short
	short   []byte   // a body that is in memory, and written with the head; nil for none
	watch   watch
	// interim is shown the first 1xx responses; interims counts them.
	interim  func(int, http.Header)
	interims int
	handed   counters // at hand-over

	written  chan struct{} // closed when writeBeside has ended; nil if it was not needed
	writeErr error         // to be read after that
	whole    atomic.Bool   // the request was written whole
	got      atomic.Int64  // bytes of the answer's content that were read

	once sync.Once // the end

	mu         sync.Mutex
	ev         Evidence
	interimErr error // why interim responses ended the dispatch; HTTP/2 only
}

// counters are a connection's bytes at one moment.
type counters struct{ begun, written, raw int64 }

func (c *conn) count() counters {
	return counters{begun: c.plain.begun.Load(), written: c.plain.count(), raw: c.raw.written.Load()}
}

func newDispatch(s *Sender, p *plan, c *conn, started clock.Stamp) *dispatch {
	d := &dispatch{sender: s, plan: p, conn: c, handed: c.count()}
	d.ev = Evidence{Started: started, Link: c.link}
	d.watch = watch{clock: s.cfg.Clock, lookEvery: s.cfg.LookEvery, kill: c.kill}
	return d
}

// drop ends a dispatch before byte one.
func (d *dispatch) drop() {
	d.watch.stop()
	d.content.close()
}

// evidence returns what was seen so far.
func (d *dispatch) evidence() Evidence {
	d.mu.Lock()
	defer d.mu.Unlock()
	ev := d.ev
	if ev.Ended.BootID == "" {
		d.fill(&ev)
	}
	return ev
}

func (d *dispatch) fill(ev *Evidence) {
	ev.BytesWritten = max(0, d.conn.count().written-d.handed.written)
	ev.RequestComplete = d.whole.Load()
	ev.BodyBytes = d.got.Load()
}

// wrote notes that the request was written whole.
func (d *dispatch) wrote() {
	d.whole.Store(true)
	d.awaitHead()
	pointRequestWritten.Pass()
}

func (d *dispatch) awaitHead() {
	d.watch.awaitHead(cmp.Or(d.plan.response, d.sender.cfg.ResponseTimeout))
}

// abandon ends the dispatch if its answer was not drained.
func (d *dispatch) abandon() {
	d.watch.end(ErrorClosed)
	d.once.Do(func() { d.breakOff(nil) })
}

// read notes the head of the answer and returns the answer.
func (d *dispatch) read(resp *http.Response) *Answer {
	d.watch.gotHead()
	d.mu.Lock()
	d.ev.Head, d.ev.Status, d.ev.HeadAt = true, resp.StatusCode, d.sender.cfg.Clock.Now()
	d.mu.Unlock()
	pointHeadRead.Pass()
	a := &Answer{
		Status: resp.StatusCode, Proto: resp.Proto, Header: resp.Header, Trailer: resp.Trailer,
		ContentLength: resp.ContentLength, ex: d,
	}
	a.AtHand = d.conn.h2 == nil && 0 <= resp.ContentLength && resp.ContentLength <= int64(d.conn.br.Buffered()) && !d.writing()
	a.Body = &body{d: d, answer: a, resp: resp}
	if resp.Body == http.NoBody {
		_, _ = a.Body.Read(nil)
	}
	return a
}

// complete ends the dispatch after the whole answer was read.
func (d *dispatch) complete(b *body) {
	d.once.Do(func() {
		d.awaitWriter()
		killed := d.watch.stop() != ""
		reusable := b.leavesNothing()
		d.end(func(ev *Evidence) { ev.BodyComplete = true })
		if reusable && !killed && d.whole.Load() {
			d.sender.pool.put(d.conn, d.ev.Ended.Boot)
		} else {
			d.conn.close()
		}
	})
	pointAnswerComplete.Pass()
}

// awaitWriter waits for the rest of a request whose answer may be a success, while bytes go out.
// After any other answer it cuts the request off.
func (d *dispatch) awaitWriter() {
	if !d.writing() {
		return
	}
	patience := time.Duration(0)
	if d.ev.Status < 400 { // 303 is a success, and a rule may take other redirects for one.
		patience = lastWords
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	for out := d.conn.raw.written.Load(); ; {
		select {
		case <-d.writer():
			return
		case <-t.C:
		}
		now := d.conn.raw.written.Load()
		if patience == 0 || now == out {
			d.conn.kill()
			d.joinWriter()
			return
		}
		out = now
		t.Reset(patience)
	}
}

// writer is closed when the request is no longer being written. It is nil if writing ended before
// the answer was read.
func (d *dispatch) writer() <-chan struct{} {
	if d.conn.h2 != nil && d.content != nil {
		return d.content.done
	}
	return d.written
}

// writing reports whether the request may still be being written.
func (d *dispatch) writing() bool {
	written := d.writer()
	if written == nil {
		return false
	}
	select {
	case <-written:
		return false
	default:
		return true
	}
}

// joinWriter waits for writeBeside; the connection is closed.
func (d *dispatch) joinWriter() {
	if d.written != nil {
		d.content.close()
		<-d.written
	}
}

// fail ends the dispatch in disorder, and returns what is in the evidence.
func (d *dispatch) fail(err error) *Error {
	d.once.Do(func() { d.breakOff(err) })
	ev := d.evidence()
	return &Error{ev.ErrorClass, ev.Error}
}

// breakOff closes the connection first, so that what is counted afterwards can't
// grow any more.
func (d *dispatch) breakOff(err error) {
	cause := d.watch.stop()
	d.conn.kill()
	if d.conn.h2 != nil {
		d.conn.close()
	}
	d.joinWriter()
	d.conn.plain.settle()
	why := d.explain(cause, err)
	d.end(func(ev *Evidence) {
		ev.ErrorClass, ev.Error = why.Class, why.Text
		ev.NotSent = d.untouched() && !ev.Head
		ev.Refused = d.trusted && d.refused() && !ev.Head
	})
}

// explain classifies an error; what ended the dispatch by force comes first.
func (d *dispatch) explain(cause ErrorClass, err error) *Error {
	switch {
	case cause != "":
		return causeError(cause)
	case d.conn.h2 != nil:
		return d.explainH2(err)
	}
	return d.explainH1(err)
}

// untouched reports whether it is proven that no byte of the request went out; the
// connection is closed. Over HTTP/2, where other goroutines write, not even an
// attempt may have been made.
func (d *dispatch) untouched() bool {
	now := d.conn.count()
	if d.conn.h2 != nil {
		return now.begun == d.handed.begun
	}
	return now.written == d.handed.written && now.raw == d.handed.raw
}

// end makes the evidence final.
func (d *dispatch) end(finish func(*Evidence)) {
	d.content.close()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fill(&d.ev)
	finish(&d.ev)
	d.ev.Ended = clock.Take(d.sender.cfg.Clock)
}

// noAnswer is the answer of a dispatch that ended without a head.
func (d *dispatch) noAnswer(err error) *Answer {
	d.once.Do(func() { d.breakOff(err) })
	return &Answer{Body: noBody{}, ContentLength: -1, ex: d}
}
