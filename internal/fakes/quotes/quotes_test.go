package quotes_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/internal/fakes/apitest"
	"keep-proxy/internal/fakes/quotes"
	"keep-proxy/internal/fakes/script"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	var first, again, other quotes.Quote
	b.Do("GET", "/quote/ACME", "").Is(200, "").Into(&first)
	b.Do("GET", "/quote/ACME", "").Into(&again)
	b.Do("GET", "/quote/OTHR", "").Into(&other)
	if first != again || first.Price == other.Price || first.Symbol != "ACME" {
		t.Errorf("quotes %+v, %+v, %+v", first, again, other)
	}
	if r := b.Do("HEAD", "/quote/ACME", ""); r.Status != 200 || r.Body != "" || r.Header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %+v", r)
	}
	b.Do("GET", "/quote/acme", "").Is(404, "no symbol")
	b.Do("GET", "/", "").Is(404, "nothing")
}

func TestMutationsAreRefusedAndCounted(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	if r := b.Do("POST", "/quote/ACME", "{}").Is(405, "only be read"); r.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow: %q", r.Header.Get("Allow"))
	}
	if tally := b.Counted(); tally.Sends("POST /quote/ACME") != 1 || tally.Effects("POST /quote/ACME") != 0 {
		t.Errorf("counts %+v", tally.Identities())
	}
}

func TestStream(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	r := b.Do("GET", "/stream?symbol=ACME&count=3&every=1ms", "", "Last-Event-ID", "1").Is(200, "data: {")
	if r.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("content type %q", r.Header.Get("Content-Type"))
	}
	if strings.Count(r.Body, "event: quote\n") != 2 || !strings.Contains(r.Body, "id: 3\n") || strings.Contains(r.Body, "id: 1\n") {
		t.Errorf("events after the first of three:\n%s", r.Body)
	}
	for _, query := range []string{"", "symbol=x", "symbol=ACME&count=-1", "symbol=ACME&every=fast"} {
		b.Do("GET", "/stream?"+query, "").Is(400, "wrong")
	}
}

// An event must reach the reader while the next is still to come.
func TestStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.URL()+"/stream?symbol=ACME&count=0&every=1h", nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "event: quote\n" {
		t.Errorf("first line %q, %v", line, err)
	}
}

func TestBlob(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	for _, n := range []int{0, 1, 65536, 200001} {
		r := b.Do("GET", fmt.Sprintf("/blob?bytes=%d", n), "").Is(200, "")
		if r.Header.Get("Content-Length") != strconv.Itoa(n) || len(r.Body) != n {
			t.Errorf("%d bytes: length %q, got %d", n, r.Header.Get("Content-Length"), len(r.Body))
		}
	}
	b.Do("GET", "/blob?bytes=2000000000", "").Is(400, "1 GiB")
}

func TestFaultsWorkOnReads(t *testing.T) {
	t.Parallel()
	b := apitest.Start(t, quotes.New())
	for _, name := range []string{"commit-cut", "own-500", "close"} {
		f, err := script.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Match.Method = "GET"
		b.Arm(f)
	}
	if _, err := b.Try("GET", "/quote/ACME", ""); err == nil || !strings.Contains(err.Error(), io.ErrUnexpectedEOF.Error()) {
		t.Errorf("cut: %v", err)
	}
	b.Do("GET", "/quote/ACME", "").Is(500, "")
	if r, err := b.Try("GET", "/quote/ACME", "x"); err == nil {
		t.Errorf("closed, but got %d", r.Status)
	}
}
