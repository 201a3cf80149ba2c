package integration

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// way is one way of asking for the same kilobyte, by clients that keep their
// connections.
type way struct {
	name string
	// against is the way that it is compared with; nil for none.
	against *way
	method  string
	path    func(n int64) string

	// proxy is nil for the direct way, which has no pid either.
	proxy       *url.URL
	credentials string
	roots       *x509.CertPool
	pid         int
	// buffer is that of the clients, in bytes; 0 for a small one.
	buffer  int
	callers []*caller
	// shared is the one client of all callers that open no connections of their own.
	shared *http.Client
	// do is what a client does again and again; nil for one request.
	do func(k *caller, n *atomic.Int64) error

	// rates are requests a second, and cpu the processor time of the proxy alone for
	// one of them, in microseconds; a value for each round.
	rates, cpu []float64
}

func fixed(path string) func(int64) string { return func(int64) string { return path } }

func numbered(path string) func(int64) string {
	return func(n int64) string { return path + strconv.FormatInt(n, 10) }
}

// Rounds of one measurement, each way taking its turn in each: short ones, so that what
// else the machine does is the same for those that are compared.
const (
	roundsOfWays = 27
	roundOfWay   = 200 * time.Millisecond
)

// open connects the clients.
func (y *way) open(b *testing.B, target string, clients int) {
	b.Helper()
	if y.shared != nil {
		if err := getKilobyte(y.shared, target); err != nil { // Over the one connection.
			b.Fatalf("%s: %v", y.name, err)
		}
		y.callers = slices.Repeat([]*caller{nil}, clients)
		return
	}
	for range clients {
		k, err := call(y, target)
		if err != nil {
			b.Fatalf("%s: %v", y.name, err)
		}
		b.Cleanup(func() { _ = k.c.Close() })
		y.callers = append(y.callers, k)
	}
}

// round asks for a while, and keeps rate and processor time.
func (y *way) round(b *testing.B, unique *atomic.Int64, d time.Duration) {
	b.Helper()
	do := y.do
	if do == nil {
		do = (*caller).ask
	}
	var done atomic.Int64
	var all sync.WaitGroup
	begun, used := time.Now(), processorTime(b, y.pid)
	for _, k := range y.callers {
		all.Go(func() {
			for time.Since(begun) < d {
				if err := do(k, unique); err != nil {
					b.Errorf("%s: %v", y.name, err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	y.rates = append(y.rates, float64(done.Load())/time.Since(begun).Seconds())
	y.cpu = append(y.cpu, float64((processorTime(b, y.pid)-used).Nanoseconds())/1e3/float64(max(done.Load(), 1)))
}

// processorTime is what the threads of another process have run so far, in user and
// system mode: the first field of their schedstat in /proc, which counts nanoseconds
// where stat counts hundredths of a second.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	if pid == 0 {
		return 0
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		b.Skip("not run: this system shows no processor time in /proc")
	}
	total := time.Duration(0)
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // The thread has ended.
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ran, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		total += time.Duration(n)
	}
	return total
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// wayThrough leads through a proxy, a process of this number.
func (w *world) wayThrough(address, caPEM string, pid int) *way {
	w.t.Helper()
	proxy, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	y := &way{proxy: proxy, roots: x509.NewCertPool(), pid: pid}
	y.roots.AppendCertsFromPEM([]byte(caPEM))
	if password, ok := proxy.User.Password(); ok {
		y.credentials = base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	}
	return y
}

// direct is the way without a proxy.
func (l *lab) direct() *way { return &way{roots: l.roots} }

// bare starts a bare goproxy, and returns the way through it and where its metrics are.
func (l *lab) bare(variables ...string) (y *way, metrics string) {
	l.t.Helper()
	process, at := l.peer(append(variables, bareVar+"="+l.settings.UpstreamCA, "GOGC=100")...)
	return l.wayThrough(at.Proxy, at.CAPEM, process.cmd.Process.Pid), at.Admin
}

// keep is the way through the program.
func (l *lab) keep() *way {
	return l.wayThrough(l.run.ProxyURL, l.run.CAPEM, l.child.cmd.Process.Pid)
}

// of is a way for one kind of request.
func (y *way) of(name, method string, path func(int64) string, against *way) *way {
	other := *y
	other.name, other.method, other.path, other.against = name, method, path, against
	return &other
}

// ways are those through a bare goproxy and through the program.
func (l *lab) ways() []*way {
	l.t.Helper()
	theirs, _ := l.bare()
	ours := l.keep()
	bareRead := theirs.of("bare read", "GET", fixed("/read"), nil)
	barePost := theirs.of("bare post", "POST", fixed("/ignored"), nil)
	pass := ours.of("pass-through", "POST", fixed("/ignored"), barePost)
	return []*way{
		bareRead, ours.of("read", "GET", fixed("/read"), bareRead),
		barePost, pass,
		ours.of("mutation", "POST", numbered("/send/"), pass),
		ours.of("replay", "POST", fixed("/send/same"), pass),
		l.direct().of("direct post", "POST", fixed("/ignored"), pass),
	}
}

// waysVar names the only ways that are measured, with commas; for profiles.
const waysVar = "KEEP_BENCH_WAYS"

// BenchmarkProgram compares, in interleaved rounds over one TLS upstream by HTTP/1.1,
// a bare goproxy, reads, the same requests passed through unrecorded, durable
// mutations, and replays. Client, upstream, bare goproxy and program are a process
// each. It reports medians of requests per second and of the proxy's own processor
// time for a request, with their ratios.
func BenchmarkProgram(b *testing.B) {
	for _, clients := range []int{16, 1} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			l := newLab(b)
			ways := l.ways()
			if only := os.Getenv(waysVar); only != "" {
				ways = slices.DeleteFunc(ways, func(y *way) bool { return !slices.Contains(strings.Split(only, ","), y.name) })
			}
			var most int64
			l.interleave(b, ways, clients, roundsOfWays, roundOfWay, func() { most = max(most, l.rssAnon()) })
			b.Logf("RssAnon at most %.1f MiB, afterwards %.1f MiB", mib(most), mib(l.rssAnon()))
			b.ReportMetric(mib(most), "most-MiB")
			logRow(b, "all of them", "", "RssAnon at most", "%.0f MiB", []float64{mib(most)}, "")
			if os.Getenv(profileVar) != "" {
				_ = l.child.end() // It writes its profiles now.
			}
		})
	}
}

// interleave opens the clients of each way, lets each way have so many rounds in turn,
// and prints the table. between is called after each turn.
func (l *lab) interleave(b *testing.B, ways []*way, clients, rounds int, length time.Duration, between func()) {
	b.Helper()
	var unique atomic.Int64
	for _, y := range ways {
		y.open(b, l.target, clients)
		y.round(b, &unique, length)
		y.rates, y.cpu = nil, nil
	}
	for b.Loop() {
		for range rounds {
			for _, y := range ways {
				y.round(b, &unique, length)
			}
			between()
		}
	}
	table(b, ways)
}

// shares divides the rounds of one way by those of another.
func shares(of, by []float64) []float64 {
	out := make([]float64, len(of))
	for i := range of {
		out[i] = of[i] / by[i]
	}
	return out
}

// spread is the middle half of the values.
func spread(format string, values []float64) string {
	sorted := slices.Sorted(slices.Values(values))
	return fmt.Sprintf(format+"…"+format, sorted[len(sorted)/4], sorted[len(sorted)*3/4])
}

// table prints rates, processor times and the medians of the ratios in each round, with
// the middle half of each, and reports them.
func table(b *testing.B, ways []*way) {
	b.Helper()
	b.Logf("%-13s %8s %13s %18s %7s %13s %18s", "", "median/s", "half", "ratio", "CPU µs", "half", "ratio")
	for _, y := range ways {
		rate, cpu := median(y.rates), median(y.cpu)
		unit := strings.ReplaceAll(y.name, " ", "-")
		b.ReportMetric(rate, unit+"/s")
		b.ReportMetric(cpu, unit+"-cpu-us")
		rates, times := "", ""
		if y.against != nil && len(y.against.rates) == len(y.rates) {
			ratios, parts := shares(y.rates, y.against.rates), shares(y.cpu, y.against.cpu)
			rates = fmt.Sprintf("%.2f (%s)", median(ratios), spread("%.2f", ratios))
			times = fmt.Sprintf("%.2f (%s)", median(parts), spread("%.2f", parts))
			reference := strings.ReplaceAll(y.against.name, " ", "-")
			b.ReportMetric(median(ratios), unit+"/"+reference)
			b.ReportMetric(median(parts), unit+"-cpu/"+reference)
		}
		b.Logf("%-13s %8.0f %13s %18s %7.1f %13s %18s", y.name, rate, spread("%.0f", y.rates), rates, cpu, spread("%.1f", y.cpu), times)
	}
	logRatios(b, ways)
}
