package integration

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// lab is the program as it is built and by its defaults, as a process, and as another the upstream that it reaches.
// Its log goes into a pipe.
type lab struct {
	*world
	target string
	// roots are the upstream's.
	roots *x509.CertPool
	run   *wire.OpenedRun
	// unique numbers what is sent.
	unique atomic.Int64
}

var kilobyte = bytes.Repeat([]byte("y"), 1024)

// labConfiguration is what the program can't do without here.
const labConfiguration = `
proxy: {listen: ["127.0.0.1:0"], upstream_ca: %q, egress: {deny_private: false}}
admin: {listen: "127.0.0.1:0"}
ledger: {dir: %q}
connectors: {dirs: [%q], settings: [{connector: bench, hosts: [%q]}]}
`

// built makes bin/keep-proxy, as make build does.
var built = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", "../bin/keep-proxy", "../cmd/keep-proxy")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build keep-proxy: %w: %s", err, out)
	}
	return nil
})

// newLab starts an upstream of some kind and the program, and opens a run.
func newLab(tb testing.TB, upstream string) *lab {
	tb.Helper()
	l := &lab{world: &world{t: tb}, roots: x509.NewCertPool()}
	_, up := l.peer(upstreamVar + "=" + upstream)
	l.target = up.Proxy
	l.roots.AppendCertsFromPEM([]byte(up.CAPEM))
	l.settings.Dir = tb.TempDir()
	l.settings.UpstreamCA = filepath.Join(l.settings.Dir, "upstreams.pem")
	connectors, err := filepath.Abs("testdata/bench")
	if err = errors.Join(err, built(), os.WriteFile(l.settings.UpstreamCA, []byte(up.CAPEM), 0o600)); err != nil {
		tb.Fatal(err)
	}
	l.file = filepath.Join(l.settings.Dir, "config.yaml")
	text := fmt.Appendf(nil, labConfiguration, l.settings.UpstreamCA, filepath.Join(l.settings.Dir, "state"), connectors, strings.TrimPrefix(up.Proxy, "https://"))
	if err := os.WriteFile(l.file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	l.serve()
	if l.run, err = l.api.OpenRun(tb.Context(), wire.OpenRun{Workflow: "bench", Item: "a", OnFailure: "return"}, ""); err != nil {
		tb.Fatal(err)
	}
	return l
}

// serve starts the program, whose log begins with where it listens.
func (l *lab) serve() {
	l.t.Helper()
	cmd := exec.Command("sh", "-c", `exec ../bin/keep-proxy serve --config "$0" 2>&1`, l.file)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KEEP_") })
	c, at, err := begin(cmd, func(*child) {})
	if err != nil {
		l.t.Fatal(err)
	}
	l.child = c
	l.t.Cleanup(c.kill)
	l.connect(at.Admin, at.TokenFile)
}

// peer starts this binary as another process of the benchmark.
func (w *world) peer(variables ...string) (*child, announcement) {
	w.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), variables...)
	c, at, err := begin(cmd, func(*child) {})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.kill)
	return c, at
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
	l := newLab(b, kilobytes)
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
					if err := send(client, fmt.Sprintf("%s/send/%d", l.target, i), bytes.NewReader(body)); err != nil {
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
func (w *world) rssAnon() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.child.cmd.Process.Pid))
	if err != nil {
		w.t.Skipf("not run: this system shows no /proc: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			return kib << 10
		}
	}
	w.t.Fatal("no RssAnon in /proc")
	return 0
}
