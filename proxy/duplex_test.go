package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// early answers with the content that is still to come when it answers.
type early struct{}

func (early) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.ReadFull(r.Body, make([]byte, 2)); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Proto: "HTTP/1.1", Body: r.Body, Request: r}, nil
}

// An upstream that answers before it has all of the content gets the rest: none of it is read
// away for the sake of the answer, inside a tunnel or outside.
func TestNoContentIsLostBehindAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(http.ResponseWriter, *http.Request) {})
	w.proxy.config.Reads = early{}
	r := w.open("a")
	for _, base := range []string{w.upstream.URL, "http://" + w.authority} {
		for _, content := range []io.Reader{strings.NewReader("hello world"), io.MultiReader(strings.NewReader("hello world"))} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/telemetry", content)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || string(rest) != "llo world" {
				t.Errorf("%s: the upstream got %q behind its answer, %v", base, rest, err)
			}
		}
	}
}
