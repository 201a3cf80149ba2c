package proxy

import (
	"io"
	"net/http"
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
