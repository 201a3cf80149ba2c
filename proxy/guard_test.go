package proxy

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// with counts the lines that hold words.
func (l *lines) with(words string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for so many lines: those of a connection may come after its end.
func (l *lines) await(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(waitLimit); l.with("{") < n; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d lines, want %d: %s", l.with("{"), n, l.all())
		}
	}
}

// talk sends bytes to the proxy and reads until it closes the connection.
func (w *world) talk(text string) []byte {
	w.t.Helper()
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(waitLimit))
	_, _ = io.WriteString(c, text)
	answer, err := io.ReadAll(c)
	if err != nil {
		w.t.Fatalf("%q isn't closed in order: %v", text, err)
	}
	return answer
}

func (w *world) basic(token string) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("run:"+token)) + "\r\n"
}

// answers reads every answer in a text.
func answers(t *testing.T, text []byte) (all []got) {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		if _, err := in.Peek(1); err != nil {
			return all
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("after %d answers: %v in %q", len(all), err, text)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		all = append(all, got{resp.StatusCode, resp.Header, string(body), err})
	}
}

func TestAFaultWaitsForTheAnswersBeforeIt(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	target := "GET " + w.upstream.URL + "/read HTTP/1.1\r\nHost: " + strings.TrimPrefix(w.upstream.URL, "https://") + "\r\n" + w.basic(r.token)
	for name, broken := range map[string]string{
		"together with it": target + "\r\n" + target + " folded\r\n\r\n",
		"no HTTP":          target + "\r\n" + "\x00\x01\x02",
	} {
		all := answers(t, w.talk(broken))
		if len(all) != 2 {
			t.Fatalf("%s: %d answers, want 2", name, len(all))
		}
		wantAnswer(t, all[0], http.StatusCreated, `{"id":1}`, false)
		wantProblem(t, all[1], "malformed-request", 400, "RFC 9112")
	}
	w.wantSends("/read", 2)
	if n := log.with(`"problem":"malformed-request"`); n != 2 {
		t.Errorf("%d log lines, want 1 for each", n)
	}
}

func TestAFaultInABodyIsAnsweredByItsRequest(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	r := w.open("a")
	all := answers(t, w.talk("POST "+w.upstream.URL+"/pay HTTP/1.1\r\nHost: "+strings.TrimPrefix(w.upstream.URL, "https://")+"\r\n"+
		w.basic(r.token)+"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\na \r\n{\"to\":\"x\"}\r\n0\r\n\r\n"))
	if len(all) != 1 {
		t.Fatalf("%d answers", len(all))
	}
	wantProblem(t, all[0], "malformed-request", 400, "chunk")
	w.wantSends("/pay", 0)
	if n := log.with(`"message":"request"`); n != 1 {
		t.Errorf("%d log lines, want 1", n)
	}
}

func TestARefusedConnectIsFollowedByTheNextRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	host := strings.TrimPrefix(w.upstream.URL, "https://")
	all := answers(t, w.talk("CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n\r\n"+
		"GET "+w.upstream.URL+"/read HTTP/1.1\r\nHost: "+host+"\r\n"+w.basic(r.token)+"Connection: close\r\n\r\n"))
	if len(all) != 2 || all[0].status != http.StatusProxyAuthRequired || all[1].status != http.StatusCreated {
		t.Fatalf("got %+v", all)
	}
	w.wantSends("/read", 1)
}

// A client may send its first bytes together with CONNECT.
func TestBytesBehindConnectReachTheTunnel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	r := w.open("a")
	host := "127.0.0.1:1"
	all := answers(t, w.talk("CONNECT "+host+" HTTP/1.1\r\nHost: "+host+"\r\n"+w.basic(r.token)+"\r\n"+
		"GET / HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n"))
	if len(all) != 1 || !strings.Contains(all[0].body, "misdirected") {
		t.Fatalf("got %+v", all)
	}
}

func TestWhoSpeaksAnotherLanguageIsTold(t *testing.T) {
	t.Parallel()
	log := &lines{}
	w := newWorld(t, created, func(c *Config) { c.Log = zerolog.New(log) })
	for said, want := range map[string]string{
		"\x16\x03\x01\x02\x00\x01\x00":         "\x15\x03\x03\x00\x02\x02\x28",
		"\x05\x01\x00":                         "\x05\xff",
		"\x04\x01\x00\x50\x7f\x00\x00\x01\x00": "\x00\x5b\x00\x00\x00\x00\x00\x00",
	} {
		if got := w.talk(said); string(got) != want {
			t.Errorf("to %q: got %q, want %q", said, got, want)
		}
	}
	if n := log.with(`"problem":"malformed-request"`); n != 3 {
		t.Errorf("%d log lines, want 3", n)
	}
	all := answers(t, w.talk("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if len(all) != 1 {
		t.Fatalf("%d answers to h2c", len(all))
	}
	wantProblem(t, all[0], "malformed-request", 505, "HTTP/2 is spoken over TLS only")
}

func TestAHeadOverTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.MaxHead = 2 << 10 })
	for name, c := range map[string]struct {
		text   string
		status int
	}{
		"a long target": {"GET http://h/" + strings.Repeat("a", 2<<10) + " HTTP/1.1\r\nHost: h\r\n\r\n", 414},
		"a long field":  {"GET http://h/ HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", 2<<10) + "\r\n\r\n", 431},
		"many fields":   {"GET http://h/ HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X: y\r\n", 400) + "\r\n", 431},
		"a user name of 64 KiB": {fmt.Sprintf("GET http://h/ HTTP/1.1\r\nHost: h\r\nProxy-Authorization: Basic %s\r\n\r\n",
			base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", 64<<10)+":x"))), 431},
	} {
		all := answers(t, w.talk(c.text))
		if len(all) != 1 {
			t.Fatalf("%s: %d answers", name, len(all))
		}
		wantProblem(t, all[0], "malformed-request", c.status, "limit")
	}
}

func TestAHeadThatEndsEarlyIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, "GET http://h/ HTTP/1.1\r\nHo")
	closeWrite(c)
	text, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	all := answers(t, text)
	if len(all) != 1 {
		t.Fatalf("%d answers in %q", len(all), text)
	}
	wantProblem(t, all[0], "malformed-request", 400, "within the head")
}
