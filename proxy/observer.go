package proxy

import (
	"time"
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
}

// Observer is told of requests while it is active. Its methods are called on the way of
// each request, and must not wait.
type Observer interface {
	Active() bool
	Tell(l Line)
}

// line is what the log and an observer are told.
func (x *exchange) line(method, host, path string, w *answerWriter, delivered bool, now time.Time) Line {
	l := Line{
		At: now, Method: method, Host: host, Path: x.path(path), Status: w.status, Bytes: w.bytes,
		Duration: now.Sub(x.started), Delivered: delivered, Effect: x.effect, Problem: string(x.problem),
		Workflow: x.caller.workflow, Item: x.caller.item, Run: x.caller.run, Connector: x.connector, Operation: x.operation,
	}
	if m := x.mutation; m != nil {
		l.Mutation, l.State, l.Decision = m.ID, string(m.State), string(x.decision)
	}
	return l
}
