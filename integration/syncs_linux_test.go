package integration

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// syncMutations is how many mutations the syncs are counted over.
const syncMutations = 200

// BenchmarkOneClient takes apart what a durable mutation costs one client beyond a
// request that is passed through: the syncs that the program makes for it, counted
// by strace from outside, times the median sync of that kind in the same folder, and
// the rest. It prints, too, what the rest is if a sync is taken for as short as one of a
// single page that follows right upon another.
func BenchmarkOneClient(b *testing.B) {
	l := newLab(b)
	client := l.throughKeep()
	var pass, mutation []float64
	var n atomic.Int64
	one := func(path string) float64 {
		begun := time.Now()
		if err := send(client, l.target+path, bytes.NewReader(kilobyte)); err != nil {
			b.Fatal(err)
		}
		return float64(time.Since(begun).Microseconds())
	}
	next := func() string { return "/send/" + strconv.FormatInt(n.Add(1), 10) }
	for b.Loop() {
		for range syncMutations {
			pass, mutation = append(pass, one("/ignored")), append(mutation, one(next()))
		}
	}
	msync, page := l.syncTimes(b)
	fdatasync := l.commitSync(b, time.Duration(median(mutation)/2)*time.Microsecond)
	counts := l.countSyncs(b, func() {
		for range syncMutations {
			one(next())
		}
	})
	syncs := float64(counts["msync"]+counts["fdatasync"]+counts["fsync"]) / syncMutations
	waits := (float64(counts["msync"])*msync + float64(counts["fdatasync"]+counts["fsync"])*fdatasync) / syncMutations
	rest := median(mutation) - median(pass) - waits
	b.Logf("pass-through %.0f µs, mutation %.0f µs; %.2f syncs each (%v of %d mutations; msync %.0f µs, fdatasync of a commit %.0f µs), so %.0f µs beside them; "+
		"%.0f µs beside syncs of a page, %.0f µs each",
		median(pass), median(mutation), syncs, counts, syncMutations, msync, fdatasync, rest, rest+syncs*(fdatasync-page), page)
	b.ReportMetric(syncs, "syncs/mutation")
	b.ReportMetric(rest, "rest-us")
}

// commitSync is the median of a fdatasync as the program makes one for each commit, in
// microseconds, on the ledger's own file system: of a file with the length of the high-water file,
// behind two writes of whole pages in two places of it, pause after the one before.
func (l *lab) commitSync(b *testing.B, pause time.Duration) float64 {
	b.Helper()
	const commit, journal = 8 << 10, 2 << 20
	file, err := os.Create(filepath.Join(l.settings.Dir, "state", "commits"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(make([]byte, 2*journal)); err != nil {
		b.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		b.Fatal(err)
	}
	var took []float64
	for i := range syncMutations {
		for last := time.Now(); time.Since(last) < pause; {
			runtime.Gosched() // Between two commits a processor has work.
		}
		for half := range int64(2) {
			if _, err := file.WriteAt(bytes.Repeat([]byte{byte(i)}, commit), half*journal+int64(i)*commit%journal); err != nil {
				b.Fatal(err)
			}
		}
		begun := time.Now()
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(begun).Microseconds()))
	}
	return median(took)
}

// syncTimes is the median of a small msync and of a small fdatasync, in
// microseconds, on the ledger's own file system, each right after another.
func (l *lab) syncTimes(b *testing.B) (msync, fdatasync float64) {
	b.Helper()
	const size = 1 << 16
	file, err := os.Create(filepath.Join(l.settings.Dir, "state", "syncs"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(size); err != nil {
		b.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = unix.Munmap(mapped) }()
	var ms, fs []float64
	for i := range syncMutations {
		mapped[i]++
		begun := time.Now()
		if err := unix.Msync(mapped, unix.MS_SYNC); err != nil {
			b.Fatal(err)
		}
		ms = append(ms, float64(time.Since(begun).Microseconds()))
		if _, err := file.WriteAt([]byte{byte(i)}, 4096); err != nil {
			b.Fatal(err)
		}
		begun = time.Now()
		if err := unix.Fdatasync(int(file.Fd())); err != nil {
			b.Fatal(err)
		}
		fs = append(fs, float64(time.Since(begun).Microseconds()))
	}
	return median(ms), median(fs)
}

// countSyncs counts the program's syncs while work goes on.
func (l *lab) countSyncs(b *testing.B, work func()) map[string]int {
	b.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		b.Skip("not run: strace is not on this machine")
	}
	out := filepath.Join(l.settings.Dir, "strace.txt")
	trace := exec.Command(path, "-f", "-e", "trace=msync,fdatasync,fsync", "-o", out, "-p", fmt.Sprint(l.child.cmd.Process.Pid))
	stderr, err := trace.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := trace.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	if !lines.Scan() || !strings.Contains(lines.Text(), "attached") {
		_ = trace.Wait()
		b.Skipf("not run: strace may not attach: %s", lines.Text())
	}
	work()
	if err := trace.Process.Signal(syscall.SIGINT); err != nil {
		b.Fatal(err)
	}
	for lines.Scan() {
		// Its farewell to each thread.
	}
	_ = trace.Wait() // It ends by the signal.
	text, err := os.ReadFile(out)
	if err != nil {
		b.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"msync", "fdatasync", "fsync"} {
			if strings.Contains(line, " "+name+"(") {
				counts[name]++
			}
		}
	}
	return counts
}
