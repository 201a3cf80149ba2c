// Package quotes is an API that can only be read.
//
//	GET /quote/{symbol}
//	    → 200 {"symbol", "price", "currency", "at"}, Cache-Control: no-store.
//	    Else 404 {"error": ...} for a symbol that isn't one to eight capital letters.
//	    The price depends on the symbol alone.
//	GET /stream?symbol=&count=&every=
//	    → 200 text/event-stream: count (default 5, 0 for no end) events "quote".
//	    Their ids are from 1, with the quote as data, one each every (default 100ms).
//	    Last-Event-ID goes on after that id.
//	GET /blob?bytes=N
//	    → 200 application/octet-stream, N (at most 1 GiB) bytes
//
// Everything else is 404, and other methods than GET and HEAD are 405. A mutation that reaches this API is a mistake.
// The log shows it under the identity "METHOD PATH".
package quotes

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"keep-proxy/internal/fakes/oracle"
	"keep-proxy/internal/fakes/server"
)

// Quotes is the fake. It has no state.
type Quotes struct{}

// New returns the API.
func New() *Quotes { return &Quotes{} }

// Quote is a price.
type Quote struct {
	Symbol   string `json:"symbol"`
	Price    string `json:"price"`
	Currency string `json:"currency"`
	At       string `json:"at"`
}

// Name returns "quotes".
func (*Quotes) Name() string { return "quotes" }

// Identity names what should never come: a request that is no read.
func (*Quotes) Identity(r *server.Request) string {
	if isRead(r.Method) {
		return ""
	}
	return r.Method + " " + r.Path
}

func isRead(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// Restore has nothing to restore.
func (*Quotes) Restore([]oracle.Event) error { return nil }

// Serve answers a request.
func (q *Quotes) Serve(_ context.Context, c *server.Call) (*server.Answer, error) {
	if !isRead(c.Method) {
		a := problem(http.StatusMethodNotAllowed, "quotes can only be read")
		a.Header.Set("Allow", "GET, HEAD")
		return a, nil
	}
	if c.NoEffect {
		return c.Own, nil
	}
	symbol, isQuote := strings.CutPrefix(c.Path, "/quote/")
	switch {
	case isQuote:
		return quote(symbol, c.Now()), nil
	case c.Path == "/stream":
		return stream(c), nil
	case c.Path == "/blob":
		return blob(c), nil
	}
	return problem(http.StatusNotFound, "there is nothing at "+c.Path), nil
}

func problem(status int, message string) *server.Answer {
	return server.JSON(status, map[string]string{"error": message})
}

var symbolForm = regexp.MustCompile(`^[A-Z]{1,8}$`)

func price(symbol string, at time.Time) Quote {
	h := fnv.New32a()
	_, _ = h.Write([]byte(symbol)) // a hash takes everything
	cents := 100 + h.Sum32()%99900
	return Quote{
		Symbol: symbol, Price: fmt.Sprintf("%d.%02d", cents/100, cents%100), Currency: "EUR",
		At: at.UTC().Format(time.RFC3339Nano),
	}
}

func quote(symbol string, at time.Time) *server.Answer {
	if !symbolForm.MatchString(symbol) {
		return problem(http.StatusNotFound, "no symbol "+strconv.Quote(symbol))
	}
	return server.JSON(http.StatusOK, price(symbol, at), "Cache-Control", "no-store")
}

// stream gives events one by one. The wait between them is real time.
func stream(c *server.Call) *server.Answer {
	symbol := c.Query.Get("symbol")
	count, err1 := number(c.Query.Get("count"), 5)
	last, err2 := number(c.Header.Get("Last-Event-ID"), 0)
	every, err3 := interval(c.Query.Get("every"))
	if !symbolForm.MatchString(symbol) || err1 != nil || err2 != nil || err3 != nil {
		return problem(http.StatusBadRequest, "symbol, count, every or Last-Event-ID is wrong")
	}
	return &server.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-store"}},
		Stream: func(ctx context.Context, send func([]byte) error) error {
			for n := last + 1; count == 0 || n <= count; n++ {
				if err := send(event(n, price(symbol, c.Now()))); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(every):
				}
			}
			return nil
		},
	}
}

func event(n int, q Quote) []byte {
	data, err := json.Marshal(q)
	if err != nil {
		return nil // a Quote is strings
	}
	return fmt.Appendf(nil, "event: quote\nid: %d\ndata: %s\n\n", n, data)
}

func number(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err
}

func interval(text string) (time.Duration, error) {
	if text == "" {
		return 100 * time.Millisecond, nil
	}
	return time.ParseDuration(text)
}

// maxBlob bounds GET /blob.
const maxBlob = 1 << 30

func blob(c *server.Call) *server.Answer {
	n, err := number(c.Query.Get("bytes"), 0)
	if err != nil || n > maxBlob {
		return problem(http.StatusBadRequest, "bytes must be at most 1 GiB")
	}
	return &server.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/octet-stream"}, "Content-Length": {strconv.Itoa(n)}},
		Stream: func(_ context.Context, send func([]byte) error) error {
			block := bytes.Repeat([]byte("q"), 64<<10)
			for left := n; left > 0; left -= len(block) {
				if err := send(block[:min(left, len(block))]); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
