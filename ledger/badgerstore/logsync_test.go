package badgerstore

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// disk is what a loss of power leaves of the engine's logs: their content when each
// was synced last, under the names that the folder had when it was.
type disk struct {
	logs  map[string][]byte
	names map[string]bool
	// flushed says that a log was gone when its sync was told: all of it lies in a table.
	flushed bool
}

func (d *disk) synced(path string) error {
	st, err := os.Stat(path)
	if err == nil && !st.IsDir() {
		var content []byte
		if content, err = os.ReadFile(path); err == nil && (len(content) == 0 || int64(len(content)) < st.Size()) {
			err = fs.ErrNotExist // It was cut, as a log is before it goes.
		}
		if err == nil {
			d.logs[filepath.Base(path)] = content
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.flushed = true
		return nil
	}
	if err != nil || !st.IsDir() {
		return err
	}
	logs, err := filepath.Glob(filepath.Join(path, "*"+logSuffix))
	for _, log := range logs {
		d.names[filepath.Base(log)] = true
	}
	return err
}

// leave makes a folder of what is left of dir: the manifest, the tables that it names,
// and logs. The manifest is taken first, so that a table which is made meanwhile
// counts as lost, too: its log is there, also if it was removed since.
func (d *disk) leave(t *testing.T, dir string) string {
	t.Helper()
	left := t.TempDir()
	from, to := filepath.Join(dir, "data"), filepath.Join(left, "data")
	manifest, err := os.ReadFile(filepath.Join(from, "MANIFEST"))
	err = errors.Join(err, os.Mkdir(to, 0o700), os.WriteFile(filepath.Join(to, "MANIFEST"), manifest, 0o600))
	for _, name := range []string{"ledger.id", "highwater"} {
		content, errRead := os.ReadFile(filepath.Join(dir, name))
		err = errors.Join(err, errRead, os.WriteFile(filepath.Join(left, name), content, 0o600))
	}
	for _, pattern := range []string{"*.sst", "*.vlog", "KEYREGISTRY", "DISCARD"} {
		paths, errGlob := filepath.Glob(filepath.Join(from, pattern))
		err = errors.Join(err, errGlob)
		for _, path := range paths {
			content, errRead := os.ReadFile(path)
			err = errors.Join(err, errRead, os.WriteFile(filepath.Join(to, filepath.Base(path)), content, 0o600))
		}
	}
	for name := range d.names {
		err = errors.Join(err, writeSparse(filepath.Join(to, name), d.logs[name]))
	}
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// writeSparse leaves the zeros at the end of content, which are most of a log, to the file system.
func writeSparse(path string, content []byte) error {
	return errors.Join(os.WriteFile(path, bytes.TrimRight(content, "\x00"), 0o600), os.Truncate(path, int64(len(content))))
}

// TestAcknowledgedSurvivesALossOfPower takes away from a ledger's logs all that the
// store didn't sync, also across the change from one log to the next.
func TestAcknowledgedSurvivesALossOfPower(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	d := disk{logs: map[string][]byte{}, names: map[string]bool{}}
	c := testConfig(t.TempDir())
	var mu sync.Mutex // Two goroutines sync.
	c.synced = func(path string) error {
		mu.Lock()
		defer mu.Unlock()
		return d.synced(path)
	}
	s := mustOpen(t, c)
	keys := fill(t, s, 0, 14, 1000<<10)
	mu.Lock()
	defer mu.Unlock()
	if len(d.logs) < 2 {
		t.Fatalf("the log never changed: %d logs", len(d.logs))
	}
	if err := refusesOrKeeps(t, testConfig(d.leave(t, c.Dir)), keys); err != nil {
		t.Errorf("what was acknowledged is gone: %v", err)
	}
}

// held is a store whose next sync of the log waits for the test.
type held struct {
	*Store
	begun, end chan struct{}
	err        error
}

func hold(t *testing.T) *held {
	t.Helper()
	h := &held{begun: make(chan struct{}), end: make(chan struct{})}
	c := testConfig(t.TempDir())
	armed := make(chan struct{})
	c.synced = func(string) error {
		select {
		case <-armed:
		default:
			return nil
		}
		select {
		case h.begun <- struct{}{}:
			<-h.end
			return h.err
		case <-h.end:
			return h.err
		}
	}
	h.Store = mustOpenOnly(t, c)
	close(armed)
	return h
}

// start begins to put m and tells when the command is evaluated.
func (h *held) start(m *ledger.Mutation) (evaluated chan struct{}, answer chan error) {
	evaluated, answer = make(chan struct{}), make(chan error, 1)
	go func() {
		answer <- h.Update(context.Background(), func(tx ledger.Tx) error {
			defer close(evaluated)
			return tx.PutMutation(m)
		})
	}()
	return evaluated, answer
}

func TestNothingIsShownBeforeItsSync(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	for name, failure := range map[string]error{"that succeeds": nil, "that fails": errors.New("a broken disk")} {
		t.Run("a sync "+name, func(t *testing.T) {
			t.Parallel()
			h := hold(t)
			h.err = failure
			gate := gateOf(h.Store)
			first, second := ledgertest.SampleMutation("a", ledger.Indeterminate, 0), ledgertest.SampleMutation("b", ledger.InFlight, 0)
			_, answerFirst := h.start(first)
			<-h.begun
			evaluated, answerSecond := h.start(second)
			<-evaluated // While the first is being synced.
			if blockers, _ := gate.BlockersOf("refunds"); len(blockers) != 0 {
				t.Error("the gate shows what isn't durable")
			}
			seen := make(chan error, 1)
			go func() {
				seen <- h.View(context.Background(), func(v ledger.View) error { _, err := v.Mutation(first.Key); return err })
			}()
			for _, answer := range []chan error{answerFirst, answerSecond, seen} {
				select {
				case err := <-answer:
					t.Errorf("answered before the sync: %v", err)
				default:
				}
			}
			close(h.end)
			for i, answer := range []chan error{answerFirst, answerSecond, seen} {
				err := <-answer
				if failure == nil && err != nil || failure != nil && i < 2 && !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("answer %d: %v", i, err)
				}
				if i == 2 && failure != nil && err == nil {
					t.Error("a record was shown whose sync failed")
				}
			}
			if failed := h.Healthy() != nil; failed != (failure != nil) {
				t.Errorf("Healthy: %v", h.Healthy())
			}
		})
	}
}

// TestABodyIsLetGoWhileItsRecordIsSynced lets the last holder of a body ask whether a
// record names it while the record that does is being synced.
func TestABodyIsLetGoWhileItsRecordIsSynced(t *testing.T) {
	t.Parallel()
	if !ownLogSync {
		t.Skip("Badger syncs its log itself here")
	}
	h := hold(t)
	spool, err := h.Spool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spool.Write(bytes.Repeat([]byte("x"), ledger.InlineBody+1)); err != nil {
		t.Fatal(err)
	}
	body, err := spool.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	m.Request.Body = body
	_, answer := h.start(m)
	<-h.begun
	closing, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		close(closing)
		closed <- spool.Close()
	}()
	<-closing
	close(h.end)
	if err := errors.Join(<-answer, <-closed); err != nil {
		t.Fatal(err)
	}
	r, err := h.Body(t.Context(), body)
	if err != nil {
		t.Fatalf("the body of a record: %v", err)
	}
	_ = r.Close()
}
