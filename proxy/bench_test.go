package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elazarl/goproxy"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"keep-proxy/internal/clock"
	"keep-proxy/ledger"
	"keep-proxy/ledger/badgerstore"
)

// bare starts what many people run today: goproxy's own MITM with a certificate
// store and verified upstreams, without handlers.
func (w *world) bare(tb testing.TB) (address string) {
	tb.Helper()
	dir := tb.TempDir()
	ca, err := LoadCA(dir+"/ca.pem", dir+"/ca.key", time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	w.roots.AppendCertsFromPEM(ca.PEM())
	g := goproxy.NewProxyHttpServer()
	g.Logger = silent{}
	g.ConnectDial = nil
	g.Tr = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: 256}
	g.CertStore = &certificateStore{}
	config := goproxy.TLSConfigFromCA(&ca.certificate)
	g.OnRequest().HandleConnect(goproxy.FuncHttpsHandler(func(host string, _ *goproxy.ProxyCtx) (*goproxy.ConnectAction, string) {
		return &goproxy.ConnectAction{Action: goproxy.ConnectMitm, TLSConfig: config}, host
	}))
	server := httptest.NewServer(g)
	tb.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// certificateStore implements goproxy.CertStorage for one host.
type certificateStore struct {
	leaf atomic.Pointer[tls.Certificate]
}

// Fetch gives the one leaf.
func (s *certificateStore) Fetch(_ string, gen func() (*tls.Certificate, error)) (*tls.Certificate, error) {
	if leaf := s.leaf.Load(); leaf != nil {
		return leaf, nil
	}
	leaf, err := gen()
	if err == nil {
		s.leaf.Store(leaf)
	}
	return leaf, err
}

var kilobyte = bytes.Repeat([]byte("y"), 1024)

func answerKilobyte(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = w.Write(kilobyte)
}

// way is one way of sending the same kind of request.
type way struct {
	name   string
	client *http.Client
	path   string
	fixed  bool
	rates  []float64
	// cpu is the processor time of the whole process for a request, in microseconds:
	// proxy, clients and upstream. It is steadier than the rate on a busy machine.
	cpu []float64
}

// round sends for a while with this many clients, and keeps the rate.
func (y *way) round(b *testing.B, base string, clients int, unique *atomic.Int64, d time.Duration) {
	b.Helper()
	var done atomic.Int64
	var all sync.WaitGroup
	begun, used := time.Now(), processorTime(b)
	for range clients {
		all.Go(func() {
			for time.Since(begun) < d {
				n := int64(0)
				if !y.fixed {
					n = unique.Add(1)
				}
				body := fmt.Sprintf(`{"to":"%d","pad":"%s"}`, n, strings.Repeat("x", 990))
				resp, err := y.client.Post(base+y.path, "application/json", strings.NewReader(body))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("%s: status %d", y.name, resp.StatusCode)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	y.rates = append(y.rates, float64(done.Load())/time.Since(begun).Seconds())
	y.cpu = append(y.cpu, float64((processorTime(b)-used).Microseconds())/float64(max(done.Load(), 1)))
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// newDiskWorld is a proxy over a ledger on disk.
func newDiskWorld(b *testing.B, handler http.HandlerFunc) *world {
	b.Helper()
	system := clock.System()
	now := func() ledger.Stamp { return ledger.Stamp(clock.Take(system)) }
	var ids atomic.Int64
	newID := func() string { return fmt.Sprintf("id%d", ids.Add(1)) }
	store, err := badgerstore.Open(b.Context(), badgerstore.Config{Dir: b.TempDir() + "/ledger", Now: now, NewID: newID, Logger: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	l := ledger.New(store, ledger.Config{Now: now, NewID: newID})
	w := newWorld(b, handler, func(c *Config) { c.Ledger, c.NewID = l, newID })
	w.ledger = l
	return w
}

// newBenchWorld is such a proxy with a run that may go on.
func newBenchWorld(b *testing.B) (w *world, token string) {
	b.Helper()
	w, token = newDiskWorld(b, answerKilobyte), "bench"
	if _, err := w.ledger.OpenRun(b.Context(), ledger.OpenRun{
		Workflow: "wf", Item: "a", TTL: time.Hour, TokenSHA256: TokenDigest(token), OnFailure: ledger.FailureReturn,
	}); err != nil {
		b.Fatal(err)
	}
	return w, token
}

func (w *world) benchClient(b *testing.B, address string, user *url.Userinfo) *http.Client {
	b.Helper()
	tr := &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: address, User: user}), MaxIdleConnsPerHost: 256,
		TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12},
	}
	b.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// BenchmarkFrontDoor compares over one TLS upstream, in interleaved rounds: a bare
// goproxy, the same requests passed through unrecorded, durable mutations on a
// ledger on disk, and replays. It reports medians of requests per second, and
// their ratios: pass/bare, mutation/pass and replay/pass.
func BenchmarkFrontDoor(b *testing.B) {
	for _, clients := range []int{16, 1} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			w, token := newBenchWorld(b)
			user := url.UserPassword("run", token)
			ways := []*way{
				{name: "bare", client: w.benchClient(b, w.bare(b), nil), path: "/telemetry"},
				{name: "pass", client: w.benchClient(b, w.address, user), path: "/telemetry"},
				{name: "mutation", client: w.benchClient(b, w.address, user), path: "/pay"},
				{name: "replay", client: w.benchClient(b, w.address, user), path: "/again", fixed: true},
			}
			var unique atomic.Int64
			for _, y := range ways {
				y.round(b, w.upstream.URL, clients, &unique, 200*time.Millisecond)
				y.rates, y.cpu = nil, nil
			}
			b.ResetTimer()
			rounds := 0
			for b.Loop() {
				for _, y := range ways {
					y.round(b, w.upstream.URL, clients, &unique, 500*time.Millisecond)
				}
				rounds++
			}
			for i, y := range ways {
				rate := median(y.rates)
				b.ReportMetric(rate, y.name+"/s")
				b.ReportMetric(median(y.cpu), y.name+"-cpu-us")
				b.Logf("%-9s %8.0f/s (%.0f to %.0f in %d rounds), %4.0f µs of processor time each",
					y.name, rate, slices.Min(y.rates), slices.Max(y.rates), rounds, median(y.cpu))
				if i > 0 {
					reference := ways[min(i-1, 1)]
					b.ReportMetric(rate/median(reference.rates), y.name+"/"+reference.name)
				}
			}
		})
	}
}
