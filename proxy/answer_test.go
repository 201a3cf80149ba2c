package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestASlowReadOfKnownLengthFlows(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "6")
		for part := range next {
			_, _ = io.WriteString(rw, part)
			rw.(http.Flusher).Flush()
		}
	})
	r := w.open("a")
	go func() { next <- "abc" }()
	resp, err := r.client.Get(w.upstream.URL + "/read")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	half := make([]byte, 3)
	if _, err := io.ReadFull(resp.Body, half); err != nil || string(half) != "abc" {
		t.Fatalf("got %q, %v", half, err)
	}
	next <- "def"
	close(next)
	if rest, err := io.ReadAll(resp.Body); string(rest) != "def" || err != nil {
		t.Errorf("rest %q, %v", rest, err)
	}
}

func TestTheHeadOfAStreamComesBeforeItsContent(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusOK)
		rw.(http.Flusher).Flush()
		<-release
		_, _ = io.WriteString(rw, "late")
	})
	resp, err := w.open("a").client.Get(w.upstream.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	close(release)
	if text, err := io.ReadAll(resp.Body); string(text) != "late" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
}

// lastWrite is a connection whose client has gone, as the write finds out.
type lastWrite struct {
	*httptest.ResponseRecorder
	leave func()
}

func (b lastWrite) Write([]byte) (int, error) {
	b.leave()
	return 0, errors.New("the client has gone")
}

// A caller that left while the last of its answer was written didn't get it: it asks
// again, and that is no second intent.
func TestACallerWhoseLastWriteFailsHasGone(t *testing.T) {
	t.Parallel()
	client, leave := context.WithCancel(t.Context())
	answer := &answerWriter{ResponseWriter: lastWrite{httptest.NewRecorder(), leave}, client: client}
	answer.Header().Set("Content-Length", "2")
	answer.WriteHeader(http.StatusOK)
	if _, err := answer.Write([]byte("ok")); err == nil {
		t.Fatal("the write succeeded")
	}
	earlier, again := &keyCaller{run: "r", client: client, answer: answer}, &keyCaller{run: "r", client: t.Context()}
	if repeats(again, earlier) {
		t.Error("asking again is taken for a second intent")
	}
	if answer.finish() {
		t.Error("it counts as delivered")
	}
}

// kept is a connection whose client has gone while a write was under way: what was to be written
// may be read still when the write has ended, as of a stream of HTTP/2 that was reset.
type kept struct {
	*httptest.ResponseRecorder
	bytes []byte
}

func (k *kept) Write(p []byte) (int, error) {
	k.bytes = p
	return 0, errors.New("the client has gone")
}

// What a write that failed was given may be read still: whoever copies next must not put another
// exchange's bytes in its place.
func TestABufferOfAWriteThatFailedIsUsedByNobodyElse(t *testing.T) {
	t.Parallel()
	for range 100 {
		to := &kept{ResponseRecorder: httptest.NewRecorder()}
		answer := &answerWriter{ResponseWriter: to, client: t.Context(), length: -1}
		if _, err := answer.ReadFrom(strings.NewReader("mine")); err == nil {
			t.Fatal("the write succeeded")
		}
		next := takeBuffer()
		copy(next[:], "another's")
		copyBuffers.Put(next)
		if string(to.bytes) != "mine" {
			t.Fatalf("a write that failed reads %q now", to.bytes)
		}
	}
}

// An answer that its upstream cut was not had whole: who asks for it again is told what
// became of it, and didn't mean a second mutation.
func TestAnAnswerThatIsCutIsNotDelivered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		// It is over the limit, so that it is passed on and not kept.
		_, _ = io.WriteString(rw, strings.Repeat("y", 10_000))
		rw.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	r := w.open("a")
	if g := r.post("/pay", `{"to":"x"}`); g.status != http.StatusOK || g.err == nil {
		t.Fatalf("%d with %d bytes, %v; want an answer that is cut", g.status, len(g.body), g.err)
	}
	wantProblem(t, r.post("/pay", `{"to":"x"}`), "no-result", http.StatusFailedDependency, "happened")
	w.wantSends("/pay", 1)
}
