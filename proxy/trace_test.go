package proxy

import (
	"net/http"
	"slices"
	"testing"

	"keep-proxy/ledger"
)

// listener keeps what it is told.
type listener struct{ lines chan Line }

func (l listener) Active() bool  { return true }
func (l listener) Tell(one Line) { l.lines <- one }

// A trace is the script's: it passes as it came, differs at every run without making
// another payload, and is told to who follows.
func TestTheContextOfATracePassesAndIsTold(t *testing.T) {
	t.Parallel()
	told, seen := listener{make(chan Line, 8)}, make(chan []string, 8)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		seen <- append(r.Header["Traceparent"], r.Header["Tracestate"]...)
		created(rw, r)
	}, func(c *Config) { c.Observer = told })
	const first, second = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x"}`, "Traceparent", first, "Tracestate", "a=b"), 201, `{"id":1}`, false)
	if got := <-seen; !slices.Equal(got, []string{first, "a=b"}) {
		t.Errorf("the upstream got %q", got)
	}
	l := <-told.lines
	if l.Traceparent != first || l.Tracestate != "a=b" {
		t.Errorf("told %q %q", l.Traceparent, l.Tracestate)
	}
	if l.Sent == nil || l.Sent.Status != 201 || l.Sent.Verdict != "applied" || l.Sent.Ended.Before(l.Sent.Started) {
		t.Errorf("told of the sending %+v", l.Sent)
	}
	again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
	wantAnswer(t, again.post("/pay", `{"to":"x"}`, "Traceparent", second), 201, `{"id":1}`, true)
	if l := <-told.lines; l.Traceparent != second || l.Sent != nil {
		t.Errorf("of a replay: %q, %+v", l.Traceparent, l.Sent)
	}
	w.wantSends("/pay", 1)
}

// Who follows requests sees what the log has, also where nothing could be read: that a client
// doesn't trust the proxy's CA, say.
func TestWhoFollowsIsToldOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	told := listener{make(chan Line, 8)}
	w := newWorld(t, created, func(c *Config) { c.Observer = told })
	r := w.open("a")
	w.talk("\x00 garbage\r\n\r\n")
	l := <-told.lines
	if l.Problem != "malformed-request" || l.Status != 400 || !l.Delivered || l.Client == "" || l.Detail == "" || l.At.IsZero() {
		t.Errorf("of garbage: %+v", l)
	}
	w.talk("CONNECT bank.test:443 HTTP/1.1\r\nHost: bank.test:443\r\n" + w.basic(r.token) + "\r\n\x16\x03\x01\x00\x04\x01\x00\x00\x00")
	l = <-told.lines
	if l.Problem != "tls" || l.Host != "bank.test:443" || l.Run != r.id || l.Client == "" || l.Detail == "" {
		t.Errorf("of a tunnel without a handshake: %+v", l)
	}
}

// One request with such a path would end every stream of requests, and take the spans of a
// whole batch with it.
func TestWhoFollowsIsToldText(t *testing.T) {
	t.Parallel()
	told := listener{make(chan Line, 8)}
	w := newWorld(t, created, func(c *Config) { c.Observer = told })
	w.talk("GET " + w.upstream.URL + "/caf%E9 HTTP/1.1\r\nHost: " + w.authority + "\r\n" + w.basic(w.open("a").token) + "Connection: close\r\n\r\n")
	if l := <-told.lines; l.Path != "/caf\ufffd" {
		t.Errorf("told of the path %q", l.Path)
	}
}
