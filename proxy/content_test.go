package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"keep-proxy/dispatch"
	"keep-proxy/ledger"
	"keep-proxy/rules"
)

// What lies elsewhere takes its room in memory while rules read it, and no longer. What is
// longer than all the room is there alone.
func TestLongBodiesTakeTheirRoomWhileTheyAreRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	long := func(size int64) *dispatch.Content {
		c, err := w.proxy.contents.Read(strings.NewReader(strings.Repeat("x", int(size))), size, dispatch.MustSpool)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	const some = 300 << 10
	stored := dispatch.Stored(some, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(strings.Repeat("x", some))), nil })
	for name, c := range map[string]struct {
		one, two *dispatch.Content
		room     int64
	}{
		"nothing":                     {nil, nil, 0},
		"what is in memory anyway":    {dispatch.InMemory(make([]byte, some)), nil, 0},
		"a long one":                  {long(some), nil, some},
		"one that the ledger has":     {stored, nil, some},
		"two":                         {long(some), long(some + 1), 2*some + 1},
		"a short one and a long one":  {dispatch.InMemory([]byte("x")), long(some), some},
		"one that is all of the room": {long(dispatch.HeldBytes), nil, dispatch.HeldBytes},
		"one that is more":            {long(dispatch.HeldBytes + 1), nil, dispatch.HeldBytes},
		"two that are more together":  {long(dispatch.HeldBytes), long(some), dispatch.HeldBytes},
		"one that may unpack to more": {packing(dispatch.InMemory([]byte("x"))), nil, dispatch.HeldBytes},
		"a long one that may":         {packing(long(some)), nil, dispatch.HeldBytes},
	} {
		t.Run(name, func(t *testing.T) {
			free := int64(dispatch.HeldBytes) - c.room
			if err := w.proxy.contents.Hold(c.one, c.two, func(one, two []byte) {
				if int64(len(one)) != c.one.Len() || int64(len(two)) != c.two.Len() {
					t.Errorf("%d and %d bytes are there", len(one), len(two))
				}
				if w.proxy.contents.Room.TryAcquire(free + 1) {
					t.Errorf("there is room for more than %d bytes", free)
					w.proxy.contents.Room.Release(free + 1)
				}
				if !w.proxy.contents.Room.TryAcquire(free) {
					t.Fatalf("there is no room for %d bytes", free)
				}
				w.proxy.contents.Room.Release(free)
			}); err != nil {
				t.Fatal(err)
			}
			if !w.proxy.contents.Room.TryAcquire(dispatch.HeldBytes) {
				t.Fatal("something is still held")
			}
			w.proxy.contents.Room.Release(dispatch.HeldBytes)
		})
	}
}

// What a small content unpacks to is in memory while rules read it, and no longer: not while its
// client, or the upstream, is waited for.
func TestPackedContentIsHeldWhileItIsReadOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		coding string
		apart  bool
	}{
		"none": {"", false}, "none by name": {"Identity", false}, "one that adds to it": {"aws-chunked", false},
		"gzip": {"gzip", true}, "deflate": {" Deflate", true}, "one that isn't known": {"br", true}, "two": {"gzip, aws-chunked", true},
	} {
		w := newWorld(t, created)
		for _, length := range []int64{2, -1} {
			r := httptest.NewRequest(http.MethodPost, "/pay", strings.NewReader("{}"))
			if r.ContentLength = length; c.coding != "" {
				r.Header.Set("Content-Encoding", c.coding)
			}
			body, err := w.proxy.readBody(&exchange{}, r, 1<<10)
			if err != nil {
				t.Fatal(err)
			}
			if _, plain := body.Plain(); plain == c.apart {
				t.Errorf("%s, length %d: held apart: %t", name, length, !plain)
			}
		}
	}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		if string(content) != string(packed("gzip", payX)) {
			t.Errorf("sent is %q", content)
		}
		created(rw, r)
	})
	r := w.open("a")
	wantAnswer(t, r.post("/pay", string(packed("gzip", payX)), "Content-Encoding", "gzip"), 201, `{"id":1}`, false)
	w.endRun(r)
	wantAnswer(t, w.open("a").post("/pay", payX), 201, `{"id":1}`, true)
}

// unheld are credentials, and accounts, for which there may be something to wait for.
type unheld struct {
	t     *testing.T
	w     *world
	asked atomic.Int64
}

func (u *unheld) look() {
	u.asked.Add(1)
	if !u.w.proxy.contents.Room.TryAcquire(dispatch.HeldBytes) {
		u.t.Error("content is held meanwhile")
		return
	}
	u.w.proxy.contents.Room.Release(dispatch.HeldBytes)
}

func (u *unheld) Always(string, string, string) (name, value string, ok bool, err error) {
	u.look()
	return "Authorization", "Bearer 1", true, nil
}

// A program may be asked for a credential, and the API for an account: for as long, nobody else could
// read content, or judge what was sent.
func TestNoContentIsHeldWhileSomethingElseIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, now, path string
		asked             int64
	}{
		"for the account that a stored version asks for": {askingRules(), testRules, "/pay", 4},
		"for the credential of a step":                   {"", strings.Replace(steppedRules, "rate: {requests: 1, per: 1h}\n", "", 1), "/mail", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &unheld{t: t}
			u.w = newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(rw, `{"id":"1"}`)
			}, func(cfg *Config) {
				cfg.Credentials = u
				cfg.Accounts = func(context.Context, *rules.Connector, *rules.Request) (string, error) {
					u.look()
					return "ann", nil
				}
			})
			for _, rule := range []string{c.before, c.now} {
				if rule == "" {
					continue
				}
				u.w.use(rule)
				answer := u.w.open("a", func(o *ledger.OpenRun) { o.Takeover = true }).post(c.path, string(packed("gzip", payX)), "Content-Encoding", "gzip")
				wantAnswer(t, answer, http.StatusCreated, `{"id":"1"}`, rule == c.now && c.before != "")
			}
			if got := u.asked.Load(); got != c.asked {
				t.Errorf("it was looked at %d times, want %d", got, c.asked)
			}
		})
	}
}

// fewSpools is a store whose disk is full once so many were begun.
type fewSpools struct {
	ledger.Store
	left *atomic.Int32
}

func (s fewSpools) Spool() (ledger.Spool, error) {
	if s.left.Add(-1) < 0 {
		return nil, ledger.ErrLowSpace
	}
	return s.Store.Spool()
}

// What is kept of a request with secrets is another body than what is sent, and finds its
// own place before anything is sent.
func TestDiskThatFillsBeforeTheMaskedBodyIsPutAside(t *testing.T) {
	t.Parallel()
	for spools, want := range map[int32]int{1: http.StatusServiceUnavailable, 2: http.StatusCreated} {
		var left atomic.Int32
		left.Store(spools)
		w := newWorld(t, created, func(c *Config) { c.Ledger.Store = fewSpools{c.Ledger.Store, &left} })
		g := w.open("a").post("/hooks/t", strings.Replace(longJSON("x"), "{", `{"password":"p",`, 1))
		if g.status != want {
			t.Errorf("with room for %d: %d %s", spools, g.status, g.body)
		}
		if want == http.StatusCreated {
			w.wantSends("/hooks/t", 1)
			continue
		}
		// A ledger that is given it all the same refuses the record, in other words.
		wantProblem(t, g, "ledger-unavailable", 503, "nearly full, so no new mutation is taken and nothing was sent")
		w.wantSends("/hooks/t", 0)
	}
}

// Neither what came with its secrets nor what was masked for a record that wasn't made is left.
func TestAMaskedBodyLeavesNothingElseBehind(t *testing.T) {
	t.Parallel()
	var d disk
	w := newWorld(t, created, onDisk(t, &d))
	r, body := w.open("a"), strings.Replace(longJSON("x"), "{", `{"password":"xyzzy",`, 1)
	wantAnswer(t, r.post("/hooks/t", body), 201, `{"id":1}`, false)
	wantProblem(t, r.post("/hooks/t", body), "repeated", 422, "second intent")
	d.holds(t, 1)
	kept, err := os.ReadFile(filepath.Join(d.dir, "bodies", w.mutation("a").Request.Body.SHA256))
	if err != nil || strings.Contains(string(kept), "xyzzy") || len(kept) < ledger.InlineBody {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
	w.wantSends("/hooks/t", 1)
}

// packing is content with a coding.
func packing(c *dispatch.Content) *dispatch.Content {
	c.Packed = true
	return c
}
