package integration

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// longContent is how long one content is, in bytes; -short takes a twentieth.
const longContent = 10 << 30

// BenchmarkLong reports the most of the program's RssAnon while one content of 10 GiB is
// downloaded, and one is uploaded, by either protocol. It fails if a byte is missing.
func BenchmarkLong(b *testing.B) {
	for _, protocol := range []string{"h1", "h2"} {
		for _, way := range []string{"download", "upload"} {
			b.Run(way+"/"+protocol, func(b *testing.B) { long10GiB(b, protocol == "h2", way == "upload") })
		}
	}
}

func long10GiB(b *testing.B, h2, up bool) {
	b.Helper()
	l := newLab(b, asked)
	client := l.keep().clientOf(b, h2)
	n := int64(longContent)
	if testing.Short() {
		n /= 20
	}
	carry := func() (int64, error) { return download(client, l.target, n) }
	if up {
		carry = func() (int64, error) { return upload(client, l.target, n) }
	}
	idle := l.rssAnon()
	var most atomic.Int64
	for b.Loop() {
		stop := make(chan struct{})
		var watch sync.WaitGroup
		watch.Go(func() { l.watchMemory(&most, stop) })
		begun := time.Now()
		got, err := carry()
		close(stop)
		watch.Wait()
		if err != nil || got != n {
			b.Fatalf("%d bytes of %d: %v", got, n, err)
		}
		took := time.Since(begun)
		b.Logf("%d bytes in %s, %.0f MiB a second: RssAnon idle %.1f MiB, at most %.1f MiB",
			n, took.Round(time.Millisecond), mib(n)/took.Seconds(), mib(idle), mib(most.Load()))
	}
	b.ReportMetric(mib(most.Load()), "most-MiB")
}

// download reads a content of n bytes, and returns how many there were.
func download(c *http.Client, target string, n int64) (int64, error) {
	resp, err := c.Get(fmt.Sprintf("%s/read?n=%d", target, n))
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.Copy(io.Discard, resp.Body)
}

// upload sends a content of n bytes, and returns how many of them arrived.
func upload(c *http.Client, target string, n int64) (int64, error) {
	r, err := http.NewRequest(http.MethodPost, target+"/ignored", io.LimitReader(endless{}, n))
	if err != nil {
		return 0, err
	}
	r.ContentLength = n
	resp, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(said), 10, 64)
}
