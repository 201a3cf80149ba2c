package integration

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
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

	proxy       *url.URL
	credentials string
	roots       *x509.CertPool
	pid         int
	callers     []*caller

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
	var done atomic.Int64
	var all sync.WaitGroup
	begun, used := time.Now(), processorTime(b, y.pid)
	for _, k := range y.callers {
		all.Go(func() {
			for time.Since(begun) < d {
				if err := k.ask(unique); err != nil {
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
func (w *world) wayThrough(address, caPEM string, pid int) way {
	w.t.Helper()
	proxy, err := url.Parse(address)
	if err != nil {
		w.t.Fatal(err)
	}
	y := way{proxy: proxy, roots: x509.NewCertPool(), pid: pid}
	y.roots.AppendCertsFromPEM([]byte(caPEM))
	if password, ok := proxy.User.Password(); ok {
		y.credentials = base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	}
	return y
}

// ways are a bare goproxy and the program, each a process of its own.
func (l *lab) ways() []*way {
	l.t.Helper()
	bare, at := l.peer(bareVar+"="+l.settings.UpstreamCA, "GOGC=100")
	theirs := l.wayThrough(at.Proxy, at.CAPEM, bare.cmd.Process.Pid)
	ours := l.wayThrough(l.run.ProxyURL, l.run.CAPEM, l.child.cmd.Process.Pid)
	of := func(y way, name, method string, path func(int64) string, against *way) *way {
		y.name, y.method, y.path, y.against = name, method, path, against
		return &y
	}
	bareRead := of(theirs, "bare read", "GET", fixed("/read"), nil)
	barePost := of(theirs, "bare post", "POST", fixed("/ignored"), nil)
	pass := of(ours, "pass-through", "POST", fixed("/ignored"), barePost)
	return []*way{
		bareRead, of(ours, "read", "GET", fixed("/read"), bareRead),
		barePost, pass,
		of(ours, "mutation", "POST", numbered("/send/"), pass),
		of(ours, "replay", "POST", fixed("/send/same"), pass),
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
			var unique atomic.Int64
			for _, y := range ways {
				y.open(b, l.target, clients)
				y.round(b, &unique, roundOfWay)
				y.rates, y.cpu = nil, nil
			}
			for b.Loop() {
				for range roundsOfWays {
					for _, y := range ways {
						y.round(b, &unique, roundOfWay)
					}
				}
			}
			table(b, ways)
			b.Logf("RssAnon afterwards %.1f MiB", mib(l.rssAnon()))
			if os.Getenv(profileVar) != "" {
				_ = l.child.end() // It writes its profiles now.
			}
		})
	}
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
}
