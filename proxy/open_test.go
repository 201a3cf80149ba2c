package proxy

import (
	"context"
	"errors"
	"testing"
)

type valueKey struct{}

func TestAStreamIsAContext(t *testing.T) {
	t.Parallel()
	o := newOpen()
	client, gone := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
	defer gone()
	s := o.add(client, caller{workflow: "w"})
	child, cancel := context.WithCancel(s)
	defer cancel()
	ran, never := make(chan struct{}), make(chan struct{})
	stopRan := context.AfterFunc(s, func() { close(ran) })
	stopNever := s.AfterFunc(func() { close(never) })
	if !stopNever() || stopNever() {
		t.Error("a function can be stopped once")
	}
	if s.Value(valueKey{}) != "value" || s.Err() != nil || child.Err() != nil {
		t.Errorf("value %v, errors %v and %v", s.Value(valueKey{}), s.Err(), child.Err())
	}
	o.sweep(func(c caller) bool { return c.workflow == "another" })
	if s.Err() != nil {
		t.Fatal("another's stop cut it")
	}
	o.sweep(func(c caller) bool { return c.workflow == "w" })
	<-s.Done()
	<-child.Done()
	<-ran
	if !errors.Is(s.Err(), context.Canceled) || !errors.Is(context.Cause(s), context.Canceled) || stopRan() {
		t.Errorf("after the cut: %v, cause %v", s.Err(), context.Cause(s))
	}
	late := make(chan struct{})
	if stop := s.AfterFunc(func() { close(late) }); stop() {
		t.Error("a function given after the cut could be stopped")
	}
	<-late
	select {
	case <-never:
		t.Error("a stopped function ran")
	default:
	}
	s.end()
	if len(o.streams) != 0 {
		t.Error("an ended stream is still listed")
	}
}

func TestAStreamWhoseClientHasGoneIsCut(t *testing.T) {
	t.Parallel()
	o := newOpen()
	client, gone := context.WithCancel(t.Context())
	s := o.add(client, caller{})
	nobody := func(caller) bool { return false }
	o.sweep(nobody)
	if s.Err() != nil {
		t.Fatal("cut while its client waits")
	}
	gone()
	o.sweep(nobody)
	if s.Err() == nil {
		t.Error("not cut")
	}
}

func TestAStreamThatEndsReleasesWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newOpen().add(t.Context(), caller{})
	done := s.Done()
	s.end()
	<-done
	s.cut()
	s.end()
}
