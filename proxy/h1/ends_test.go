package h1_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPanicEndsItsConnection(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"said": "card xyzzy", "on purpose": http.ErrAbortHandler} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				over := false
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					context.AfterFunc(r.Context(), func() { over = true })
					w.WriteHeader(http.StatusOK)
					panic(value)
				})
				s.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab")
				s.wantEnd()
				if synctest.Wait(); !over {
					t.Error("its context goes on")
				}
				if said := s.log.String(); (name == "said") != strings.Contains(said, "string") || strings.Contains(said, "xyzzy") {
					t.Errorf("the log: %q", said)
				}
			})
		})
	}
}

// past is a deadline that would end everything.
var past = time.Unix(1, 0)

// What a handler left behind can't write into the next answer.
func TestNothingIsWrittenAfterTheHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var before http.ResponseWriter
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if before != nil {
				w.WriteHeader(http.StatusOK)
				if _, err := io.WriteString(before, "other"); err == nil {
					t.Error("written after the handler")
				}
				late := http.NewResponseController(before)
				if late.Flush() == nil || late.SetReadDeadline(past) == nil || late.SetWriteDeadline(past) == nil {
					t.Error("flushed, or given a deadline, after the handler")
				}
				before.WriteHeader(http.StatusEarlyHints)
				return
			}
			w.Header().Set("Trailer", "X")
			_, _ = io.WriteString(w, "hello")
			before = w
		})
		s.say(get)
		s.want(http.StatusOK, "hello")
		s.say(get)
		s.want(http.StatusOK, "")
	})
}

// What comes while the answer ends is in it, or is refused and not counted: else the next
// answer would be taken for the rest of one that ended early.
func TestWhatIsWrittenWhileTheAnswerEnds(t *testing.T) {
	t.Parallel()
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "9")
				w.WriteHeader(http.StatusOK)
				go func() {
					for err := error(nil); err == nil; {
						_, err = io.WriteString(w, "x")
					}
				}()
			})
			s.say(get)
			resp, err := http.ReadResponse(s.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(resp.Body); err == nil && string(b) != "xxxxxxxxx" || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}

func TestAHijackedConnectionIsSomebodyElses(t *testing.T) {
	t.Parallel()
	for name, watched := range map[string]bool{"watched before": true, "not watched before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { hijacks(t, watched) })
		})
	}
}

func hijacks(t *testing.T, watched bool) {
	t.Helper()
	var s *served
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if watched {
			r.Context().Done()
			synctest.Wait()
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		if left := rw.Reader.Buffered(); left != len("left") {
			t.Errorf("%d bytes are left", left)
		}
		if _, err := io.WriteString(w, "hello"); !errors.Is(err, http.ErrHijacked) {
			t.Errorf("writing: %v", err)
		}
		before := s.reads.Load()
		context.AfterFunc(r.Context(), func() {})
		if synctest.Wait(); s.reads.Load() != before {
			t.Error("a hijacked connection is read")
		}
		if err := s.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		_ = s.server.Close()
		_, _ = io.WriteString(c, "on")
		_ = c.Close()
	})
	s.say(get + "left")
	if on, err := io.ReadAll(s.client); err != nil || string(on) != "on" {
		t.Errorf("%q, %v", on, err)
	}
	<-s.ended
}

func TestShuttingDown(t *testing.T) {
	t.Parallel()
	t.Run("idle connections are closed", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, hello)
			s.say(get)
			s.want(http.StatusOK, "hello")
			synctest.Wait()
			begun := time.Now()
			if err := s.server.Shutdown(t.Context()); err != nil || time.Since(begun) != 0 {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
			s.wantEnd()
		})
	})
	t.Run("a request under way is answered, and its connection ends", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			begun, answer := make(chan struct{}), make(chan struct{})
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				close(begun)
				<-answer
				hello(w, r)
			})
			s.say(get)
			<-begun
			short, end := context.WithTimeout(t.Context(), time.Minute)
			defer end()
			if err := s.server.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it didn't wait: %v", err)
			}
			close(answer)
			if resp := s.want(http.StatusOK, "hello"); !resp.Close {
				t.Error("the answer doesn't say that the connection ends")
			}
			s.wantEnd()
			if err := s.server.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a new connection has five seconds, and none comes after that", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, hello)
			synctest.Wait()
			begun := time.Now()
			if err := s.server.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took < 5*time.Second || took > 6*time.Second {
				t.Errorf("after %v", took)
			}
			s.wantEnd()
			s.ended = make(chan struct{})
			s.connect()
			s.wantEnd()
		})
	})
	t.Run("closing ends everything", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			s.say(get)
			synctest.Wait()
			_ = s.server.Close()
			s.wantEnd()
		})
	})
}

// The answer to a request that is no URI for net/url, though the scanner let it through.
func TestATargetThatIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, hello)
		s.say("GET http://[::1%25z]:x/ HTTP/1.1\r\nHost: h\r\n\r\n")
		if resp := s.want(http.StatusBadRequest, "400 Bad Request"); !resp.Close {
			t.Error("the answer doesn't say that the connection ends")
		}
		s.wantEnd()
	})
}

// Whoever sends Upgrade names it in Connection (RFC 9110 §7.8), also where the connection ends.
func TestAnUpgradeThatIsOfferedAtTheEndIsNamed(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]string{"": "Upgrade", "Connection: close\r\n": "close, Upgrade"} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Upgrade", "websocket")
				w.WriteHeader(http.StatusUpgradeRequired)
			})
			s.say("GET / HTTP/1.1\r\nHost: h\r\n" + more + "\r\n")
			for {
				line, err := s.in.ReadString('\n')
				if err != nil || line == "\r\n" {
					t.Fatalf("there is no line %q: %v", want, err)
				}
				if line == "Connection: "+want+"\r\n" {
					return
				}
			}
		})
	}
}

// A client takes what comes next for the rest of the content that it was told of.
func TestAnAnswerThatLacksContentIsTheLastOfItsConnection(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"all of it": "", "some of it": "hel"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				served := 0
				s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					served++
					w.Header().Set("Content-Length", "5")
					w.WriteHeader(http.StatusOK)
					_, _ = io.WriteString(w, part)
				})
				s.say(get + get)
				resp, err := http.ReadResponse(s.in, nil)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(resp.Body)
				if string(got) != part || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%q, %v, want %q and no more", got, err, part)
				}
				if <-s.ended; served != 1 {
					t.Errorf("%d requests were served after the answer was cut, want none", served-1)
				}
			})
		})
	}
}
