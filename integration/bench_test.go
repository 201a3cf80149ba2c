package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/admin/wire"
)

// lab is the program as a process, a bare goproxy as another, and the upstream that
// both of them reach.
type lab struct {
	*world
	upstream *httptest.Server
	run      *wire.OpenedRun
}

var kilobyte = bytes.Repeat([]byte("y"), 1024)

// newLab starts upstream and program, and opens a run.
func newLab(b *testing.B) *lab {
	b.Helper()
	up := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write(kilobyte)
	}))
	b.Cleanup(up.Close)
	w := &world{t: b, settings: defaults()}
	w.settings.Dir = b.TempDir()
	w.settings.MaxBody = "10MiB"
	w.settings.UpstreamCA = filepath.Join(w.settings.Dir, "upstreams.pem")
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw})
	if err := os.WriteFile(w.settings.UpstreamCA, root, 0o600); err != nil {
		b.Fatal(err)
	}
	var err error
	if w.settings.Connectors, err = filepath.Abs("testdata/bench"); err != nil {
		b.Fatal(err)
	}
	w.settings.Hosts = map[string]string{"bench": up.Listener.Addr().String()}
	w.mustSpawn()
	opened, err := w.api.OpenRun(b.Context(), wire.OpenRun{Workflow: "bench", Item: "a", OnFailure: "return"}, "")
	if err != nil {
		b.Fatal(err)
	}
	return &lab{world: w, upstream: up, run: opened}
}

// throughBare starts a bare goproxy as a process and returns a client of it.
func (l *lab) throughBare() *http.Client {
	l.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), bareVar+"="+l.settings.UpstreamCA)
	c, at, err := begin(cmd, func(*child) {})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.kill)
	return l.through(at.Proxy, []byte(at.CAPEM))
}

func (l *lab) throughKeep() *http.Client {
	return l.through(l.run.ProxyURL, []byte(l.run.CAPEM))
}

// through is a client of a proxy.
func (l *lab) through(proxy string, caPEM []byte) *http.Client {
	l.t.Helper()
	address, err := url.Parse(proxy)
	if err != nil {
		l.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(caPEM)
	tr := &http.Transport{
		Proxy: http.ProxyURL(address), MaxIdleConnsPerHost: 256,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
	}
	l.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// way is one way of sending the same kilobyte.
type way struct {
	name   string
	client *http.Client
	path   func(n int64) string
	rates  []float64
}

func fixed(path string) func(int64) string { return func(int64) string { return path } }

// Rounds of one measurement, each way taking its turn in each.
const (
	roundsOfWays = 7
	roundOfWay   = 400 * time.Millisecond
)

// round sends for a while with so many clients, and keeps the rate.
func (y *way) round(b *testing.B, base string, clients int, unique *atomic.Int64, d time.Duration) float64 {
	b.Helper()
	var done atomic.Int64
	var all sync.WaitGroup
	body := strings.Repeat("x", 1024)
	begun := time.Now()
	for range clients {
		all.Go(func() {
			for time.Since(begun) < d {
				if err := send(y.client, base+y.path(unique.Add(1)), strings.NewReader(body)); err != nil {
					b.Errorf("%s: %v", y.name, err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(begun).Seconds()
}

// send posts a body and reads the whole answer.
func send(c *http.Client, target string, body io.Reader) error {
	resp, err := c.Post(target, "application/octet-stream", body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d, %w", resp.StatusCode, err)
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// BenchmarkProgram compares, in interleaved rounds over one TLS upstream, a bare
// goproxy, the program passing the same requests through unrecorded, durable
// mutations, and replays. Each proxy is a process of its own; clients and upstream
// share a third. It reports medians of requests per second and their ratios.
func BenchmarkProgram(b *testing.B) {
	for _, clients := range []int{16, 1} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			l := newLab(b)
			ways := []*way{
				{name: "bare", client: l.throughBare(), path: fixed("/ignored")},
				{name: "pass", client: l.throughKeep(), path: fixed("/ignored")},
				{name: "mutation", client: l.throughKeep(), path: func(n int64) string { return "/send/" + strconv.FormatInt(n, 10) }},
				{name: "replay", client: l.throughKeep(), path: fixed("/send/same")},
			}
			var unique atomic.Int64
			for _, y := range ways {
				y.round(b, l.upstream.URL, clients, &unique, roundOfWay/2)
			}
			for b.Loop() {
				for range roundsOfWays {
					for _, y := range ways {
						y.rates = append(y.rates, y.round(b, l.upstream.URL, clients, &unique, roundOfWay))
					}
				}
			}
			table(b, ways)
		})
	}
}

// table prints rates and ratios, and reports them.
func table(b *testing.B, ways []*way) {
	b.Helper()
	b.Logf("%-9s %10s %21s %14s", "", "median/s", "spread", "ratio")
	for i, y := range ways {
		rate := median(y.rates)
		b.ReportMetric(rate, y.name+"/s")
		compared := ""
		if i > 0 {
			reference := ways[min(i-1, 1)]
			ratio := rate / median(reference.rates)
			compared = fmt.Sprintf("%.2f × %s", ratio, reference.name)
			b.ReportMetric(ratio, y.name+"/"+reference.name)
		}
		b.Logf("%-9s %10.0f %9.0f to %8.0f %17s", y.name, rate, slices.Min(y.rates), slices.Max(y.rates), compared)
	}
}

// memoryMutations and memoryAtOnce are how many mutations of 1 MiB the memory is
// looked at under; -short takes a twentieth.
const (
	memoryMutations = 10_000
	memoryAtOnce    = 64
)

// memoryMeasured keeps -count from writing the same 10 GiB again.
var memoryMeasured atomic.Bool

// BenchmarkMemory reports the program's RssAnon, idle and the most of it while it
// carries mutations of 1 MiB. Its time says nothing.
func BenchmarkMemory(b *testing.B) {
	if memoryMeasured.Swap(true) {
		b.Skip("measured once already")
	}
	l := newLab(b)
	idle := l.rssAnon()
	client := l.throughKeep()
	n := memoryMutations
	if testing.Short() {
		n /= 20
	}
	var most, sent atomic.Int64
	for b.Loop() {
		stop := make(chan struct{})
		var watch, all sync.WaitGroup
		watch.Go(func() { l.watchMemory(&most, stop) })
		begun := time.Now()
		for range memoryAtOnce {
			all.Go(func() {
				body := bytes.Repeat([]byte("x"), 1<<20)
				for i := sent.Add(1); i <= int64(n); i = sent.Add(1) {
					copy(body, strconv.FormatInt(i, 10))
					if err := send(client, fmt.Sprintf("%s/send/%d", l.upstream.URL, i), bytes.NewReader(body)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		close(stop)
		watch.Wait()
		b.Logf("%d mutations of 1 MiB, %d in flight, in %s: RssAnon idle %.1f MiB, at most %.1f MiB, afterwards %.1f MiB",
			n, memoryAtOnce, time.Since(begun).Round(time.Second), mib(idle), mib(most.Load()), mib(l.rssAnon()))
	}
	b.ReportMetric(mib(idle), "idle-MiB")
	b.ReportMetric(mib(most.Load()), "most-MiB")
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// watchMemory keeps the most that is seen until stop.
func (l *lab) watchMemory(most *atomic.Int64, stop <-chan struct{}) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		most.Store(max(most.Load(), l.rssAnon()))
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

// rssAnon is the program's anonymous resident memory in bytes.
func (l *lab) rssAnon() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.child.cmd.Process.Pid))
	if err != nil {
		l.t.Skipf("not run: this system shows no /proc: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				l.t.Fatal(err)
			}
			return kib << 10
		}
	}
	l.t.Fatal("no RssAnon in /proc")
	return 0
}
