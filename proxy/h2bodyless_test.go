package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"keep-proxy/ledger"
)

// An answer that never has content may say how long it would be (RFC 9110 §8.6, RFC 9113 §8.1.1): it
// is whole all the same, whatever the upstream and the client speak.
func TestAnAnswerWithoutContentIsWholeWhateverLengthItSays(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
		for _, length := range []string{"11", "70000"} {
			head := [][2]string{{":status", strconv.Itoa(status)}, {"content-length", length}}
			for upstream, start := range map[string]func(*testing.T) *world{
				"HTTP/1.1":                    func(t *testing.T) *world { t.Helper(); return newCanned(t, status, length) },
				"HTTP/2":                      func(t *testing.T) *world { t.Helper(); return newFramed(t, head, "") },
				"HTTP/2, ended with its head": func(t *testing.T) *world { t.Helper(); return newFramedHead(t, head) },
			} {
				for _, h2 := range []bool{false, true} {
					t.Run(fmt.Sprintf("%d, length %s, from %s, client of HTTP/2 %t", status, length, upstream, h2), func(t *testing.T) {
						t.Parallel()
						w := start(t)
						r := w.open("a")
						r.client = w.newClient(r.user(), h2)
						wantAnswer(t, r.get("/read"), status, "", false)
						if status != http.StatusNoContent {
							return // It isn't a success.
						}
						wantAnswer(t, r.post("/pay", `{"to":"x"}`), status, "", false)
						if m := w.mutation("a"); m.State != ledger.Applied || m.Result == nil {
							t.Errorf("it is %s, with the answer %+v: %s", m.State, m.Result, m.Current().Reason)
						}
						again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
						again.client = w.newClient(again.user(), h2)
						wantAnswer(t, again.post("/pay", `{"to":"x"}`), status, "", true)
					})
				}
			}
		}
	}
}

// newCanned is a world whose upstream answers each request over HTTP/1.1 with this status, this
// length, and nothing else.
func newCanned(t *testing.T, status int, length string) *world {
	t.Helper()
	return newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = fmt.Fprintf(c, "HTTP/1.1 %d Status\r\nContent-Length: %s\r\n\r\n", status, length)
	})
}
