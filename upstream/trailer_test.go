package upstream

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What a recorded answer is kept with is the upstream's to say, and means something behind
// the content. What came of a cut one, or could be of the connection, isn't kept.
func TestTrailersThatAreKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3<<10)
	for name, tc := range map[string]struct{ head, behind, want string }{
		"one field":                          {"", "Sum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"one of several values":              {"", "Sum: 7\r\nsum: 8\r\n\r\n", `map["Sum":["7" "8"]]`},
		"none":                               {"", "\r\n", `map[]`},
		"one that was announced and is not":  {"Trailer: Sum, Other\r\n", "Sum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"fields that say how to read":        {"", "Content-Type: a/b\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\nContent-Range: x\r\nSum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"fields of the connection":           {"", "Connection: close\r\nKeep-Alive: 5\r\nTE: a\r\nUpgrade: h2c\r\nProxy-Authenticate: Basic\r\nSum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"fields of the proxy":                {"", "Keep-Replayed: true\r\nKeep-State: failed\r\nSum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"fields that lead elsewhere":         {"", "Alt-Svc: h3\r\nSet-Cookie: a=b\r\n\r\n", `map[]`},
		"Connection names a field":           {"Connection: Sum\r\n", "Sum: 7\r\n\r\n", `map[]`},
		"Connection says that it ends":       {"Connection: close\r\n", "Sum: 7\r\n\r\n", `map["Sum":["7"]]`},
		"the end is missing":                 {"", "Sum: 7\r\n", `map[]`},
		"as long as a reader takes together": {"", "Sum: " + long + "\r\n\r\n", fmt.Sprintf("%q", map[string][]string{"Sum": {long}})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"+tc.head+"\r\n2\r\nok\r\n0\r\n"+tc.behind))
			g := send(t, sender(t, Config{}), post(u.url("http", "/"), "x"))
			if got := fmt.Sprintf("%q", g.Trailers()); got != tc.want {
				t.Errorf("kept is %s, want %s", got, tc.want)
			}
		})
	}
}

// Whatever comes behind the content, that was whole. Its connection isn't used again.
func TestATrailerSectionOfAnyLengthLeavesItsAnswerWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{bufferSize - 100, bufferSize, 2 * maxTrailer, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			long := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: " + strings.Repeat("x", size) + "\r\n\r\n"
			u := serve(t, nil, answering(long))
			for range 2 {
				send(t, sender(t, Config{}), post(u.url("http", "/"), "x")).check(t, whole)
			}
			read := serve(t, nil, answering(long))
			p := NewPassthrough(Config{})
			for range 2 {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, read.url("http", "/").String(), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := p.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				content, err := io.ReadAll(resp.Body)
				if err != nil || string(content) != "ok" {
					t.Errorf("read %q, %v", content, err)
				}
				if kept := len(resp.Trailer); kept > 0 != (size < bufferSize) {
					t.Errorf("%d trailer fields of %d bytes", kept, size)
				}
			}
		})
	}
}

// A trailer section that doesn't fit into a record isn't kept in parts.
func TestTrailersThatAreTooLongToBeKept(t *testing.T) {
	t.Parallel()
	whole := &ended{BodyComplete: true}
	for size, kept := range map[int]bool{maxTrailer - fieldOverhead - 3: true, maxTrailer - fieldOverhead - 2: false} {
		a := &Answer{Trailer: map[string][]string{"Sum": {strings.Repeat("x", size)}}, ex: whole}
		if got := a.Trailers(); (len(got) > 0) != kept {
			t.Errorf("of %d bytes %d fields are kept", size, len(got))
		}
	}
}
