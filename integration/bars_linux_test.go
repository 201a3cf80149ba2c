package integration

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestBars measures the table of bars: each row is a ratio of both sides' turns in one run, or what the program uses. The
// program, a bare goproxy, DBOS and the upstream are processes of their own; the program has its defaults. A bar that is
// missed is no failure.
func TestBars(t *testing.T) {
	if *sliceFor == 0 {
		t.Skip("make bench runs it")
	}
	s := &sheet{t: t, rows: map[string]string{}}
	t.Run("sixteen", s.sixteenClients)
	t.Run("one", s.oneClient)
	t.Run("http2", s.http2)
	t.Run("isolated", s.isolated)
	t.Run("dbos", s.dbos)
	t.Run("ledger", s.ledgerCommands)
	t.Run("rules", s.rules)
	t.Run("memory", s.memory)
	t.Run("large", s.large)
	if *intoPage && !t.Failed() {
		s.write()
	}
}

// ratios prints the rows of a way: that of its rate and, unless its name is "", that of its processor time.
func (s *sheet) ratios(y *way, rate, cpu string) {
	s.row(rate, shares(y.rates, y.against.rates), ": "+figure(median(y.rates))+" against "+figure(median(y.against.rates))+" a second")
	if cpu != "" {
		s.row(cpu, shares(y.cpu, y.against.cpu), ": "+figure(median(y.cpu))+" against "+figure(median(y.against.cpu))+" µs")
	}
}

func (s *sheet) sixteenClients(t *testing.T) {
	l := newLab(t, kilobytes)
	theirs, _ := l.bare()
	ours := l.keep()
	bareRead, barePost := theirs.of("bare read", "GET", fixed("/read"), nil), theirs.of("bare post", "POST", fixed("/ignored"), nil)
	read, pass := ours.of("read", "GET", fixed("/read"), bareRead), ours.of("pass-through", "POST", fixed("/ignored"), barePost)
	l.interleave([]*way{bareRead, read, barePost, pass}, 16, *turns, *sliceFor, func() {})
	s.ratios(read, "reads against a bare goproxy: rate", "reads against a bare goproxy: CPU")
	s.ratios(pass, "pass-through against a bare goproxy's POST: rate", "")
	// What mutations leave to be folded would be counted to whoever has the next turn.
	pass = ours.of("pass-through", "POST", fixed("/ignored"), nil)
	mutation, replay := ours.of("mutation", "POST", numbered("/send/"), pass), ours.of("replay", "POST", fixed("/send/same"), pass)
	l.interleave([]*way{pass, mutation, replay}, 16, *turns, *sliceFor, func() {})
	s.ratios(mutation, "durable mutations against own pass-through: rate", "durable mutations against own pass-through: CPU")
	s.ratios(replay, "replays against own pass-through: rate", "")
}

func (s *sheet) oneClient(t *testing.T) {
	l := newLab(t, kilobytes)
	theirs, _ := l.bare()
	ours := l.keep()
	bareRead := theirs.of("bare read", "GET", fixed("/read"), nil)
	read, pass := ours.of("read", "GET", fixed("/read"), bareRead), ours.of("pass-through", "POST", fixed("/ignored"), nil)
	mutation := ours.of("mutation", "POST", numbered("/send/"), pass)
	took := func(y *way) float64 { return 1e6 / y.rates[len(y.rates)-1] }
	var commits, rest []float64
	commit := l.committer()
	l.interleave([]*way{bareRead, read, pass, mutation}, 1, *turns, *sliceFor, func() {
		one := commit(*sliceFor, time.Duration(took(mutation)/2)*time.Microsecond)
		commits, rest = append(commits, one), append(rest, took(mutation)-took(pass)-2*one)
	})
	s.ratios(read, "reads against a bare goproxy, one client: rate", "")
	s.row("durable mutation, one client, beyond pass-through and 2 commits", rest,
		": "+figure(1e6/median(mutation.rates))+" − "+figure(1e6/median(pass.rates))+" − 2 × "+figure(median(commits))+" µs")
}

// committer makes the commits of a log on the ledger's own disk: a frame written twice, side by side, and one sync. It goes
// on for d, pauses between two as long as a processor has work then, and returns their median in µs.
func (l *lab) committer() func(d, pause time.Duration) float64 {
	l.t.Helper()
	const frame, ring = 8 << 10, 4 << 20
	file, err := os.Create(filepath.Join(l.settings.Dir, "commits"))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = file.Close() })
	_, err = file.Write(make([]byte, ring))
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	number := int64(0)
	return func(d, pause time.Duration) float64 {
		var took []float64
		for until := time.Now().Add(d); time.Now().Before(until); number++ {
			for last := time.Now(); time.Since(last) < pause; {
				runtime.Gosched()
			}
			begun, at := time.Now(), number*2*frame%ring
			_, err := file.WriteAt(bytes.Repeat([]byte{byte(number)}, frame), at)
			if err == nil {
				_, err = file.WriteAt(bytes.Repeat([]byte{byte(number)}, frame), at+frame)
			}
			if err == nil {
				err = unix.Fdatasync(int(file.Fd()))
			}
			if err != nil {
				l.t.Fatal(err)
			}
			took = append(took, float64(time.Since(begun).Nanoseconds())/1e3)
		}
		return median(took)
	}
}

func (s *sheet) http2(t *testing.T) {
	l := newLab(t, kilobytesH2)
	theirs, _ := l.bare(bareH2Var + "=1")
	bareRead := theirs.of("bare read", "GET", fixed("/read"), nil)
	read := l.keep().of("read", "GET", fixed("/read"), bareRead)
	l.interleave([]*way{bareRead, read}, 16, *turns, *sliceFor, func() {})
	s.ratios(read, "reads against a bare goproxy, HTTP/2 upstream: rate", "reads against a bare goproxy, HTTP/2 upstream: CPU")
}

// dbos compares with DBOS. What both sides need counts as their processor time: PostgreSQL there, the clients here.
func (s *sheet) dbos(t *testing.T) {
	const row = "durable mutations against DBOS and PostgreSQL, "
	l := newLab(t, kilobytes)
	if out, err := exec.Command("go", "test", "-C", "dbos", "-c", "-o", "../../bin/dbos", ".").CombinedOutput(); err != nil {
		s.without(row+"all", fmt.Sprintf("%v: %s", err, out))
		return
	}
	cmd := exec.Command("../bin/dbos")
	cmd.Env, cmd.Stderr = append(os.Environ(), "DBOS_TARGET="+l.target, "DBOS_ROOTS="+l.settings.UpstreamCA), os.Stderr
	c, at, err := begin(cmd, func(*child) {})
	if err != nil {
		s.without(row+"all", err)
		return
	}
	t.Cleanup(func() { _ = c.end() })
	client := &http.Client{Transport: &http.Transport{}}
	for _, clients := range []int{1, 16, 64} {
		theirs := &way{name: "DBOS", pids: func() []int { return family(cmd.Process.Pid) }, elsewhere: func(clients int, d time.Duration) (int64, error) {
			_, body, err := get(client, fmt.Sprintf("%s?clients=%d&for=%s", at.Proxy, clients, d))
			if err != nil {
				return 0, err
			}
			return strconv.ParseInt(string(body), 10, 64)
		}}
		ours := l.keep().of("mutation", "POST", numbered("/send/"), theirs)
		ours.pids = alone(l.child.cmd.Process.Pid, os.Getpid())
		l.interleave([]*way{theirs, ours}, clients, *turns, *sliceFor, func() {})
		name := fmt.Sprintf("%s%d clients: ", row, clients)
		if clients == 1 {
			name = row + "1 client: "
		}
		s.ratios(ours, name+"rate", name+"CPU")
	}
}

// family are a process and those that it started, and so on.
func family(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, _ := os.ReadFile(file) // Or it has ended.
		_, rest, _ := strings.Cut(string(text), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children[parent] = append(children[parent], child)
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// metricsOf runs benchmarks of a package so many times, and returns their metrics by their units.
func metricsOf(t *testing.T, pkg, name, times string, environment ...string) map[string]float64 {
	t.Helper()
	cmd := exec.Command("go", "test", "keep-proxy/"+pkg, "-run", "^$", "-bench", name, "-benchtime", times, "-timeout", "60m")
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	metrics := map[string]float64{}
	for _, line := range regexp.MustCompile(`(?m)^Benchmark.*$`).FindAll(out, -1) {
		for _, m := range regexp.MustCompile(`([0-9.e+]+) ([a-z0-9µ/-]+)`).FindAllSubmatch(line, -1) {
			if metrics[string(m[2])], err = strconv.ParseFloat(string(m[1]), 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return metrics
}

func (s *sheet) ledgerCommands(t *testing.T) {
	const row = "ledger commands of 64 writers against one sync each, 5 ms a sync: rate"
	m := metricsOf(t, "ledger/badgerstore", "^BenchmarkMerging$/^slow$", "1x")
	if m["ratio"] == 0 {
		s.without(row, "strace isn't on this machine, or may not attach")
		return
	}
	s.row(row, []float64{m["least-ratio"], m["ratio"], m["most-ratio"]},
		": "+figure(m["merged-commands/s"])+" against "+figure(m["single-commands/s"])+" a second")
}

func (s *sheet) rules(t *testing.T) {
	got := map[string][]float64{}
	for range *turns {
		for unit, value := range metricsOf(t, "rules", "Body$|^Benchmark(Mail|Load)$", "1s") {
			got[unit] = append(got[unit], value)
		}
		got["connectors-ratio"] = append(got["connectors-ratio"], metricsOf(t, "rules", "^BenchmarkConnectors$", "100x")["connectors-ratio"])
	}
	s.row("match and key of a JSON body of 2 KiB", got["json-µs"], "")
	s.row("match and key of a mutation of GraphQL", got["graphql-µs"], "")
	s.row("match and key of a mail of 20 KiB, with an attachment", got["mail-attachment-µs"], "")
	s.row("match and key of a mail of 20 KiB, all quoted-printable", got["mail-text-µs"], "")
	s.row("match and key with 60 connectors against 4", got["connectors-ratio"], "")
	s.row("load all bundled connectors", got["load-ms"], "")
}

// minute is as many slices as make one where a slice is as long as make bench has it.
func minute() time.Duration { return 48 * *sliceFor }

func (s *sheet) memory(t *testing.T) {
	const tunnels = 2_000
	l := newLab(t, kilobytes)
	idle := l.rest(min(soakCalm, minute()))
	s.row("RssAnon, idle", []float64{mib(idle.anonymous)}, "")
	var open []*caller
	l.openMore(tunnels, &open)
	now := l.rest(min(soakCalm, minute()))
	s.row("RssAnon, each of 2,000 tunnels", []float64{now.kibEach(idle, tunnels)}, "")
	leaveAll(&open)
	var most atomic.Int64
	var watch sync.WaitGroup
	stop := make(chan struct{})
	watch.Go(func() { l.watchMemory(&most, stop) })
	l.interleave([]*way{l.keep().of("mutation", "POST", numbered("/send/"), nil)}, 16, 0, minute(), func() {}) // Warming up is all.
	close(stop)
	watch.Wait()
	s.row("RssAnon, the most in a minute of mutations", []float64{mib(most.Load())}, ": "+strconv.FormatInt(l.unique.Load(), 10)+" mutations")
}

// large fills a ledger through the program, and starts it some times.
func (s *sheet) large(t *testing.T) {
	if *records == 0 {
		s.without("claim in a ledger of 1 M records; start with them", "make bench RECORDS=1000000 does, and takes 15 minutes more")
		return
	}
	l := newLab(t, kilobytes)
	fill := l.keep().of("mutation", "POST", numbered("/send/"), nil)
	for fill.open(t, l.target, 64); l.unique.Load() < int64(*records); {
		fill.round(t, &l.unique, *sliceFor)
	}
	var took []float64
	for range *turns {
		if err := l.child.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-l.child.gone
		begun := time.Now()
		l.serve()
		took = append(took, time.Since(begun).Seconds())
	}
	s.row("start with 1 M records", took, ": "+strconv.FormatInt(l.unique.Load(), 10)+" records")
	m := metricsOf(t, "ledger/badgerstore", "^BenchmarkLarge$/^claim", "4000x", "KEEP_BENCH_RECORDS="+strconv.Itoa(*records))
	s.row("claim in a ledger of 1 M records against an empty one: p50", []float64{m["p50-ratio"]}, "")
}
