package badgerstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// smallDisk is a file system of its own of so many bytes, where mounting is allowed.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func remount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|flags, options); err != nil {
		t.Fatal(err)
	}
}

// untilFull lets a child claim until it can't any more and returns what it acknowledged,
// however it ended.
func untilFull(t *testing.T, dir, mode string) (acknowledged []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), childMode+"="+mode)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		acknowledged = append(acknowledged, lines.Text())
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		t.Fatal("the child went on on a full disk")
	}
	t.Logf("%d acknowledged, then: %v", len(acknowledged), err)
	return acknowledged
}

// TestNothingAcknowledgedIsLostOnAFullDisk fills a disk without the guard of MinFree, by
// bodies and by Badger's own writes, which go through memory maps and can kill.
func TestNothingAcknowledgedIsLostOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"bodies", onlyRecords} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir := smallDisk(t, "size=16m")
			var all []string
			for range 2 {
				// The second start finds the disk full.
				all = append(all, untilFull(t, dir, mode)...)
			}
			if len(all) == 0 {
				t.Error("nothing was acknowledged")
			}
			remount(t, dir, 0, "size=256m")
			holds(t, dir, all)
			if _, err := Verify(t.Context(), testConfig(dir), nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestADiskThatFillsAtEachPage gives two lives of a ledger, from its creation on, a disk of so
// many pages that each page which they write is the first one for which there is no room:
// in make test every 37th of them, and each in make proof.
func TestADiskThatFillsAtEachPage(t *testing.T) {
	t.Parallel()
	step := 37
	if proving() {
		step = 1
	}
	for pages := 1; ; pages += step {
		mounted, through := false, false
		t.Run(fmt.Sprintf("%d pages", pages), func(t *testing.T) {
			dir := smallDisk(t, fmt.Sprintf("size=%d", pages*os.Getpagesize()))
			mounted = true
			all := untilFull(t, dir, twoLives)
			if n := len(all); n > 0 && all[n-1] == allWritten {
				through, all = true, all[:n-1]
			}
			remount(t, dir, 0, "size=64m")
			holds(t, dir, all)
			if _, err := Verify(t.Context(), testConfig(dir), nil); err != nil {
				t.Error(err)
			}
		})
		if !mounted || t.Failed() {
			return
		}
		if through {
			if pages < 50 {
				t.Errorf("%d pages are enough for tables and long bodies", pages)
			}
			return
		}
	}
}

// TestAFullDiskIsToldAtTheStart leaves an engine each number of pages that is too few to open it.
// It maps its files into memory, so that the system answers some of them with a fault, and not
// with an error.
func TestAFullDiskIsToldAtTheStart(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=1m")
	opt := Config{Dir: dir}.engineOptions()
	db, err := openEngine(opt)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(dir, "others")
	takeAllSpace(t, others)
	faults := 0
	for {
		if db, err = openEngine(opt); err == nil {
			break
		}
		if !errors.Is(err, ledger.ErrUnavailable) || errors.Is(err, ledger.ErrDamaged) {
			t.Fatalf("an engine on a full disk: %v", err)
		}
		if strings.Contains(err.Error(), "is the disk full?") {
			faults++
		}
		givePage(t, others)
	}
	remount(t, dir, 0, "size=64m")
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if faults == 0 {
		t.Error("no number of pages led to a fault")
	}
}

// What a process before set aside is for a start on a full disk, too: outcomes are recorded then, and
// open questions answered.
func TestAStartOnAFullDiskHasTheReserve(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=96m")
	c := testConfig(filepath.Join(dir, "ledger"))
	c.MinFree, c.ring = 1<<20, 4<<20
	s := mustOpenOnly(t, c)
	m := ledgertest.SampleMutation("a", ledger.InFlight, 0)
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Fatal(err)
	}
	if there, err := exists(s.space.reservePath()); err != nil || !there {
		t.Fatalf("a reserve: %v, %v", there, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	takeAllSpace(t, filepath.Join(dir, "others"))
	s = mustOpenOnly(t, c)
	m.Version++
	m.State = ledger.Indeterminate
	if err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) }); err != nil {
		t.Errorf("an outcome: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// givePage takes the last page from a file.
func givePage(t *testing.T, path string) {
	t.Helper()
	st, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, st.Size()-int64(os.Getpagesize()))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// takeAllSpace writes a file until its disk has nothing left.
func takeAllSpace(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for page := make([]byte, os.Getpagesize()); err == nil; {
		_, err = f.Write(page)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

func TestReadOnlyFolderIsNoDamage(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "size=64m")
	s := mustOpenOnly(t, testConfig(dir))
	m := ledgertest.SampleMutation("a", ledger.Indeterminate, 0)
	err := s.Update(t.Context(), func(tx ledger.Tx) error { return tx.PutMutation(m) })
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	remount(t, dir, unix.MS_RDONLY, "size=64m")
	_, err = Open(t.Context(), testConfig(dir))
	if !errors.Is(err, unix.EROFS) || errors.Is(err, ledger.ErrDamaged) || errors.Is(err, ledger.ErrMissing) {
		t.Errorf("a folder that can't be written: %v", err)
	}
	remount(t, dir, 0, "size=64m")
	holds(t, dir, nil)
}
