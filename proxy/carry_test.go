package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
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
