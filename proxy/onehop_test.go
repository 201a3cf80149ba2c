package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/upstream"
)

// ofOneHop is the value of every field that must not be passed on, so that it is found
// wherever it gets to.
const ofOneHop = "of-one-hop"

// fieldsOf are lines of fields with that value, with the nominated ones.
func fieldsOf(names ...string) string {
	lines := "Connection: X-Nominated, x-LOWER, content-length,, " + ofOneHop + "\r\n"
	for _, name := range append([]string{"X-Nominated", "X-Lower", "Proxy-Connection", "Keep-Alive", "Te"}, names...) {
		lines += name + ": " + ofOneHop + "\r\n"
	}
	return lines
}

// seenHops is what an upstream saw that was not meant for it.
func seenHops(r *http.Request) (seen []string) {
	for name, values := range r.Header {
		if strings.Contains(strings.Join(values, ","), ofOneHop) || slices.Contains([]string{"Connection", "Proxy-Authorization", "Keep-Item", "Expect"}, name) {
			seen = append(seen, fmt.Sprintf("%s: %q", name, values))
		}
	}
	_, _ = io.Copy(io.Discard, r.Body)
	for name, values := range r.Trailer {
		seen = append(seen, fmt.Sprintf("trailer %s: %q", name, values))
	}
	if slices.Contains(r.Header["User-Agent"], "Go-http-client/1.1") {
		seen = append(seen, "a User-Agent that nobody sent")
	}
	return seen
}

// answeredRaw is an upstream that answers with this text, and says what it saw that was
// not meant for it.
func answeredRaw(t *testing.T, text string) http.HandlerFunc {
	t.Helper()
	return func(rw http.ResponseWriter, r *http.Request) {
		for _, one := range seenHops(r) {
			t.Errorf("the upstream saw at %s %s: %s", r.Method, r.URL, one)
		}
		c, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

// What belongs to one connection (RFC 9110 §7.6.1), is between a client and its proxy, or
// is the proxy's alone to say, goes on in neither direction: of what is streamed, of what is
// sent once, of a mutation, of its record and of its replay.
func TestNothingOfOneConnectionGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, more, body string }{
		{"GET", "/read", "", ""},
		{"GET", "/read", "User-Agent: mine\r\n", ""},
		{"GET", "/read", "User-Agent: mine\r\nKeep-Subkey: " + ofOneHop + "\r\n", ""},
		{"HEAD", "/read", "User-Agent: mine\r\n", ""},
		{"POST", "/telemetry", "Keep-Subkey: " + ofOneHop + "\r\n", ""},
		{"POST", "/telemetry", "", strings.Repeat("x", 100_000)},
		{"POST", "/telemetry", "User-Agent: mine\r\n", `{"to":"x"}`},
		{"POST", "/pay", "User-Agent: mine\r\n", `{"to":"x"}`},
		{"POST", "/pay", "", `{"to":"y"}`},
	} {
		t.Run(c.method+c.path+c.more, func(t *testing.T) {
			t.Parallel()
			oneHop(t, "", c.method, c.path, c.more, c.body)
		})
		t.Run(c.method+c.path+c.more+" on a connection that ends", func(t *testing.T) {
			t.Parallel()
			for _, closes := range []string{"Connection: close\r\n", "Connection: close,\r\n X-Nominated\r\n", "coNNection:CLOSE , x-nominated\r\n"} {
				oneHop(t, closes, c.method, c.path, c.more, c.body)
			}
		})
	}
}

// oneHop sends one request, and of a mutation the same again, to an upstream of its own: a
// connection to one that answers by hand must not be used again.
func oneHop(t *testing.T, closes, method, path, more, body string) {
	t.Helper()
	w := newWorld(t, answeredRaw(t, "HTTP/1.1 201 Created\r\n"+closes+
		fieldsOf("Trailer", "Upgrade", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info", "Alt-Svc", "Http2-Settings",
			"Keep-Mutation", "Keep-State", "Keep-Replayed", "Keep-Observed", "Keep-Scope")+
		"X-End: kept\r\nContent-Length: 8\r\n\r\n"+`{"id":1}`))
	asked := []bool{false}
	if path == "/pay" {
		asked = append(asked, true)
	}
	for _, replayed := range asked {
		r := w.open("a")
		text := method + " " + w.upstream.URL + path + " HTTP/1.1\r\nHost: " + w.authority + "\r\n" + w.basic(r.token) + "Keep-Item: a\r\n" + more +
			strings.Replace(fieldsOf("Trailer", "Proxy-Authenticate", "Proxy-Authentication-Info"), "Connection: ", "Connection: close, ", 1)
		if body != "" {
			text += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
		}
		answer := string(w.talk(text + "\r\n" + body))
		head, content, _ := strings.Cut(answer, "\r\n\r\n")
		if strings.Contains(answer, ofOneHop) || !strings.Contains(head, "\r\nX-End: kept") || (content == "") != (method == "HEAD") ||
			!strings.Contains(head, "\r\nContent-Length: 8") || replayed != strings.Contains(head, "\r\nKeep-Replayed: true") {
			t.Errorf("%s %s, replayed %t, was answered with\n%s", method, path, replayed, answer)
		}
		if path != "/pay" {
			continue
		}
		m := w.mutation("a")
		if m.Result == nil {
			t.Fatalf("it is %s, %s", m.State, m.Reason)
		}
		if kept := fmt.Sprint(m.Request, *m.Result, m.Dispatches); strings.Contains(kept, ofOneHop) {
			t.Errorf("the record keeps %s", kept)
		}
		w.endRun(r)
		w.wantSends("/pay", 1)
	}
}

// The same for upstreams of HTTP/2, to which only TE goes, as trailers are taken.
func TestNothingOfOneConnectionReachesHTTP2(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/read", ""},
		{"GET", "/read", `{"to":"x"}`},
		{"POST", "/telemetry", ""},
		{"POST", "/telemetry", `{"to":"x"}`},
		{"POST", "/telemetry", strings.Repeat("x", 100_000)},
		{"POST", "/pay", `{"to":"x"}`},
	} {
		for _, closes := range []string{"close", "keep-alive"} {
			t.Run(fmt.Sprintf("%s %s, %d bytes, %s", c.method, c.path, len(c.body), closes), func(t *testing.T) {
				t.Parallel()
				seen := make(chan string, 1)
				w := newOver(t, true, testRules, func(rw http.ResponseWriter, r *http.Request) {
					seen <- fmt.Sprint(r.ProtoMajor, r.Header["Te"], r.Header["X-Foo"], r.Header["Connection"], r.Header["Keep-Alive"])
					_, _ = io.Copy(io.Discard, r.Body)
					created(rw, r)
				})
				text := fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\n%sConnection: %s, x-foo, te\r\nX-Foo: 1\r\nTE: trailers\r\nKeep-Alive: 1\r\n"+
					"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", c.method, w.upstream.URL, c.path, w.authority, w.basic(w.open("a").token),
					closes, len(c.body), c.body)
				if resp, body := w.raw(text); resp.StatusCode != http.StatusCreated || resp.Close != (closes == "close") {
					t.Errorf("answered %d %s, close %t", resp.StatusCode, body, resp.Close)
				}
				if got := <-seen; got != "2 [trailers] [] [] []" {
					t.Errorf("the upstream saw %s", got)
				}
			})
		}
	}
}

// endRun lets another run of the item be opened.
func (w *world) endRun(r *run) {
	w.t.Helper()
	if _, err := w.ledger.EndRun(w.t.Context(), r.id, "", "test", "test"); err != nil {
		w.t.Fatal(err)
	}
}

// What is given as a stored answer may come from a probe, a person or a rule, too.
func TestAStoredAnswerSaysOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	s := &reply{mutation: &ledger.Mutation{
		Intent:  ledger.Intent{ID: "m-1"},
		Outcome: ledger.Outcome{State: ledger.Applied},
	}, status: http.StatusOK, header: http.Header{"X-End": {"kept"}}}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Alt-Svc", dispatch.FieldScope, dispatch.FieldReplayed, dispatch.FieldObserved, dispatch.FieldState} {
		s.header.Set(name, ofOneHop)
	}
	resp, err := s.response(httptest.NewRequest(http.MethodPost, "https://api.test/", nil))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if shown := fmt.Sprint(resp.Header); strings.Contains(shown, ofOneHop) || resp.Header.Get("X-End") != "kept" || resp.Header.Get(dispatch.FieldState) != "applied" {
		t.Errorf("it says %s", shown)
	}
}

// A field that Connection nominates doesn't go on as a trailer either.
func TestTrailersOfOneConnectionDoNotGoOn(t *testing.T) {
	t.Parallel()
	chunked := func(fields string) string {
		return fields + "Trailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: " + ofOneHop + "\r\n\r\n"
	}
	for path, method := range map[string]string{"/read": "GET", "/telemetry": "POST"} {
		w := newWorld(t, answeredRaw(t, chunked("HTTP/1.1 200 OK\r\nConnection: Sum\r\n")))
		text := method + " " + w.upstream.URL + path + " HTTP/1.1\r\nHost: " + w.authority + "\r\n" + w.basic(w.open("a").token)
		if method == "POST" {
			text = chunked(text + "Connection: close, Sum\r\n")
		} else {
			text += "Connection: close\r\n\r\n"
		}
		if answer := string(w.talk(text)); !strings.Contains(answer, "\r\nok\r\n") || strings.Contains(answer, ofOneHop) || strings.Contains(answer, "Sum") {
			t.Errorf("%s was answered with\n%s", path, answer)
		}
		w.wantSends(path, 1)
	}
}

// Only a client that takes trailers makes the proxy say so.
func TestWhoTakesTrailers(t *testing.T) {
	t.Parallel()
	for te, want := range map[string]bool{"trailers": true, "gzip, Trailers": true, "": false, "gzip": false, "trailer": false, "xtrailers": false} {
		if got := takesTrailers(http.Header{"Te": {te}}); got != want {
			t.Errorf("TE: %q: %t", te, got)
		}
	}
	if takesTrailers(http.Header{}) {
		t.Error("no TE takes trailers")
	}
}

// A client of HTTP/1.0 is told of no 100, and nobody else hears that it asked for one
// (RFC 9110 §10.1.1).
func TestAnExpectationInHTTP10IsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		for _, one := range seenHops(r) {
			t.Errorf("the upstream saw %s", one)
		}
		created(rw, r)
	})
	r := w.open("a")
	text := "POST " + w.upstream.URL + "/telemetry HTTP/1.0\r\n" + w.basic(r.token) + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nok"
	if all := answers(t, w.talk(text)); len(all) != 1 || all[0].status != http.StatusCreated {
		t.Errorf("got %+v", all)
	}
	w.wantSends("/telemetry", 1)
}

// RFC 9112 §3.2.4: OPTIONS for a server as a whole reaches it as such.
func TestOptionsOfAWholeServer(t *testing.T) {
	t.Parallel()
	target := make(chan string, 2)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		target <- r.RequestURI
		created(rw, r)
	})
	w.upstream.Config.DisableGeneralOptionsHandler = true
	r := w.open("a")
	for _, agent := range []string{"", "User-Agent: mine\r\n"} {
		text := "OPTIONS " + w.upstream.URL + " HTTP/1.1\r\nHost: " + w.authority + "\r\n" + w.basic(r.token) + agent + "Connection: close\r\n\r\n"
		if all := answers(t, w.talk(text)); len(all) != 1 || all[0].status != http.StatusCreated {
			t.Fatalf("got %+v", all)
		}
		if got := <-target; got != "*" {
			t.Errorf("it was asked for %q", got)
		}
	}
}

// unsafeReads fails the test if it is given what must be sent once.
type unsafeReads struct {
	http.RoundTripper
	t *testing.T
}

// RoundTrip implements http.RoundTripper.
func (u unsafeReads) RoundTrip(r *http.Request) (*http.Response, error) {
	if !safe(r.Method) && r.ContentLength == 0 {
		u.t.Errorf("%s without content goes out by a way that may repeat it", r.Method)
	}
	return u.RoundTripper.RoundTrip(r)
}

// net/http would repeat it on a connection that turns out to be dead.
func TestWhatIsNotSafeAndHasNoContentIsSentOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Reads, c.Unmatched = unsafeReads{c.Reads, t}, PolicyAllow })
	w.use(strings.Replace(testRules, `hosts: ["HOST"]`, `hosts: ["api.test"]`, 1))
	r := w.open("a")
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if g := send(r.client, method, w.upstream.URL+"/"+method, "", "Idempotency-Key", "k"); g.status != http.StatusCreated {
			t.Errorf("%s: %d %s", method, g.status, g.body)
		}
		w.wantSends("/"+method, 1)
	}
}

// bounds tells what time sendings have.
type bounds struct {
	dispatch.Sender
	given chan time.Duration
}

// Send implements Sender.
func (b bounds) Send(ctx context.Context, r *upstream.Request) *upstream.Answer {
	b.given <- r.Total
	return b.Sender.Send(ctx, r)
}

// What is carried and not judged may take as long as it likes, by whatever way it goes: an answer
// that streams for days is no other because its request had no content.
func TestWhatIsSentOnceAndNotJudgedHasNoDeadline(t *testing.T) {
	t.Parallel()
	given := make(chan time.Duration, 1)
	w := newWorld(t, created, func(c *Config) { c.Sender = bounds{c.Sender, given} })
	if g := w.open("a").post("/telemetry", ""); g.status != http.StatusCreated {
		t.Fatalf("%d %s", g.status, g.body)
	}
	if total := <-given; total < 365*24*time.Hour {
		t.Errorf("it is cut after %s", total)
	}
}

// A redirect is the client's to follow: it is passed on as it is, of a read too.
func TestRedirectsOfReadsArePassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/elsewhere" {
			http.Redirect(rw, r, "/elsewhere", http.StatusFound)
		}
	})
	r := w.open("a")
	for _, ask := range []struct{ method, path, body string }{
		{http.MethodGet, "/read", ""},
		{http.MethodHead, "/head", ""},
		{http.MethodPost, "/telemetry", ""},
		{http.MethodPost, "/telemetry", strings.Repeat("x", 100_000)},
	} {
		if g := send(r.client, ask.method, w.upstream.URL+ask.path, ask.body); g.status != http.StatusFound || g.header.Get("Location") != "/elsewhere" {
			t.Errorf("%s: %d, %v", ask.method, g.status, g.header)
		}
	}
	w.wantSends("/elsewhere", 0)
}

// A stream that nobody reads any more holds little: what its upstream has to say waits
// there, and isn't gathered here.
func TestAStreamThatNobodyReadsWaitsAtItsUpstream(t *testing.T) {
	t.Parallel()
	const size = 256 << 20
	written := make(chan int64, 1)
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", fmt.Sprint(size))
		n := int64(0)
		for part := make([]byte, 1<<20); n < size; n += int64(len(part)) {
			if _, err := rw.Write(part); err != nil {
				break
			}
		}
		written <- n
	})
	r := w.open("a")
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, "GET "+w.upstream.URL+"/read HTTP/1.1\r\nHost: "+w.authority+"\r\n"+w.basic(r.token)+"\r\n")
	in := bufio.NewReader(c)
	if _, err := io.CopyN(io.Discard, in, 1<<20); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if n := <-written; n >= size/2 {
		t.Errorf("%d MiB were taken of an answer of which the client read one", n>>20)
	}
}
