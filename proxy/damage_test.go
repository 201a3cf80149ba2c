package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// unreadSpools is a store that puts aside and doesn't read back; after is how much of each is
// put aside.
type unreadSpools struct {
	ledger.Store
	after int
}

func (s unreadSpools) Spool() (ledger.Spool, error) {
	f, err := s.Store.Spool()
	return unreadSpool{&lowSpoolFile{f, s.after}}, err
}

type unreadSpool struct{ ledger.Spool }

func (unreadSpool) ReadAt([]byte, int64) (int, error) { return 0, errUnread }

// What was put aside of a request must be read again before it is sent, and for some rules
// before it is known what it is.
func TestARequestThatCantBeReadAgainIsNotSent(t *testing.T) {
	t.Parallel()
	for path, file := range map[string]string{"/again": testRules, "/call": strings.Replace(conditionalRules, "4KiB", "1MiB", 1)} {
		w := newWorld(t, created, func(c *Config) { c.Ledger.Store = unreadSpools{c.Ledger.Store, 1 << 30} })
		w.use(file)
		g := w.open("a").post(path, strings.Replace(longJSON("x"), "{", `{"call":"pay",`, 1))
		wantProblem(t, g, "ledger-unavailable", 503, errUnread.Error())
		w.wantSends(path, 0)
		w.noRecords("a")
	}
}

// fadingSpools is a store that doesn't read back what it put aside once it faded, and tells.
type fadingSpools struct {
	ledger.Store
	faded atomic.Bool
	tried chan struct{}
	once  sync.Once
}

func (s *fadingSpools) Spool() (ledger.Spool, error) {
	f, err := s.Store.Spool()
	return fadingSpool{f, s}, err
}

type fadingSpool struct {
	ledger.Spool
	store *fadingSpools
}

func (f fadingSpool) ReadAt(b []byte, at int64) (int, error) {
	if f.store.faded.Load() {
		f.store.once.Do(func() { close(f.store.tried) })
		return 0, errUnread
	}
	return f.Spool.ReadAt(b, at)
}

// Where the rule can't be asked, as the request can't be read again, no head of an answer says
// success ahead of its content.
func TestAHeadThatCantBeJudgedIsNoSuccess(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusCreated, http.StatusInternalServerError} {
		s := &fadingSpools{tried: make(chan struct{})}
		w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			s.faded.Store(true)
			rw.WriteHeader(status)
			rw.(http.Flusher).Flush()
			select {
			case <-s.tried:
			case <-time.After(waitLimit):
				t.Error("nobody asked the rule of the answer's head")
			}
		}, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
		wantProblem(t, w.open("a").post("/again", longJSON("x")), "unknown-outcome", 424, "can't be read again")
		if m := w.mutation("a"); m.State != ledger.Indeterminate || m.Committed {
			t.Errorf("after %d the record is %s, committed %t", status, m.State, m.Committed)
		}
		w.wantSends("/again", 1)
	}
}

// An answer of which the end is in memory and the beginning on a disk that fills, and doesn't
// give it back, is lost: its end alone is nobody's answer.
func TestAnAnswerThatCantBeReadBackIsLost(t *testing.T) {
	t.Parallel()
	for _, after := range []int{1, 100_000} {
		w := newWorld(t, digests, func(c *Config) { c.Ledger.Store = unreadSpools{c.Ledger.Store, after} })
		r := w.open("a")
		wantProblem(t, r.post("/again", payX), "no-result", 424, "the answer was lost")
		if m := w.mutation("a"); m.State != ledger.Applied || !m.Committed || m.ResultState != ledger.ResultUnknown || !m.Current().BodyComplete {
			t.Errorf("record is %s, committed %t, result %s, %+v", m.State, m.Committed, m.ResultState, m.Current())
		}
		wantProblem(t, w.open("a", takesOver).post("/again", payX), "no-result", 424, "happened")
		w.wantSends("/again", 1)
	}
}

// A secret is taken out of an answer before that is kept. One that can't be read for it isn't kept,
// and given to nobody: that it happened is known all the same.
func TestASecretAnswerThatCantBeReadBackIsLost(t *testing.T) {
	t.Parallel()
	s := &fadingSpools{tried: make(chan struct{})}
	s.faded.Store(true)
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"key":"xyzzy","pad":"`+strings.Repeat("p", 2*ledger.InlineBody)+`"}`)
	}, func(c *Config) { s.Store, c.Ledger.Store = c.Ledger.Store, s })
	wantProblem(t, w.open("a").post("/hooks/t", payX), "no-result", 424, "the answer was lost")
	if m := w.mutation("a"); m.State != ledger.Applied || !m.Committed || m.ResultState != ledger.ResultUnknown || !m.Current().BodyComplete {
		t.Errorf("record is %s, committed %t, result %s, %+v", m.State, m.Committed, m.ResultState, m.Current())
	}
	w.wantSends("/hooks/t", 1)
}

// longer is a store whose bodies are longer than it says.
type longer struct {
	ledger.Store
	whole bool
}

// wholeReader has all that it reads at hand.
type wholeReader struct {
	io.ReadCloser
	content []byte
}

func (w wholeReader) Whole() []byte { return w.content }

func (s longer) Body(ctx context.Context, b ledger.Body) (io.ReadCloser, error) {
	r, err := s.Store.Body(ctx, b)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(r)
	content = append(content, "and more"...)
	more := io.NopCloser(bytes.NewReader(content))
	if s.whole {
		return wholeReader{more, content}, errors.Join(err, r.Close())
	}
	return more, errors.Join(err, r.Close())
}

// What is longer than its record says, or was dropped, is no answer.
func TestAStoredAnswerThatIsNotItsRecordsIsNotReplayed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		store func(ledger.Store) ledger.Store
		drop  bool
		check func(*testing.T, got)
	}{
		"longer": {store: func(s ledger.Store) ledger.Store { return longer{s, false} }, check: func(t *testing.T, g got) {
			t.Helper()
			wantProblem(t, g, "ledger-unavailable", 503, "longer than its record says")
		}},
		"longer, and at hand": {store: func(s ledger.Store) ledger.Store { return longer{s, true} }, check: func(t *testing.T, g got) {
			t.Helper()
			wantProblem(t, g, "ledger-unavailable", 503, "longer than its record says")
		}},
		"dropped": {store: func(s ledger.Store) ledger.Store { return s }, drop: true, check: func(t *testing.T, g got) {
			t.Helper()
			wantProblem(t, g, "no-result", 424, "the stored answer is gone")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, created, func(conf *Config) { conf.Ledger.Store = c.store(conf.Ledger.Store) })
			wantAnswer(t, w.open("a").post("/pay", payX), 201, `{"id":1}`, false)
			w.change("a", func(m *ledger.Mutation) { m.Result.Body.Dropped = c.drop })
			c.check(t, w.open("a", takesOver).post("/pay", payX))
			w.wantSends("/pay", 1)
		})
	}
}

// A long answer is kept for as long as the ledger can't be told of it: it is what replays give
// when it could be recorded at last.
func TestALongAnswerIsThereWhenItIsRecordedAtLast(t *testing.T) {
	t.Parallel()
	var d disk
	s, files := &troubled{}, &openSpools{}
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		s.updates.Store(true)
		digests(rw, r)
	}, onDisk(t, &d), func(c *Config) {
		files.Store, s.Store, c.Ledger.Store = c.Ledger.Store, files, s
	})
	wantProblem(t, w.open("a").post("/again", payX), "unknown-outcome", 424, "could not be recorded")
	s.updates.Store(false)
	w.waitState("a", ledger.Applied)
	w.waitRecorded()
	wantAnswer(t, w.open("a", takesOver).post("/again", payX), 201, echoed(payX), true)
	w.wantSends("/again", 1)
	d.holds(t, 1)
	if n := files.open.Load(); n != 0 {
		t.Errorf("%d files are open", n)
	}
}

// openSpools is a store that counts what is put aside and not given up yet.
type openSpools struct {
	ledger.Store
	open atomic.Int32
}

func (s *openSpools) Spool() (ledger.Spool, error) {
	f, err := s.Store.Spool()
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return openSpool{f, s}, nil
}

type openSpool struct {
	ledger.Spool
	store *openSpools
}

func (f openSpool) Close() error {
	f.store.open.Add(-1)
	return f.Spool.Close()
}

// failingUpdates is a store that fails one command, after so many more; below 0 none.
type failingUpdates struct {
	ledger.Store
	left atomic.Int32
}

func (s *failingUpdates) Update(ctx context.Context, fn func(ledger.Tx) error) error {
	if s.left.Load() >= 0 && s.left.Add(-1) < 0 {
		return errTrouble
	}
	return s.Store.Update(ctx, fn)
}

// Who waited for another run's work has its answer only once the ledger knows what it means
// for the own run.
func TestAJoinerThatTheLedgerCantBeToldOfIsRefused(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]int32{"that it asked": 0, "that its run failed": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrived, release := make(chan struct{}), make(chan struct{})
			s := &failingUpdates{}
			s.left.Store(-1)
			var claims atomic.Int32
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				close(arrived)
				<-release
				rw.WriteHeader(http.StatusBadRequest)
			}, func(c *Config) {
				s.Store, c.Ledger.Store = c.Ledger.Store, s
				newID := c.NewID
				c.NewID = func() string {
					// The second one is the joiner's, whose first command comes next.
					if claims.Add(1) == 2 {
						s.left.Store(after)
					}
					return newID()
				}
			})
			leads := w.open("a").posting("/pay", payX)
			<-arrived
			joiner := w.open("a", takesOver)
			joins := joiner.posting("/pay", payX)
			w.waitForCallers(2)
			close(release)
			wantAnswer(t, <-leads, 400, "", false)
			wantProblem(t, <-joins, "ledger-unavailable", 503, errTrouble.Error())
			w.wantSends("/pay", 1)
		})
	}
}
