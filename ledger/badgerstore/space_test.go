package badgerstore

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

func TestAFileSystemThatSetsNoSpaceAsideIsDoneWithoutAReserve(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	free := uint64(1 << 30)
	c.statfs = func(string) (uint64, error) { return free, nil }
	s := newSpace(c)
	tries := 0
	s.allocate = func(*os.File, int64) error {
		tries++
		return unix.EOPNOTSUPP
	}
	for range 3 {
		s.measure()
		if s.err != nil {
			t.Error(s.err)
		}
	}
	if there, err := exists(s.reservePath()); err != nil || there || tries != 1 {
		t.Errorf("a reserve: %v, %v, after %d tries", there, err, tries)
	}
	free = 0
	if s.measure(); s.err != nil {
		t.Error(s.err)
	}
	if err := s.check(); !errors.Is(err, ledger.ErrLowSpace) {
		t.Errorf("without space: %v", err)
	}
}

// A reserve is that of the folder, whichever process set it aside.
func TestAReserveOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	free := uint64(1 << 40)
	c.statfs = func(string) (uint64, error) { return free, nil }
	there := func(want bool, size int64) {
		t.Helper()
		st, err := os.Stat(newSpace(c).reservePath())
		if is := err == nil; is != want || is && st.Size() != size {
			t.Errorf("a reserve: %v, wanted: %v", err, want)
		}
	}
	start := func() {
		t.Helper()
		if err := mustOpenOnly(t, c).Close(); err != nil {
			t.Fatal(err)
		}
	}
	start()
	there(true, reserveSize)
	start()
	there(true, reserveSize)
	free = 0
	start()
	there(false, 0)
	// One that was cut short is made whole where there is room, and goes where there is none.
	for _, left := range []struct {
		free  uint64
		there bool
	}{{1 << 40, true}, {0, false}} {
		place(t, newSpace(c).reservePath(), []byte("cut"))
		free = left.free
		start()
		there(left.there, reserveSize)
	}
}

// What is owed by an outcome comes with it, and isn't a mutation that somebody asks for.
func TestAnOutcomeThatOwesSomethingIsRecordedAlthoughSpaceIsLow(t *testing.T) {
	t.Parallel()
	c := testConfig(t.TempDir())
	c.MinFree = 1 << 20
	free := uint64(1 << 40)
	c.statfs = func(string) (uint64, error) { return free, nil }
	s := mustOpen(t, c)
	m := ledgertest.SampleMutation("twice", ledger.NeedsReconcile, 0)
	putEdge(t, s, m)
	s.space.mu.Lock()
	free, s.space.measured = 0, time.Time{}
	s.space.mu.Unlock()
	if err := s.Spacious(); !errors.Is(err, ledger.ErrLowSpace) {
		t.Fatalf("without space: %v", err)
	}
	l := ledger.New(s, ledger.Config{Now: c.Now, NewID: c.NewID})
	out, err := l.Observe(t.Context(), ledger.Observe{
		Key: m.Key, Version: m.Version, Reached: true, Result: &ledger.Result{Status: 200},
		Observation: ledger.Observation{At: c.Now(), Strategy: "probe", Seen: ledger.SeenDuplicate, Strong: true, Objects: []string{"t-1", "t-2"}},
		Owed: []ledger.Owed{{Object: "t-2", Record: ledger.Mutation{
			Payload: ledger.Payload{PayloadDigest: "undo", Request: ledger.Request{Method: "DELETE", URL: "https://api.example.test/t-2"}},
		}}},
	})
	if err != nil || out.Mutation.State != ledger.Applied || len(out.Mutation.Obligations) != 1 {
		t.Errorf("an outcome: %+v, %v", out.Mutation, err)
	}
}
