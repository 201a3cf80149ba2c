package proxy

import (
	"strings"
	"time"

	"keep-proxy/ledger"
)

// Line is what is told of one request when its answer has ended: the log's fields.
type Line struct {
	At                        time.Time
	Method, Host, Path        string
	Status                    int
	Bytes                     int64
	Duration                  time.Duration
	Delivered                 bool
	Effect, Problem           string
	Workflow, Item, Run       string
	Connector, Operation      string
	Mutation, State, Decision string
	// Upgrade is the protocol that the connection changed to. Received are the bytes that the client
	// sent in it, or in a blind tunnel. Ended is who ended it first: client, upstream, stop or
	// shutdown.
	Upgrade, Ended string
	Received       int64
	// Client and Detail are set for what was refused or ended without a readable request. They are
	// where it came from, and what is wrong with it.
	Client, Detail string
	// Traceparent and Tracestate are the request's own, as they came (W3C Trace Context).
	// They are set for an observer alone.
	Traceparent, Tracestate string
	// Sent is the sending that the request led to; nil for none. For an observer alone.
	Sent *Sent
}

// Sent is one sending of a mutation.
type Sent struct {
	Started, Ended time.Time
	Status         int
	// Verdict is what it proved, Error the class of what broke it; empty for nothing.
	Verdict, Error string
}

// Observer is told of requests while it is active. Its methods are called on the way of
// each request, and must not wait.
type Observer interface {
	Active() bool
	Tell(l Line)
}

// follow tells who follows requests of what has a line without being one.
func (p *Proxy) follow(l Line, t *tunnel) {
	if p.config.Observer == nil || !p.config.Observer.Active() {
		return
	}
	l.At, l.Detail = p.config.Clock.Now(), legible(l.Detail)
	if t != nil {
		l.Host, l.Workflow, l.Item, l.Run = legible(t.target), t.caller.workflow, t.caller.item, t.caller.run
	}
	p.config.Observer.Tell(l)
}

// sent is the sending that this request led to, if there was one.
func (x *exchange) sent() *Sent {
	if x.mutation == nil || x.decision != ledger.DecideDispatch {
		return nil
	}
	d := x.mutation.Current()
	if d == nil || d.Started.Wall.IsZero() || d.Ended.Wall.IsZero() {
		return nil
	}
	return &Sent{Started: d.Started.Wall, Ended: d.Ended.Wall, Status: d.Status, Verdict: string(d.Verdict), Error: d.ErrorClass}
}

// line is what the log and an observer are told. What the client names may be bytes that are no
// text, which neither JSON nor a span takes. One such request would end an observer that follows
// all.
func (x *exchange) line(method, host, path string, w *answerWriter, delivered bool, now time.Time) Line {
	l := Line{
		At: now, Method: legible(method), Host: legible(host), Path: legible(x.path(path)), Status: w.status, Bytes: w.bytes,
		Duration: now.Sub(x.started), Delivered: delivered, Effect: x.effect, Problem: string(x.problem),
		Workflow: x.caller.workflow, Item: x.caller.item, Run: x.caller.run, Connector: x.connector, Operation: x.operation,
		Received: x.received,
	}
	if s := x.switched; s != nil {
		l.Upgrade, l.Ended, l.Received = s.protocol, s.ended, s.received.Load()
	}
	if m := x.mutation; m != nil {
		l.Mutation, l.State, l.Decision = m.ID, string(m.State), string(x.decision)
	}
	return l
}

// legible is s with the mark for what can't be read in the place of bytes that are no UTF-8.
func legible(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// Metrics counts what the proxy does.
type Metrics interface {
	// Request counts one request: its effect, the refusal's name if it was refused, and the answer's
	// status (0 for none).
	Request(effect, problem string, status int, took time.Duration)
	// Mutation counts one claim by its decision and the state it left.
	Mutation(decision, state string)
	// Unrecorded sets the number of outcomes that are still to be recorded.
	Unrecorded(delta int)
	// Upgraded counts the connections that changed protocols, by how many there are more now. At the
	// end of one it gets the bytes from its client and its upstream.
	Upgraded(delta int, fromClient, fromUpstream int64)
}

type noMetrics struct{}

// Request implements Metrics.
func (noMetrics) Request(string, string, int, time.Duration) {}

// Mutation implements Metrics.
func (noMetrics) Mutation(string, string) {}

// Unrecorded implements Metrics.
func (noMetrics) Unrecorded(int) {}

// Upgraded implements Metrics.
func (noMetrics) Upgraded(int, int64, int64) {}
