package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// marked are the test's rules with a marker in the content of a payment, which may be long.
func marked() string {
	file := changed("    native_key: {header: Idempotency-Key, format: uuid}", "    marker: {json: metadata.keep_id}")
	return strings.Replace(file, "max_body: 4KiB", "max_body: 10MiB", 1)
}

// By its marker an effect is found again: a request that goes out without it is one whose outcome
// nobody can ask for.
func TestTheMarkerIsInTheContentThatIsSent(t *testing.T) {
	t.Parallel()
	for name, pad := range map[string]int{"short": 0, "long": ledger.InlineBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := make(chan string, 1)
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				sent <- string(body)
				rw.WriteHeader(http.StatusCreated)
			})
			w.use(marked())
			asked := `{"to":"x","pad":"` + strings.Repeat("p", pad) + `"}`
			wantAnswer(t, w.open("a").post("/pay", asked), 201, "", false)
			m := w.mutation("a")
			if got := <-sent; m.Marker == "" || strings.Count(got, `"keep_id":"`+m.Marker+`"`) != 1 || !strings.Contains(got, asked[:len(asked)-1]) {
				t.Errorf("sent %d bytes, of %d that were asked for, with the marker %q", len(got), len(asked), m.Marker)
			}
		})
	}
}

// What the rule made of a long request is put aside for its sending alone.
func TestWhatWasMarkedIsGivenUpWhenItWasSent(t *testing.T) {
	t.Parallel()
	files := &openSpools{}
	w := newWorld(t, created, func(c *Config) { files.Store, c.Ledger.Store = c.Ledger.Store, files })
	w.use(marked())
	wantAnswer(t, w.open("a").post("/pay", `{"to":"x","pad":"`+strings.Repeat("p", ledger.InlineBody)+`"}`), 201, `{"id":1}`, false)
	if err := w.proxy.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := files.open.Load(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

// An upstream may answer at length before it has read all of a request. It gets the rest, and its
// answer is passed on, although the rule changed the content and the outcome is recorded: who sees
// a request break off may take back what it said.
func TestWhatWasMarkedGoesOnBesideAnAnswerOverTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 10 << 20
	began, whole := make(chan struct{}), make(chan bool, 1)
	var d disk
	files := &openSpools{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		c, both, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		got, _ := io.CopyN(io.Discard, both, earlyFirst)
		_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\ny", limit+1)
		<-began
		rest, _ := io.CopyN(io.Discard, both, r.ContentLength-got)
		whole <- got+rest == r.ContentLength
		_, _ = io.WriteString(c, strings.Repeat("y", limit))
	}, onDisk(t, &d), func(c *Config) { files.Store, c.Ledger.Store = c.Ledger.Store, files })
	w.use(marked())
	// No socket takes so much that nobody reads.
	asked := `{"to":"x","pad":"` + strings.Repeat("p", limit-1<<10) + `"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.upstream.URL+"/pay", strings.NewReader(asked))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.open("a").client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	close(began)
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err != nil || n != limit+1 {
		t.Errorf("%d bytes of the answer came, %v", n, err)
	}
	if !<-whole {
		t.Error("the request broke off although it counts as applied")
	}
	if m := w.mutation("a"); m.State != ledger.Applied {
		t.Errorf("it is %s", m.State)
	}
	if err := w.proxy.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if n := files.open.Load(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

// wantUnsent asserts that nothing was sent, and that the record says so, and that waiting mends nothing.
func wantUnsent(t *testing.T, w *world) {
	t.Helper()
	w.wantSends("/pay", 0)
	m := w.mutation("a")
	if d := m.Current(); m.State != ledger.Failed || d.Verdict != ledger.VerdictNotSent || d.Class != verdict.Logic || d.Ended.BootID == "" {
		t.Errorf("it is %s by %+v", m.State, d)
	}
}

// What can't be marked isn't sent, and its outcome is known.
func TestARequestThatTakesNoMarkerIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	w.use(marked())
	g := w.open("a").post("/pay", `{"to":"x","metadata":"taken"}`)
	if g.err != nil || g.status < 400 || !strings.Contains(g.body, "othing was sent") {
		t.Errorf("%d, %v: %s", g.status, g.err, g.body)
	}
	wantUnsent(t, w)
}

// sealed are credentials that can't be had.
type sealed struct{}

func (sealed) Always(string, string, string) (string, string, bool, error) {
	return "", "", false, errors.New("the vault is sealed")
}

// Without the operator's credentials it would be sent in another's name, or in nobody's.
func TestARequestWithoutItsCredentialsIsNotSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Credentials = sealed{} })
	wantProblem(t, w.open("a").post("/pay", payX), "internal", 500, "the vault is sealed")
	wantUnsent(t, w)
}
