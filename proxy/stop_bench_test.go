package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// streamEvery is how often the upstream of a stop's measurement writes to each stream.
const streamEvery = 250 * time.Millisecond

// streamer answers GET with a stream that has no end, and drops what else comes, which it
// keeps the time of.
type streamer struct {
	dropped atomic.Int64
	begun   time.Time
}

// ServeHTTP implements http.Handler.
func (s *streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		_, _ = io.Copy(io.Discard, r.Body)
		s.dropped.Store(int64(time.Since(s.begun)))
		lost(w, r)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for {
		if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// atOnce is how many streams are opened at a time: a machine that shakes hands with a
// thousand clients at once is too late for most of them.
const atOnce = 16

// follow reads a stream to its end, whatever that is. opened is called when it has begun,
// or can't.
func (s *streamer) follow(client *http.Client, target string, opened func()) (ended time.Duration, err error) {
	resp, err := client.Get(target)
	if err != nil {
		opened()
		return time.Since(s.begun), err
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewReader(resp.Body)
	_, err = lines.ReadString('\n')
	opened()
	for err == nil {
		_, err = lines.ReadString('\n')
	}
	return time.Since(s.begun), err
}

// stopping is one way of stopping what is open.
type stopping struct {
	name string
	// runs is how many runs share the streams, 0 for one to each.
	runs int
	h2   bool
	// stop ends what is open and returns when that began.
	stop func(b *testing.B, s *streamer, w *world, workflow string, runs []*run) time.Duration
	// cpu is the processor time of the whole process meanwhile, in milliseconds: proxy,
	// clients and upstream.
	cpu []float64
}

// byUnknown sends a mutation whose outcome nobody can know: the stop begins where its
// upstream drops it.
func byUnknown(b *testing.B, s *streamer, w *world, workflow string, _ []*run) time.Duration {
	b.Helper()
	stopper := w.open("stopper", func(o *ledger.OpenRun) { o.Workflow = workflow })
	if g := stopper.post("/pay", `{"to":"x"}`); g.problem() != "unknown-outcome" {
		b.Fatalf("the stop: %d %s, %v", g.status, g.body, g.err)
	}
	return time.Duration(s.dropped.Load())
}

// byPerson ends the runs, of which the proxy isn't told.
func byPerson(b *testing.B, s *streamer, w *world, _ string, runs []*run) time.Duration {
	b.Helper()
	at := time.Since(s.begun)
	for _, r := range runs {
		if _, err := w.ledger.EndRun(context.Background(), r.id, verdict.Transient, "bench", "bench"); err != nil {
			b.Fatal(err)
		}
	}
	return at
}

// BenchmarkStop is how long it takes from a stop to the last open stream's end at its
// client: from the moment when an upstream drops a mutation whose outcome nobody can know,
// which is recorded on a disk before it stops anything, or when a person ends a run.
func BenchmarkStop(b *testing.B) {
	for _, way := range []stopping{
		{name: "one run", runs: 1, stop: byUnknown},
		{name: "a run each", stop: byUnknown},
		{name: "one run over HTTP2", runs: 1, h2: true, stop: byUnknown},
		{name: "ended by a person", runs: 1, stop: byPerson},
	} {
		for _, streams := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%s/streams=%d", strings.ReplaceAll(way.name, " ", "-"), streams), func(b *testing.B) {
				way, s := way, &streamer{begun: time.Now()}
				w := newDiskWorld(b, s.ServeHTTP)
				var all, cut []float64
				for n := 0; b.Loop(); n++ {
					first, last := way.measure(b, s, w, fmt.Sprintf("wf-%d", n), streams)
					cut, all = append(cut, first), append(all, last)
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(cut), "first-ms")
				b.ReportMetric(median(all), "last-ms")
				b.ReportMetric(slices.Max(all), "worst-ms")
				b.ReportMetric(median(way.cpu), "cpu-ms")
			})
		}
	}
}

// measure opens streams, stops them, and returns in milliseconds when the first and the
// last of them ended.
func (y *stopping) measure(b *testing.B, s *streamer, w *world, workflow string, streams int) (first, last float64) {
	b.Helper()
	runs := make([]*run, y.runs)
	if y.runs == 0 {
		runs = make([]*run, streams)
	}
	for i := range runs {
		runs[i] = w.open(fmt.Sprint("item-", i), func(o *ledger.OpenRun) { o.Workflow = workflow })
		runs[i].client = w.newClient(url.UserPassword("run", runs[i].token), y.h2)
	}
	ends := make([]time.Duration, streams)
	var opened, ended sync.WaitGroup
	opened.Add(streams)
	opening := make(chan struct{}, atOnce)
	var early atomic.Int64
	stopped := make(chan struct{})
	for i := range streams {
		opening <- struct{}{}
		ended.Go(func() {
			var err error
			ends[i], err = s.follow(runs[i%len(runs)].client, w.upstream.URL+"/stream", func() { opened.Done(); <-opening })
			select {
			case <-stopped:
			default:
				if early.Add(1) == 1 {
					b.Errorf("a stream ended before the stop: %v", err)
				}
			}
			if errors.Is(err, io.EOF) {
				b.Error("a stream ended as if it were whole")
			}
		})
	}
	opened.Wait()
	close(stopped)
	used := processorTime(b)
	at := y.stop(b, s, w, workflow, runs)
	ended.Wait()
	y.cpu = append(y.cpu, float64((processorTime(b)-used).Microseconds())/1e3)
	for _, r := range runs {
		r.client.CloseIdleConnections()
	}
	in := func(d time.Duration) float64 { return float64(d-at) / 1e6 }
	return in(slices.Min(ends)), in(slices.Max(ends))
}
