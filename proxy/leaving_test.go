package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A caller that left before its answer was written has not had it, and asking again is
// given it: that nobody follows a caller while its mutation is under way changes nothing.
func TestAnAnswerToACallerThatLeftIsNotDelivered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ method, path, body string }{
		"with content": {http.MethodPost, "/pay", `{"to":"x"}`}, "without": {http.MethodGet, "/trigger/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			var once sync.Once
			releaseAll := sync.OnceFunc(func() { close(release) })
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				once.Do(func() { close(arrived) })
				<-release
				created(rw, r)
			})
			t.Cleanup(releaseAll)
			w.use(getRules)
			client := w.newClient(w.open("a").user(), false)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				req, err := http.NewRequestWithContext(ctx, c.method, w.upstream.URL+c.path, strings.NewReader(c.body))
				if err == nil {
					_, err = client.Do(req)
				}
				left <- err
			}()
			<-arrived
			leave()
			if err := <-left; err == nil {
				t.Fatal("the caller got an answer")
			}
			w.waitForGoneCaller()
			releaseAll()
			w.waitForNobody()
			wantAnswer(t, send(client, c.method, w.upstream.URL+c.path, c.body), 201, `{"id":1}`, true)
			w.wantSends(c.path, 1)
		})
	}
}

// askedAbout is a client's context that notes when somebody wants to be told of its end.
type askedAbout struct {
	context.Context
	asked bool
}

func (a *askedAbout) Done() <-chan struct{} {
	a.asked = true
	return a.Context.Done()
}

// seenAsked is a RoundTripper that notes whether the client was asked about by then.
type seenAsked struct {
	http.RoundTripper
	client *askedAbout
	by     *bool
}

func (s seenAsked) RoundTrip(r *http.Request) (*http.Response, error) {
	*s.by = s.client.asked
	return s.RoundTripper.RoundTrip(r)
}

// What is passed on and changes something ends with its client, who is therefore followed
// from the start; that of a read is after a while.
func TestWhoseClientIsFollowedFromTheStart(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]bool{http.MethodGet: false, http.MethodPost: true} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			client, by := &askedAbout{Context: t.Context()}, false
			w := newWorld(t, created, func(c *Config) {
				c.Unmatched, c.Reads = PolicyAllow, seenAsked{c.Reads, client, &by}
			})
			// Whoever is followed after a while is so by somebody who isn't asked to here.
			w.proxy.open.followAfter = time.Hour
			content := ""
			if want {
				content = "content"
			}
			r := httptest.NewRequestWithContext(client, method, w.upstream.URL+"/telemetry", strings.NewReader(content))
			answer := httptest.NewRecorder()
			w.proxy.serve(answer, r, caller{unmanaged: true, workflow: "w", item: "i"}, &tunnel{})
			if answer.Code != http.StatusCreated {
				t.Fatalf("answered %d %s", answer.Code, answer.Body)
			}
			if by != want {
				t.Errorf("followed when it is sent: %t, want %t", by, want)
			}
		})
	}
}

// seen is a client that can be looked at, unless it is blind, and has gone by the first look.
type seen struct {
	askedAbout
	blind, over bool
}

func (s *seen) CanLook() bool { return !s.blind }
func (s *seen) Look()         { s.over = s.over || !s.blind }

func (s *seen) Err() error {
	if s.over {
		return context.Canceled
	}
	return nil
}

// Of a mutation's caller it is looked, before the last of its answer is written, whether it
// is there; one that can't be looked at is followed.
func TestWhoIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ blind, mutation, whole, followed bool }{
		"a mutation":                           {false, true, false, false},
		"a mutation, where nobody can look":    {true, true, true, true},
		"whatever else":                        {false, false, true, false},
		"whatever else, where nobody can look": {true, false, true, false},
	} {
		client := &seen{askedAbout: askedAbout{Context: t.Context()}, blind: c.blind}
		answer := &answerWriter{client: client, ResponseWriter: httptest.NewRecorder()}
		if x := (&exchange{client: client, answer: answer}); c.mutation {
			x.follow()
		}
		answer.Header().Set("Content-Length", "2")
		answer.WriteHeader(http.StatusOK)
		if _, err := answer.Write([]byte("ok")); err != nil {
			t.Fatal(err)
		}
		if answer.finish() != c.whole || client.asked != c.followed {
			t.Errorf("%s: whole is %t, followed %t; want %t, %t", name, answer.whole.Load(), client.asked, c.whole, c.followed)
		}
	}
}
