package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

type valueKey struct{}

func TestAStreamIsAContext(t *testing.T) {
	t.Parallel()
	o := newOpen()
	client, gone := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
	defer gone()
	s := o.add(client, caller{workflow: "w"}, false)
	child, cancel := context.WithCancel(s)
	defer cancel()
	ran, never := make(chan struct{}), make(chan struct{})
	stopRan := context.AfterFunc(s, func() { close(ran) })
	stopNever := context.AfterFunc(s, func() { close(never) })
	if !stopNever() || stopNever() {
		t.Error("a function can be stopped once")
	}
	if s.Value(valueKey{}) != "value" || s.Err() != nil || child.Err() != nil {
		t.Errorf("value %v, errors %v and %v", s.Value(valueKey{}), s.Err(), child.Err())
	}
	cutting := func(workflow string) func(caller, streams) {
		return func(c caller, all streams) {
			if c.workflow == workflow {
				all.cut()
			}
		}
	}
	o.sweep(cutting("another"))
	if s.Err() != nil {
		t.Fatal("another's stop cut it")
	}
	o.sweep(cutting("w"))
	<-s.Done()
	<-child.Done()
	<-ran
	if !errors.Is(s.Err(), context.Canceled) || !errors.Is(context.Cause(s), context.Canceled) || stopRan() {
		t.Errorf("after the cut: %v, cause %v", s.Err(), context.Cause(s))
	}
	late := make(chan struct{})
	if stop := context.AfterFunc(s, func() { close(late) }); stop() {
		t.Error("a function given after the cut could be stopped")
	}
	<-late
	select {
	case <-never:
		t.Error("a stopped function ran")
	default:
	}
	s.end()
	if o.count() != 0 {
		t.Error("an ended stream is still listed")
	}
}

func TestAStreamWhoseClientHasGoneIsCut(t *testing.T) {
	t.Parallel()
	o := newOpen()
	client, gone := context.WithCancel(t.Context())
	s := o.add(client, caller{}, false)
	nobody := func(caller, streams) {}
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
	s := newOpen().add(t.Context(), caller{}, false)
	done := s.Done()
	s.end()
	<-done
	s.cut()
	s.end()
}

// A client that doesn't read keeps neither its handler nor the upstream's connection.
func TestAClientThatDoesNotReadIsSevered(t *testing.T) {
	t.Parallel()
	answers, ended := make(chan *answerWriter, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		answer := &answerWriter{ResponseWriter: w}
		answer.WriteHeader(http.StatusOK)
		answers <- answer
		for block := make([]byte, 1<<20); ; {
			if _, err := answer.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	(<-answers).sever()
	select {
	case <-ended:
	case <-time.After(waitLimit):
		t.Error("the handler still waits for a client that doesn't read")
		_ = c.Close()
	}
}

// What is done with a stream that is over by then leaves nothing behind.
func TestAStreamThatIsOverIsDone(t *testing.T) {
	t.Parallel()
	s := newOpen().add(t.Context(), caller{}, false)
	s.end()
	select {
	case <-s.Done():
	default:
		t.Error("who asks after its end waits for it")
	}
	if s.follow(); s.unfollow != nil {
		t.Error("its client is followed for ever")
	}
	i := &interims{}
	if s.shows(i); !i.severed {
		t.Error("interim responses are passed on after it")
	}
}

// What is being written when a stream is cut is severed, as its client may not read.
func TestACutSeversTheAnswer(t *testing.T) {
	t.Parallel()
	s, answer := newOpen().add(t.Context(), caller{}, false), &answerWriter{ResponseWriter: httptest.NewRecorder()}
	body := s.content(answer, http.NoBody)
	if answer.severed.Load() {
		t.Error("severed before it is cut")
	}
	s.cut()
	if n, err := body.Read(make([]byte, 1)); !answer.severed.Load() || !errors.Is(err, context.Canceled) {
		t.Errorf("it is severed: %t; %d bytes more, %v", answer.severed.Load(), n, err)
	}
}
