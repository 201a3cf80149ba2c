package strict_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/proxy/strict"
)

// seeds are requests whole and broken; more come from the vectors of
// integration/hostile.
var seeds = []string{
	"GET /a HTTP/1.1\r\nHost: h\r\n\r\n",
	"\r\nGET http://h:80/%41?q=% HTTP/1.1\r\nHost: H\r\nX: \t y \r\n\r\nGET / HTTP/1.0\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX: y\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\n\r\nPOST / HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nContent-Length: 1\r\n\r\naGET / HTTP/1.0\r\n\r\n",
	"CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n\x16\x03",
	"GET / HTTP/1.1\r\nHost: h\n\r\n",
	// What net/http refuses by itself.
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc\n",
	"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc\n",
	"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
	"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n",
}

// read is what one parser made of the bytes: the requests that were whole.
type read struct {
	target, host, method, body string
}

// netHTTP reads requests as the server behind the scanner does. Its error is what it
// refuses by itself.
func netHTTP(text []byte) (whole []read, err error) {
	in := bufio.NewReader(bytes.NewReader(text))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return whole, refused(text, err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return whole, refused(text, err)
		}
		whole = append(whole, read{r.RequestURI, r.Host, r.Method, string(body)})
		if r.Method == http.MethodConnect {
			return whole, nil
		}
	}
}

// refused leaves out errors about a last line that is not whole, and net/http's own
// bounds on extensions and trailers: a body ends there, and the handler answers.
func refused(text []byte, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasSuffix(text, []byte("\n")) ||
		strings.Contains(err.Error(), "trailer") || strings.Contains(err.Error(), "invalid URL escape") || err.Error() == "chunked encoding contains too much non-data" {
		return nil
	}
	return err
}

// through shows the scanner the bytes in pieces of n, and returns what it let through.
func through(text []byte, n int) (passed []byte, fault *strict.Fault) {
	var s strict.Scanner
	for len(text) > 0 {
		p := text[:min(n, len(text))]
		skip, pass, f := s.Scan(p)
		passed = append(passed, p[skip:skip+pass]...)
		if f != nil || s.Connected() {
			return passed, f
		}
		if skip+pass == 0 {
			return passed, nil // a rest that only a connection would show again
		}
		text = text[skip+pass:]
	}
	return passed, nil
}

// FuzzNetHTTPReadsWhatTheScannerReads: of what is let through, net/http refuses
// nothing by itself; a request at fault never comes out of it whole; and pieces make
// no difference.
func FuzzNetHTTPReadsWhatTheScannerReads(f *testing.F) {
	for _, text := range seeds {
		f.Add([]byte(text), 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		if n %= 64; n < 1 {
			n = 1
		}
		passed, fault := through(text, len(text))
		requests, err := netHTTP(passed)
		if err != nil {
			t.Fatalf("net/http refuses what was let through: %v\n%q", err, passed)
		}
		inPieces, other := through(text, n)
		// Which fault is found first may differ, but not whether there is one.
		if (fault == nil) != (other == nil) {
			t.Fatalf("at once: %v, in pieces of %d: %v", fault, n, other)
		}
		again, err := netHTTP(inPieces)
		if err != nil {
			t.Fatalf("net/http refuses what was let through in pieces of %d: %v\n%q", n, err, inPieces)
		}
		if len(requests) != len(again) {
			t.Fatalf("at once: %q, in pieces: %q", requests, again)
		}
		for i := range again {
			if requests[i] != again[i] {
				t.Fatalf("at once: %q, in pieces: %q", requests[i], again[i])
			}
		}
	})
}
