package h1_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/proxy/h1"
)

const (
	headTime = 10 * time.Second
	idleTime = 2 * time.Minute
	get      = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
)

// served is a connection that is served, in a bubble of synctest.
type served struct {
	t      *testing.T
	client net.Conn
	in     *bufio.Reader
	server *h1.Server
	ended  chan struct{}
	log    bytes.Buffer
	// reads counts those that the server has begun, room is how much the latest one could take.
	reads, room atomic.Int64
	// reading counts those that are under way.
	reading atomic.Int64
	// deadlines counts those of reads that the server has set.
	deadlines atomic.Int64
}

// counted counts the reads of a connection, and their deadlines.
type counted struct {
	net.Conn
	reads, room, reading, deadlines *atomic.Int64
}

func (c counted) SetReadDeadline(t time.Time) error {
	c.deadlines.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c counted) Read(p []byte) (int, error) {
	c.reads.Add(1)
	c.room.Store(int64(len(p)))
	c.reading.Add(1)
	defer c.reading.Add(-1)
	return c.Conn.Read(p)
}

func serve(t *testing.T, h http.HandlerFunc) *served {
	t.Helper()
	s := &served{t: t, ended: make(chan struct{})}
	s.server = &h1.Server{Handler: h, HeadTimeout: headTime, IdleTimeout: idleTime, MaxHead: 64 << 10, ErrorLog: log.New(&s.log, "", 0)}
	s.connect()
	return s
}

func (s *served) connect() {
	client, server := net.Pipe()
	s.client, s.in = client, bufio.NewReader(client)
	s.t.Cleanup(func() { _ = client.Close() })
	go func() {
		s.server.Serve(counted{server, &s.reads, &s.room, &s.reading, &s.deadlines})
		close(s.ended)
	}()
}

func (s *served) say(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.client, text); err != nil {
		s.t.Fatal(err)
	}
}

// want reads an answer.
func (s *served) want(status int, body string) *http.Response {
	s.t.Helper()
	resp, err := http.ReadResponse(s.in, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status || string(got) != body {
		s.t.Errorf("%s %q, %v, want %d %q", resp.Status, got, err, status, body)
	}
	return resp
}

// wantEnd waits for the end of the connection, and wants nothing before it.
func (s *served) wantEnd() {
	s.t.Helper()
	if rest, err := io.ReadAll(s.in); err != nil || len(rest) > 0 {
		s.t.Errorf("the connection goes on: %q, %v", rest, err)
	}
	<-s.ended
}

func hello(w http.ResponseWriter, _ *http.Request) { text(w, "hello") }

func text(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Content-Length", "5")
	_, _ = io.WriteString(w, body)
}

// taker is the answer of a server that takes fields whole.
type taker interface{ TakeHeader(h http.Header) bool }

func TestFieldsAreTakenWholeUnlessThereAreSome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mine := http.Header{"X-Mine": {"1"}}
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			to, ok := w.(taker)
			if !ok || to.TakeHeader(nil) || !to.TakeHeader(mine) {
				t.Error("fields aren't taken")
			}
			w.Header().Set("X-More", "2")
			if to.TakeHeader(http.Header{"X-Other": {"3"}}) {
				t.Error("other fields are taken in the place of those that were given")
			}
			text(w, "hello")
		})
		s.say(get)
		resp, err := http.ReadResponse(s.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if h := resp.Header; h.Get("X-Mine") != "1" || h.Get("X-More") != "2" || h.Get("X-Other") != "" {
			t.Errorf("the client got %v", h)
		}
	})
}

func TestHowLongAConnectionIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		say       []string
		answers   int
		atLeast   time.Duration
		atMost    time.Duration
		betweenBy time.Duration
	}{
		"nothing is said":                      {nil, 0, headTime, headTime, 0},
		"the first head is cut":                {[]string{"GET / HT"}, 0, headTime, headTime, 0},
		"an idle connection":                   {[]string{get}, 1, idleTime, idleTime + time.Second, 0},
		"idle again, just after":               {[]string{get, get}, 2, idleTime, idleTime + time.Second, time.Second / 2},
		"idle again, after a minute":           {[]string{get, get}, 2, idleTime, idleTime + time.Second, time.Minute},
		"the second head is cut after a while": {[]string{get, "GET / HT"}, 1, headTime, headTime, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, hello)
				for i, one := range c.say {
					if i > 0 {
						<-time.After(c.betweenBy)
					}
					s.say(one)
					if i < c.answers {
						s.want(http.StatusOK, "hello")
					}
				}
				begun := time.Now()
				s.wantEnd()
				if took := time.Since(begun); took < c.atLeast || took > c.atMost {
					t.Errorf("ended after %v, want %v to %v", took, c.atLeast, c.atMost)
				}
			})
		})
	}
}

func TestWhoeverNobodyAsksAboutIsNotWatched(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"a read": get, "no content": "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n",
		"content that came with the head": "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s *served
				during, deadlines := int64(0), int64(0)
				var kept context.Context
				s = serve(t, func(w http.ResponseWriter, r *http.Request) {
					before := s.deadlines.Load()
					_, _ = io.ReadAll(r.Body)
					synctest.Wait()
					during, deadlines, kept = s.reads.Load(), s.deadlines.Load()-before, r.Context()
					hello(w, r)
				})
				s.say(request)
				s.want(http.StatusOK, "hello")
				synctest.Wait()
				if during != 1 || s.reads.Load() != 2 || deadlines != 0 {
					t.Errorf("%d reads and %d deadlines when the handler ran, %d reads after it, want 1, 0 and 2", during, deadlines, s.reads.Load())
				}
				// Who asks too late takes nothing of the next request.
				if <-kept.Done(); s.reads.Load() != 2 {
					t.Error("a context that is over is watched")
				}
				was := s.deadlines.Load()
				s.say(request)
				s.want(http.StatusOK, "hello")
				synctest.Wait()
				if s.deadlines.Load() != was {
					t.Error("the next request, with whatever came with it, needed deadlines")
				}
			})
		})
	}
}

// Who watched the client of one request takes nothing of the next one.
func TestAWatchEndsWithItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			r.Context().Done()
			synctest.Wait()
			hello(w, r)
		})
		for range 2 {
			s.say(get)
			s.want(http.StatusOK, "hello")
			synctest.Wait()
			if reading := s.reading.Load(); reading != 1 {
				t.Fatalf("%d read what comes after the answer, want 1", reading)
			}
		}
	})
}

// What a long head needed is not kept while it is answered, which may take long.
func TestALongHeadIsNotKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *served
		s = serve(t, func(w http.ResponseWriter, r *http.Request) {
			r.Context().Done()
			synctest.Wait()
			if room := s.room.Load(); room > 4<<10 {
				t.Errorf("%d bytes are kept for what comes", room)
			}
			hello(w, r)
		})
		s.say("GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 60<<10) + "\r\n\r\n")
		s.want(http.StatusOK, "hello")
	})
}

func TestAClientThatGoesIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		see     func(r *http.Request)
	}{
		"by who asks":              {get, func(r *http.Request) { <-r.Context().Done() }},
		"by who derives a context": {get, func(r *http.Request) { ctx, end := context.WithCancel(r.Context()); <-ctx.Done(); end() }},
		"by who wants to be called": {get, func(r *http.Request) {
			called := make(chan struct{})
			context.AfterFunc(r.Context(), func() { close(called) })
			<-called
		}},
		"by who asked before all content was read": {"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", func(r *http.Request) {
			gone := r.Context().Done()
			_, _ = io.ReadAll(r.Body)
			<-gone
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				leave, seen := make(chan struct{}), error(nil)
				s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
					if r.Context().Err() != nil {
						t.Error("done at once")
					}
					close(leave)
					c.see(r)
					seen = r.Context().Err()
				})
				s.say(c.request)
				<-leave
				_ = s.client.Close()
				<-s.ended
				if !errors.Is(seen, context.Canceled) {
					t.Errorf("the client's going was not seen: %v", seen)
				}
			})
		})
	}
}

// A deadline was for content: that it passes doesn't mean that the client has gone.
func TestADeadlineThatPassesIsNoGoing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s *served
		s = serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
			select {
			case <-r.Context().Done():
				t.Error("the client has gone")
			case <-time.After(time.Hour):
			}
			_ = s.client.Close()
			<-r.Context().Done() // It is still watched.
		})
		s.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
		<-s.ended
	})
}

func TestWhenContentIsAskedFor(t *testing.T) {
	t.Parallel()
	const asks = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
	t.Run("when it is read, once", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				<-time.After(time.Minute)
				if b, _ := io.ReadAll(r.Body); len(b) > 0 {
					text(w, string(b))
				}
			})
			s.say(asks)
			begun := time.Now()
			s.want(http.StatusContinue, "")
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("after %v", took)
			}
			s.say("world")
			s.want(http.StatusOK, "world")
			s.say(get)
			s.want(http.StatusOK, "")
		})
	})
	t.Run("not after an answer, with which the connection ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				hello(w, r)
				if _, err := io.ReadAll(r.Body); err == nil {
					t.Error("content that nobody asked for was read")
				}
			})
			s.say(asks)
			if resp := s.want(http.StatusOK, "hello"); !resp.Close {
				t.Error("the answer doesn't say that the connection ends")
			}
			s.wantEnd()
		})
	})
}

func TestContentThatNobodyRead(t *testing.T) {
	t.Parallel()
	post := "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: "
	t.Run("a little is read away, and the connection kept", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, hello)
			s.say(post + "5\r\n\r\nGET /")
			s.want(http.StatusOK, "hello")
			s.say(get)
			s.want(http.StatusOK, "hello")
		})
	})
	t.Run("none of it is read away where somebody else reads on", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			got := make(chan string, 1)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
					t.Error(err)
				}
				hello(w, r)
				_ = http.NewResponseController(w).Flush()
				b, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got <- string(b)
			})
			s.say(post + "5\r\n\r\nwo")
			if resp := s.want(http.StatusOK, "hello"); !resp.Close {
				t.Error("the answer doesn't say that the connection ends")
			}
			s.say("rld")
			if all := <-got; all != "world" {
				t.Errorf("%q was read", all)
			}
			s.wantEnd()
		})
	})
	t.Run("what doesn't come holds up the answer as long as a head might", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, hello)
			begun := time.Now()
			s.say(post + "5\r\n\r\nGET")
			if resp := s.want(http.StatusOK, "hello"); !resp.Close {
				t.Error("the answer doesn't say that the connection ends")
			}
			if took := time.Since(begun); took != headTime {
				t.Errorf("answered after %v, want %v", took, headTime)
			}
			s.wantEnd()
		})
	})
	t.Run("much isn't, and what still comes is no request", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { asked++; hello(w, r) })
			s.say(post + "300000\r\n\r\n")
			if resp := s.want(http.StatusOK, "hello"); !resp.Close {
				t.Error("the answer doesn't say that the connection ends")
			}
			s.say(get)
			s.wantEnd()
			if asked != 1 {
				t.Errorf("%d requests", asked)
			}
		})
	})
	t.Run("somebody waits for it: the answer doesn't", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			broken := make(chan error, 1)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				go func() {
					_, err := io.ReadAll(r.Body)
					broken <- err
				}()
				synctest.Wait()
				hello(w, r)
			})
			begun := time.Now()
			s.say(post + "5\r\n\r\n")
			s.want(http.StatusOK, "hello")
			if took := time.Since(begun); took != 0 {
				t.Errorf("answered after %v", took)
			}
			if err := <-broken; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("who read it got %v", err)
			}
			s.wantEnd()
		})
	})
}
