package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

func TestTrailersArriveWithTheContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		announced := r.URL.Path == "/announced"
		if announced {
			rw.Header().Set("Trailer", "Sum")
		}
		rw.Header().Set("X-Kept", "yes")
		_, _ = io.WriteString(rw, "ok")
		_ = http.NewResponseController(rw).Flush()
		if announced {
			rw.Header().Set("Sum", "7")
		} else {
			rw.Header().Set(http.TrailerPrefix+"Sum", "7")
		}
	})
	r := w.open("a")
	for _, h2 := range []bool{false, true} {
		client := w.newClient(url.UserPassword("run", r.token), h2)
		for _, path := range []string{"/announced", "/unannounced"} {
			t.Run(fmt.Sprintf("h2=%v %s", h2, path), func(t *testing.T) {
				resp, err := client.Get(w.upstream.URL + path)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				content, err := io.ReadAll(resp.Body)
				if string(content) != "ok" || err != nil || resp.Header.Get("X-Kept") != "yes" {
					t.Errorf("got %q, %v, fields %v", content, err, resp.Header)
				}
				if resp.Trailer.Get("Sum") != "7" || h2 != (resp.ProtoMajor == 2) {
					t.Errorf("%s with trailers %v", resp.Proto, resp.Trailer)
				}
			})
		}
	}
}

// A media type that the upstream didn't say is not guessed on the way (RFC 9110 §8.3).
func TestNoMediaTypeIsGuessed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Content-Type"] = nil
		rw.Header().Set("Content-Length", "6")
		_, _ = io.WriteString(rw, "<html>")
	})
	r := w.open("a")
	for _, h2 := range []bool{false, true} {
		resp, err := w.newClient(r.user(), h2).Get(w.upstream.URL + "/read")
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if said, given := resp.Header["Content-Type"]; given || string(content) != "<html>" || err != nil || h2 != (resp.ProtoMajor == 2) {
			t.Errorf("%s %q, %v, of the type %q", resp.Proto, content, err, said)
		}
	}
}

// What isn't safe and has no content goes out by the way that sends once.
func TestTrailersOfWhatIsSentOnceArrive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		name := http.TrailerPrefix + "Sum"
		if r.URL.RawQuery == "announced" {
			rw.Header().Set("Trailer", "Sum")
			name = "Sum"
		}
		_, _ = io.WriteString(rw, "ok")
		_ = http.NewResponseController(rw).Flush()
		rw.Header().Set(name, "7")
	})
	r := w.open("a")
	for _, query := range []string{"announced", "unannounced"} {
		resp, err := r.client.Post(w.upstream.URL+"/telemetry?"+query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(content) != "ok" || err != nil || resp.Trailer.Get("Sum") != "7" {
			t.Errorf("%s: %q, %v, trailers %v", query, content, err, resp.Trailer)
		}
	}
	w.wantSends("/telemetry", 2)
}

// The content of a request goes on as it comes, and its trailers behind it.
func TestContentOfARequestStreams(t *testing.T) {
	t.Parallel()
	came, trailers := make(chan string, 2), make(chan http.Header, 1)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		for lines := bufio.NewReader(r.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			came <- line
		}
		trailers <- r.Trailer
		created(rw, r)
	})
	r := w.open("a")
	for _, h2 := range []bool{false, true} {
		content, in := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.upstream.URL+"/telemetry", content)
		if err != nil {
			t.Fatal(err)
		}
		request.Trailer = http.Header{"Sum": {"7"}}
		answered := make(chan error, 1)
		go func() {
			resp, err := w.newClient(url.UserPassword("run", r.token), h2).Do(request)
			if err == nil {
				err = resp.Body.Close()
			}
			answered <- err
		}()
		for _, line := range []string{"one\n", "two\n"} {
			_, _ = io.WriteString(in, line)
			select {
			case got := <-came:
				if got != line {
					t.Errorf("h2=%v: %q came, want %q", h2, got, line)
				}
			case <-time.After(waitLimit):
				t.Fatalf("h2=%v: %q waits for the rest of the content", h2, line)
			}
		}
		_ = in.Close()
		if err := <-answered; err != nil {
			t.Fatal(err)
		}
		if got := <-trailers; got.Get("Sum") != "7" {
			t.Errorf("h2=%v: trailers %v", h2, got)
		}
	}
}
