package h1_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/proxy/h1"
)

// Whoever reads before this package lets no such thing through. All the same content that isn't
// framed as it must be is never whole, and nothing behind it is a request.
func TestContentThatIsMalformedIsNeverWhole(t *testing.T) {
	t.Parallel()
	const behind = "0\r\n\r\nGET /behind HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, content := range map[string]string{
		"a chunk that is longer than it says":  "3\r\nabcX\r\n" + behind,
		"a chunk with more behind it":          "3\r\nabcdef\r\n" + behind,
		"a size of sixteen digits":             "0000000000000003\r\nabc\r\n" + behind,
		"a size that isn't one":                "g\r\nabc\r\n" + behind,
		"a size below nothing":                 "-3\r\nabc\r\n" + behind,
		"a size behind a space":                " 3\r\nabc\r\n" + behind,
		"no size":                              "\r\nabc\r\n" + behind,
		"no size but an extension":             ";x=1\r\nabc\r\n" + behind,
		"nothing in the place of a size":       "\r\n\r\nGET /behind HTTP/1.1\r\nHost: h\r\n\r\n",
		"a trailer that is no field":           "0\r\nno field\r\n\r\n" + behind,
		"a trailer without a name":             "0\r\n: x\r\n\r\n" + behind,
		"a trailer section over the limit":     "0\r\n" + strings.Repeat("A: "+strings.Repeat("x", 1000)+"\r\n", 100) + "\r\n" + behind,
		"a trailer line over the limit":        "0\r\nA: " + strings.Repeat("x", 200<<10) + "\r\n\r\n" + behind,
		"a size line that doesn't end in time": "3;" + strings.Repeat("x", 200<<10) + "\r\nabc\r\n" + behind,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				paths := make(chan string, 9)
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					paths <- r.URL.Path
					if at, ok := r.Body.(interface{ AtHand() bool }); !ok || at.AtHand() {
						t.Error("chunks are at hand before they were read")
					}
					_, first := io.ReadAll(r.Body)
					n, again := r.Body.Read(make([]byte, 9))
					if first == nil || n > 0 || !errors.Is(again, first) {
						t.Errorf("it ended with %v, and then with %d bytes and %v", first, n, again)
					}
					_ = r.Body.Close()
					if _, err := r.Body.Read(make([]byte, 9)); !errors.Is(err, http.ErrBodyReadAfterClose) {
						t.Errorf("after it was closed: %v", err)
					}
					w.WriteHeader(http.StatusBadRequest)
				})
				go func() {
					_, _ = io.WriteString(s.client, "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"+content)
				}()
				s.want(http.StatusBadRequest, "")
				s.wantEnd()
				if len(paths) != 1 {
					t.Errorf("%d requests were served", len(paths))
				}
			})
		})
	}
}

// A head that isn't one is answered with 400, and ends its connection.
func TestAHeadThatIsMalformedIsNoRequest(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"a length below nothing":        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n",
		"a length that isn't one":       "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n",
		"a length beyond all":           "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n",
		"a version beyond the digits":   "GET / HTTP/1.:\r\nHost: h\r\n",
		"a version below the digits":    "GET / HTTP/1./\r\nHost: h\r\n",
		"another version":               "GET / HTTP/2.0\r\nHost: h\r\n",
		"no target":                     "GET HTTP/1.1\r\nHost: h\r\n",
		"a target that is empty":        "GET  HTTP/1.1\r\nHost: h\r\n",
		"no method":                     " / HTTP/1.1\r\nHost: h\r\n",
		"a field without a name":        "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n",
		"a field without a colon":       "GET / HTTP/1.1\r\nHost: h\r\nno field\r\n",
		"an empty line inside the head": "GET / HTTP/1.1\r\nHost: h\r\n\nA: b\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served") })
				go func() { _, _ = io.WriteString(s.client, head+"\r\n"+get) }()
				resp, err := http.ReadResponse(s.in, nil)
				if err != nil || resp.StatusCode != http.StatusBadRequest || !resp.Close {
					t.Fatalf("%+v, %v", resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				s.wantEnd()
			})
		})
	}
}

// A head without an end is not read for ever.
func TestAHeadOverTheLimitEndsItsConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was served") })
		line, taken := "A: "+strings.Repeat("x", 1000)+"\r\n", 0
		_, err := io.WriteString(s.client, "GET / HTTP/1.1\r\n")
		for ; err == nil && taken < 1<<20; taken += len(line) {
			_, err = io.WriteString(s.client, line)
		}
		if err == nil {
			t.Errorf("%d bytes of a head were taken", taken)
		}
		s.wantEnd()
	})
}

// What a client announced and nobody read is read away up to a bound, and never awaited: the
// answer comes, and the connection ends.
func TestMuchThatNobodyReadEndsItsConnection(t *testing.T) {
	t.Parallel()
	const most = 600 << 10 // What may be read away before the answer, and what is buffered.
	for name, head := range map[string]string{
		"of a length": fmt.Sprintf("Content-Length: %d\r\n\r\n", 1<<40),
		"in chunks":   "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, hello)
				sent := make(chan int, 1)
				go func() {
					_, err := io.WriteString(s.client, "POST / HTTP/1.1\r\nHost: h\r\n"+head)
					total := 0
					for err == nil && total <= 64<<20 {
						var n int
						n, err = io.WriteString(s.client, "400\r\n"+strings.Repeat("x", 1<<10)+"\r\n")
						total += n
					}
					sent <- total
				}()
				if resp := s.want(http.StatusOK, "hello"); !resp.Close {
					t.Error("the connection is said to be kept")
				}
				s.wantEnd()
				if n := <-sent; n > most+1<<20 { // And what lingers.
					t.Errorf("%d bytes were taken", n)
				}
			})
		})
	}
}

// Content that is announced, and is more than would be read away, holds up nothing.
func TestWhatIsTooMuchToReadAwayIsNotAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan io.Reader, 1)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			bodies <- r.Body
			hello(w, r)
		})
		began := time.Now()
		s.say(fmt.Sprintf("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", 1<<40))
		s.want(http.StatusOK, "hello")
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the answer came after %v", waited)
		}
		s.wantEnd()
		// Whoever still has it reads nothing of what comes then.
		if n, err := (<-bodies).Read(make([]byte, 9)); n > 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// HTTP/1.0 has no interim responses, whatever its client says (RFC 9110 §10.1.1).
func TestAnOldClientIsNotAskedForItsContent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if content, err := io.ReadAll(r.Body); string(content) != "ok" || err != nil {
				t.Errorf("%q, %v", content, err)
			}
			w.WriteHeader(http.StatusNoContent)
		})
		go func() {
			_, _ = io.WriteString(s.client, "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok")
		}()
		s.want(http.StatusNoContent, "")
		s.wantEnd()
	})
}

// Who was shut down serves nobody new.
func TestAConnectionThatComesAfterTheEndIsClosed(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*h1.Server) error{
		"shut down": func(s *h1.Server) error { return s.Shutdown(t.Context()) },
		"closed":    (*h1.Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &h1.Server{Handler: http.HandlerFunc(hello), HeadTimeout: headTime, IdleTimeout: idleTime, MaxHead: 64 << 10}
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			client, server := net.Pipe()
			s.Serve(server)
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%v", err)
			}
		})
	}
}
