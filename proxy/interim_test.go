package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// hinting is an upstream that sends so many 103s first, with fields that must not pass.
func hinting(n int) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		for i := range n {
			rw.Header().Set("Link", fmt.Sprintf("</%d>", i))
			rw.Header().Set("Alt-Svc", `h3=":443"`)
			rw.Header().Set("Keep-State", "applied")
			rw.WriteHeader(http.StatusEarlyHints)
		}
		rw.Header().Del("Link")
		created(rw, r)
	}
}

func TestInterimResponsesPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hinting(10))
	r := w.open("a")
	for _, h2 := range []bool{false, true} {
		c := w.newClient(url.UserPassword("run", r.token), h2)
		for _, tc := range []struct {
			method, path, body string
			want               int
		}{
			{http.MethodGet, "/read", "", 10},
			{http.MethodPost, "/telemetry", "x", 10},
			// A mutation's are bounded.
			{http.MethodPost, "/pay", fmt.Sprintf(`{"to":"%t"}`, h2), 8},
		} {
			var seen []string
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				seen = append(seen, fmt.Sprint(code, h["Link"], h["Alt-Svc"], h["Keep-State"]))
				return nil
			}}
			req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), tc.method, w.upstream.URL+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusCreated || len(seen) != tc.want || seen[0] != "103 [</0>] [] []" {
				t.Errorf("%s %s, h2 %t: %d after %d interim responses: %q", tc.method, tc.path, h2, resp.StatusCode, len(seen), seen)
			}
			if resp.Header.Get("Alt-Svc") != "" || resp.Header.Get("Link") != "" {
				t.Errorf("fields of interim responses in the final one: %v", resp.Header)
			}
		}
	}
	// RFC 9110 §15.2
	all := answers(t, w.talk("GET "+w.upstream.URL+"/read HTTP/1.0\r\n"+w.basic(r.token)+"\r\n"))
	if len(all) != 1 || all[0].status != http.StatusCreated {
		t.Errorf("a client of HTTP/1.0 got %+v", all)
	}
}

// unread is a client that doesn't read: interim responses to it wait until it does.
type unread struct {
	*httptest.ResponseRecorder
	reads chan struct{}
	seen  []int
	// writes is told of each that begins to wait; nil for nobody.
	writes chan struct{}
}

func (u *unread) WriteHeader(status int) {
	if status < 200 {
		if u.writes != nil {
			u.writes <- struct{}{}
		}
		<-u.reads
	}
	u.seen = append(u.seen, status)
	u.ResponseRecorder.WriteHeader(status)
}

// What a mutation came to is recorded, whether or not its client reads the interim
// responses before it. Who begins to read then gets them all, and the answer after them.
func TestInterimResponsesThatNobodyReadsHoldUpNoMutation(t *testing.T) {
	t.Parallel()
	sent := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		close(sent)
		hinting(upstream.MaxInterim)(rw, r)
	})
	r := w.open("a")
	client := &unread{ResponseRecorder: httptest.NewRecorder(), reads: make(chan struct{})}
	request := httptest.NewRequest(http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(`{"to":"x"}`))
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("run", r.token)
	request.Header["Proxy-Authorization"] = request.Header["Authorization"]
	request.Header.Del("Authorization")
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		w.proxy.outer.Handler.ServeHTTP(client, request)
	}()
	select {
	case <-sent:
	case <-answered:
		t.Fatalf("it was answered without being sent: %d %s", client.Code, client.Body)
	}
	w.waitState("a", ledger.Applied)
	select {
	case <-answered:
		t.Fatal("it was answered before its interim responses")
	default:
	}
	close(client.reads)
	<-answered
	want := append(slices.Repeat([]int{http.StatusEarlyHints}, upstream.MaxInterim), http.StatusCreated)
	if !slices.Equal(client.seen, want) {
		t.Errorf("got %v, want %v", client.seen, want)
	}
}

// SetWriteDeadline makes what waits go on: nothing more is written.
func (u *unread) SetWriteDeadline(time.Time) error {
	close(u.reads)
	return nil
}

// A stop cuts a read whose client doesn't read the interim responses before the answer.
func TestAStopDoesNotWaitForInterimResponsesToBeRead(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		hinting(1)(rw, r)
		<-r.Context().Done()
		close(gone)
	})
	r := w.open("a")
	client := &unread{ResponseRecorder: httptest.NewRecorder(), reads: make(chan struct{}), writes: make(chan struct{}, 2)}
	request := httptest.NewRequest(http.MethodGet, w.upstream.URL+"/read", nil)
	request.Header.Set("Proxy-Authorization", strings.TrimSpace(strings.TrimPrefix(w.basic(r.token), "Proxy-Authorization:")))
	ended := make(chan any)
	go func() {
		defer func() { ended <- recover() }()
		w.proxy.outer.Handler.ServeHTTP(client, request)
	}()
	<-client.writes
	if _, err := w.ledger.EndRun(t.Context(), r.id, verdict.Transient, "test", "test"); err != nil {
		t.Fatal(err)
	}
	select {
	case how := <-ended:
		if err, _ := how.(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("it ended with %v", how)
		}
	case <-time.After(waitLimit):
		t.Fatal("the stop waits for a client that doesn't read")
	}
	<-gone
}

// A client that asks first sends nothing before its content is wanted: by the proxy for
// a mutation and what it looks into, by the upstream for what is streamed unread.
func TestExpectations(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Refuse") != "" {
			rw.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		created(rw, r)
	})
	r := w.open("a")
	ask := func(path, more string) (*bufio.Reader, net.Conn) {
		kind := "application/json"
		if more != "" {
			kind = "application/octet-stream"
		}
		c, err := net.Dial("tcp", w.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(waitLimit))
		_, _ = fmt.Fprintf(c, "POST %s%s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: %s\r\nContent-Length: 10\r\nExpect: 100-Continue\r\n%s\r\n",
			w.upstream.URL, path, strings.TrimPrefix(w.upstream.URL, "https://"), w.basic(r.token), kind, more)
		return bufio.NewReader(c), c
	}
	next := func(in *bufio.Reader) int {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, path := range []string{"/pay", "/telemetry"} {
		in, c := ask(path, "")
		if got := next(in); got != http.StatusContinue {
			t.Fatalf("%s: first %d", path, got)
		}
		_, _ = io.WriteString(c, `{"to":"x"}`)
		if got := next(in); got != http.StatusCreated {
			t.Errorf("%s: then %d", path, got)
		}
	}
	for path, want := range map[string]int{"/never": http.StatusForbidden, "/telemetry": http.StatusExpectationFailed} {
		begun := time.Now()
		in, _ := ask(path, "X-Refuse: 1\r\n")
		got := next(in)
		if got == http.StatusContinue && path == "/telemetry" && time.Since(begun) >= time.Second {
			got = next(in) // An upstream that says nothing for so long is taken to want the content.
		}
		if got != want {
			t.Errorf("%s: %d without the content being asked for, want %d", path, got, want)
		}
	}
}
