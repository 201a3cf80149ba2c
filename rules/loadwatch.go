package rules

import (
	"net/http"
	"time"

	"go.yaml.in/yaml/v4"
)

// Bounds and default of the time between two looks.
const (
	defaultWatchEvery = 30 * time.Second
	minWatchEvery     = time.Second
	maxWatch          = 30 * 24 * time.Hour
)

// watch reads how a 202 is followed.
func (d *decoder) watch(n *yaml.Node, key string, op *Operation) {
	if n == nil {
		return
	}
	m := d.object(n, key, levelWatch)
	if n.Kind != yaml.MappingNode {
		return
	}
	w := &Watch{Every: defaultWatchEvery, Class: ClassPrecondition, ask: &Probe{op: op, method: http.MethodGet}}
	if v, ok := d.need(n, m, key, "get"); ok {
		w.ask.path = d.pathText(v, join(key, "get"), inAnswer)
	}
	if v := m["query"]; v != nil {
		w.ask.query = d.mapOf(v, join(key, "query"), inAnswer)
	}
	if v := m["header"]; v != nil {
		w.ask.header = d.headerMap(v, join(key, "header"), inAnswer)
	}
	if v := m["expect"]; v != nil {
		w.ask.expect = d.condition(v, join(key, "expect"), inAnswer)
		d.answered(w.ask.expect, "response")
	}
	if v, ok := d.need(n, m, key, "until"); ok {
		w.until = d.condition(v, join(key, "until"), inAnswer)
		d.answered(w.until, "response")
	}
	if v := m["failed_when"]; v != nil {
		w.failed = d.condition(v, join(key, "failed_when"), inAnswer)
		d.answered(w.failed, "response")
	}
	if v := m["class"]; v != nil {
		w.Class = Class(d.word(v, join(key, "class"), string(ClassTransient), string(ClassPermission), string(ClassPrecondition), string(ClassLogic)))
	}
	d.watchTimes(n, m, key, w)
	if w.ask.path != nil && w.until != nil {
		d.endedByNothing(n, key, w)
		op.Watch = w
		// What may still be under way for so long can't be believed absent before.
		op.Settle = max(op.Settle, w.Max)
	}
}

// watchTimes reads how often and how long is looked.
func (d *decoder) watchTimes(n *yaml.Node, m map[string]*yaml.Node, key string, w *Watch) {
	if v := m["every"]; v != nil {
		if w.Every = d.duration(v, join(key, "every")); w.Every < minWatchEvery {
			d.fail("value", join(key, "every"), v, "is less than a second", "write at least 1s")
		}
	}
	if v, ok := d.need(n, m, key, "max"); ok {
		if w.Max = d.duration(v, join(key, "max")); w.Max > maxWatch {
			d.fail("value", join(key, "max"), v, "is longer than a month", "write at most 720h")
		}
	}
	for _, e := range w.exprs() {
		if e != nil && e.readsSecret(w.ask.op.secret) {
			at := d.standing(e, n, key)
			d.fail("watch-secret", at.key, at.node, quoted(e.source)+" reads a secret place, which is not stored", "look by something that is not secret")
		}
	}
}
