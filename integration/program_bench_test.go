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

	// proxy is nil for the direct way, which has no pids either.
	proxy       *url.URL
	credentials string
	roots       *x509.CertPool
	// pids are the processes whose processor time counts.
	pids func() []int
	// buffer is that of the clients, in bytes; 0 for a small one.
	buffer  int
	callers []*caller
	// shared is the one client of all callers that open no connections of their own.
	shared *http.Client
	// do is what a client does again and again; nil for one request.
	do func(k *caller, n *atomic.Int64) error
	// elsewhere has another process do it all, by so many clients for so long, and returns how often it was done.
	elsewhere func(clients int, d time.Duration) (int64, error)

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
func (y *way) open(tb testing.TB, target string, clients int) {
	tb.Helper()
	if y.elsewhere != nil {
		y.callers = make([]*caller, clients)
		return
	}
	if y.shared != nil {
		if err := getKilobyte(y.shared, target); err != nil { // Over the one connection.
			tb.Fatalf("%s: %v", y.name, err)
		}
		y.callers = slices.Repeat([]*caller{nil}, clients)
		return
	}
	for range clients {
		k, err := call(y, target)
		if err != nil {
			tb.Fatalf("%s: %v", y.name, err)
		}
		tb.Cleanup(func() { _ = k.c.Close() })
		y.callers = append(y.callers, k)
	}
}

// round asks for a while, and keeps rate and processor time.
func (y *way) round(tb testing.TB, unique *atomic.Int64, d time.Duration) {
	tb.Helper()
	do := y.do
	if do == nil {
		do = (*caller).ask
	}
	used := processorTime(tb, y.pids)
	begun := time.Now()
	var done atomic.Int64
	var all sync.WaitGroup
	if y.elsewhere != nil {
		n, err := y.elsewhere(len(y.callers), d)
		if err != nil {
			tb.Fatalf("%s: %v", y.name, err)
		}
		done.Store(n)
	} else {
		for _, k := range y.callers {
			all.Go(func() {
				for time.Since(begun) < d {
					if err := do(k, unique); err != nil {
						tb.Errorf("%s: %v", y.name, err)
						return
					}
					done.Add(1)
				}
			})
		}
	}
	all.Wait()
	y.rates = append(y.rates, float64(done.Load())/time.Since(begun).Seconds())
	y.cpu = append(y.cpu, float64((processorTime(tb, y.pids)-used).Nanoseconds())/1e3/float64(max(done.Load(), 1)))
}

// alone is a process, for the processor time of a way.
func alone(pids ...int) func() []int { return func() []int { return pids } }

// processorTime is what the threads of other processes have run so far, in user and
// system mode: the first field of their schedstat in /proc, which counts nanoseconds
// where stat counts hundredths of a second.
func processorTime(tb testing.TB, pids func() []int) (total time.Duration) {
	tb.Helper()
	if pids == nil {
		return 0
	}
	for _, pid := range pids() {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil || len(threads) == 0 {
			tb.Skip("not run: this system shows no processor time in /proc")
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // The thread has ended.
			}
			ran, _, _ := strings.Cut(string(text), " ")
			n, err := strconv.ParseInt(ran, 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			total += time.Duration(n)
		}
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
	y, err := newWay(address, caPEM)
	if err != nil {
		w.t.Fatal(err)
	}
	y.pids = alone(pid)
	return y
}

// newWay leads through a proxy; "" is for none.
func newWay(address, caPEM string) (*way, error) {
	y := &way{roots: x509.NewCertPool()}
	y.roots.AppendCertsFromPEM([]byte(caPEM))
	if address == "" {
		return y, nil
	}
	proxy, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	y.proxy = proxy
	if password, ok := proxy.User.Password(); ok {
		y.credentials = base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
	}
	return y, nil
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

// interleave opens the clients of each way, and lets each way have so many turns, forth and back. between is called
// after each round.
func (l *lab) interleave(ways []*way, clients, rounds int, length time.Duration, between func()) {
	l.t.Helper()
	ways = slices.Clone(ways)
	for _, y := range ways {
		y.open(l.t, l.target, clients)
		y.round(l.t, &l.unique, length)
		y.rates, y.cpu = nil, nil
	}
	for range rounds {
		for _, y := range ways {
			y.round(l.t, &l.unique, length)
		}
		between()
		slices.Reverse(ways)
	}
}

// compare interleaves, and prints the table.
func (l *lab) compare(b *testing.B, ways []*way, clients, rounds int) {
	b.Helper()
	l.interleave(ways, clients, rounds, roundOfWay, func() {})
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

// half is where the middle half of the values begins and ends.
func half(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/4], sorted[len(sorted)*3/4]
}

func spread(format string, values []float64) string {
	low, high := half(values)
	return fmt.Sprintf(format+"…"+format, low, high)
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
