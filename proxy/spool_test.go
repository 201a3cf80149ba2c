package proxy

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/dispatch"
	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// disk is a ledger on disk, to see what lies in its folders.
type disk struct {
	dir   string
	store *badgerstore.Store
}

// onDisk puts the world's ledger into a folder.
func onDisk(t *testing.T, d *disk) func(*Config) {
	t.Helper()
	return func(c *Config) {
		var ids atomic.Int64
		d.dir = filepath.Join(t.TempDir(), "ledger")
		now := func() ledger.Stamp { return ledger.Stamp(clock.Take(clock.System())) }
		d.store = badgerstore.OpenForTest(t, badgerstore.Config{
			Dir: d.dir, NewID: func() string { return fmt.Sprint("ledger", ids.Add(1)) }, Now: now,
		})
		c.Ledger.Store, c.Ledger.Standings = d.store, ledger.New(d.store, ledger.Config{Now: now}).Standings
	}
}

// holds waits until bodies/ holds so many files and spool/ none.
func (d *disk) holds(t *testing.T, bodies int) {
	t.Helper()
	var found [2]int
	for deadline := time.Now().Add(waitLimit); time.Now().Before(deadline); runtime.Gosched() {
		for i, folder := range []string{"bodies", "spool"} {
			entries, err := os.ReadDir(filepath.Join(d.dir, folder))
			if err != nil {
				t.Fatal(err)
			}
			found[i] = len(entries)
		}
		if found == [2]int{bodies, 0} {
			return
		}
	}
	t.Fatalf("bodies/ holds %d files and spool/ %d, want %d and none", found[0], found[1], bodies)
}

// longJSON is a body with this identity that is kept in a file.
func longJSON(to string) string {
	return `{"to":"` + to + `","text":"` + strings.Repeat("x", 300<<10) + `"}`
}

// digests answers with the digest of what came, and then with something long.
func digests(rw http.ResponseWriter, r *http.Request) {
	hash := sha256.New()
	_, _ = io.Copy(hash, r.Body)
	rw.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(rw, echoOf(hash.Sum(nil)))
}

func echoOf(sum []byte) string {
	return `{"got":"` + hex.EncodeToString(sum) + `","ok":true,"text":"` + strings.Repeat("y", 200<<10) + `"}`
}

func echoed(body string) string {
	sum := sha256.Sum256([]byte(body))
	return echoOf(sum[:])
}

func TestLongBodiesPassThroughFiles(t *testing.T) {
	t.Parallel()
	var d disk
	w := newWorld(t, digests, onDisk(t, &d))
	for _, path := range []string{"/again", "/shape"} {
		item := strings.TrimPrefix(path, "/")
		body := longJSON(item)
		r := w.open(item)
		wantAnswer(t, r.post(path, body), 201, echoed(body), false)
		again := w.open(item, func(o *ledger.OpenRun) { o.Takeover = true })
		wantAnswer(t, again.post(path, body), 201, echoed(body), true)
		w.wantSends(path, 1)
	}
	d.holds(t, 4)
}

// An answer that is put aside for one caller is there for those who wait for it too.
func TestLongAnswerIsShared(t *testing.T) {
	t.Parallel()
	var d disk
	release := make(chan struct{})
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { <-release; digests(rw, r) }, onDisk(t, &d))
	body := longJSON("x")
	r := w.open("a")
	answers := make(chan got, 4)
	for range cap(answers) {
		go func() { answers <- r.post("/again", body) }()
	}
	w.waitForCallers(cap(answers))
	close(release)
	for range cap(answers) {
		if g := <-answers; g.err != nil || g.status != 201 || g.body != echoed(body) {
			t.Errorf("got %d with %d bytes, %v", g.status, len(g.body), g.err)
		}
	}
	w.wantSends("/again", 1)
	d.holds(t, 2)
}

func TestWhatIsNotStoredLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, path, body string
		handler          http.HandlerFunc
		want             int
		bodies           int
	}{
		{"a body over the limit", "/pay", longJSON("x"), created, http.StatusRequestEntityTooLarge, 0},
		{"a body that can't be read", "/again", longJSON(`x","to":"y`), created, http.StatusUnprocessableEntity, 0},
		{"a long failure", "/again", `{"to":"x"}`, func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(rw, strings.Repeat("no ", 100<<10))
		}, http.StatusBadRequest, 0},
		{"a long answer that is cut", "/again", longJSON("x"), func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "400000")
			_, _ = io.WriteString(rw, strings.Repeat("y", 200<<10))
		}, http.StatusFailedDependency, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var d disk
			w := newWorld(t, c.handler, onDisk(t, &d))
			r := w.open("a")
			if g := r.post(c.path, c.body); g.err != nil || g.status != c.want {
				t.Errorf("got %d, %v; want %d", g.status, g.err, c.want)
			}
			d.holds(t, c.bodies)
		})
	}
}

func TestHalfABodyLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var d disk
	w := newWorld(t, created, onDisk(t, &d))
	r := w.open("a")
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	plain := strings.Replace(w.upstream.URL, "https://", "http://", 1)
	_, err = fmt.Fprintf(conn, "POST %s/again HTTP/1.1\r\nHost: %s\r\nProxy-Authorization: Basic %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n%s", plain, strings.TrimPrefix(plain, "http://"),
		base64.StdEncoding.EncodeToString([]byte("run:"+r.token)), longJSON("x"))
	if err != nil {
		t.Fatal(err)
	}
	// Something is there, and then the client is gone.
	for deadline := time.Now().Add(waitLimit); ; runtime.Gosched() {
		if entries, _ := os.ReadDir(filepath.Join(d.dir, "spool")); len(entries) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was spooled")
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	d.holds(t, 0)
	w.wantSends("/again", 0)
}

// lowSpool is a store whose disk is full for what is put aside.
type lowSpool struct {
	ledger.Store
	// after is how many bytes it still takes; below 0 it doesn't begin.
	after int
}

func (s lowSpool) Spool() (ledger.Spool, error) {
	if s.after < 0 {
		return nil, ledger.ErrLowSpace
	}
	f, err := s.Store.Spool()
	return &lowSpoolFile{f, s.after}, err
}

type lowSpoolFile struct {
	ledger.Spool
	left int
}

func (f *lowSpoolFile) Write(p []byte) (int, error) {
	n, err := f.Spool.Write(p[:min(len(p), f.left)])
	if f.left -= n; err == nil && n < len(p) {
		err = ledger.ErrLowSpace
	}
	return n, err
}

func TestDiskThatFillsWhileABodyIsPutAside(t *testing.T) {
	t.Parallel()
	for _, after := range []int{-1, 0, 1, 40_000, 100_000, 200_000} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			files := &openSpools{}
			w := newWorld(t, digests, func(c *Config) {
				files.Store = lowSpool{c.Ledger.Store, after}
				c.Ledger.Store = files
			})
			r := w.open("a")
			wantProblem(t, r.post("/again", longJSON("long")), "ledger-unavailable", 503, "nearly full, so no new mutation is taken and nothing was sent")
			w.wantSends("/again", 0)
			// The answer is as long, but it can't be had again.
			short := `{"to":"short"}`
			wantAnswer(t, r.post("/again", short), 201, echoed(short), false)
			w.wantSends("/again", 1)
			for deadline := time.Now().Add(waitLimit); files.open.Load() > 0; runtime.Gosched() {
				if time.Now().After(deadline) {
					t.Fatalf("%d files stay open", files.open.Load())
				}
			}
		})
	}
}

func TestDamagedAnswerIsNotReplayed(t *testing.T) {
	t.Parallel()
	var d disk
	w := newWorld(t, digests, onDisk(t, &d))
	r := w.open("a")
	wantAnswer(t, r.post("/again", `{"to":"x"}`), 201, echoed(`{"to":"x"}`), false)
	m := w.mutation("a")
	path := filepath.Join(d.dir, "bodies", m.Result.Body.SHA256)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), whole...)
	bad[len(bad)-3] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	again := w.open("a", func(o *ledger.OpenRun) { o.Takeover = true })
	wantProblem(t, again.post("/again", `{"to":"x"}`), "ledger-unavailable", 503, "damaged")
	w.wantSends("/again", 1)
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Many that are in the hands of a slow upstream at once hold no memory, and those that
// rules read wait for each other.
func TestManyLongBodiesAtOnce(t *testing.T) {
	t.Parallel()
	const callers = 24
	var d disk
	var there sync.WaitGroup
	there.Add(callers)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		there.Done()
		there.Wait()
		digests(rw, r)
	}, onDisk(t, &d))
	r := w.open("a")
	answers := make(chan error, callers)
	for n := range callers {
		body := strings.Replace(longJSON(fmt.Sprint(n)), "x", strings.Repeat("z", 700<<10), 1)
		go func() {
			g := r.post("/shape", body)
			if g.err == nil && (g.status != 201 || g.body != echoed(body)) {
				g.err = errors.New(g.body[:min(len(g.body), 300)])
			}
			answers <- g.err
		}()
	}
	for range callers {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if !w.proxy.contents.Room.TryAcquire(dispatch.HeldBytes) {
		t.Error("something is still held")
	}
}

func TestChunkedLongBody(t *testing.T) {
	t.Parallel()
	var d disk
	w := newWorld(t, digests, onDisk(t, &d))
	r := w.open("a")
	body := longJSON("x")
	read, write := io.Pipe()
	go func() {
		buffered := bufio.NewWriterSize(write, 1000)
		_, err := io.WriteString(buffered, body)
		write.CloseWithError(errors.Join(err, buffered.Flush()))
	}()
	req, err := http.NewRequest(http.MethodPost, w.upstream.URL+"/again", read)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || string(answer) != echoed(body) {
		t.Errorf("%d with %d bytes, %v", resp.StatusCode, len(answer), err)
	}
}

// Content that ends before the length that was announced isn't whole, whatever its reader says.
func TestContentThatIsShorterThanAnnouncedIsNotWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created)
	for _, length := range []int64{10, ledger.InlineBody + 1} {
		x := &exchange{}
		r, err := http.NewRequest(http.MethodPost, w.upstream.URL, io.NopCloser(strings.NewReader("short")))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		if c, err := w.proxy.readBody(x, r, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) || c != nil {
			t.Errorf("of %d: %d bytes, %v", length, c.Len(), err)
		}
		x.done(false)
	}
}
