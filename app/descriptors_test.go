package app

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"keep-proxy/config"
	"keep-proxy/upstream"
)

func TestDescriptorsAreLeftToTheLedger(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]int{0: 0, 256: 128, 1024: 512, 20_000: 19_488, ^uint64(0): 1<<30 - spareDescriptors} {
		if got := clientDescriptors(limit, 0); got != want {
			t.Errorf("of %d descriptors %d are the clients', want %d", limit, got, want)
		}
	}
}

// A ledger of some gigabytes holds more descriptors than half of a small limit: what is
// left is shared, and not refused to every client.
func TestALargeLedgerLeavesDescriptorsToClients(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit, used uint64
		want        int
	}{{1024, 632, 828}, {1024, 1023, 1024}, {1024, 2000, 1024}, {20_000, 632, 19_488}} {
		if got := clientDescriptors(c.limit, c.used); got != c.want {
			t.Errorf("of %d descriptors, %d of them in use, the highest of a client is %d, want %d", c.limit, c.used, got, c.want)
		}
	}
	if used := usedDescriptors(); used < 3 {
		t.Errorf("%d descriptors are in use", used)
	}
}

// What is above the highest descriptor of clients is shared: the ledger keeps some of it
// for itself.
func TestSomeDescriptorsAreTheLedgersAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		limit   uint64
		clients int
		want    int
	}{{1024, 512, 896}, {256, 128, 224}, {1024, 1020, 1023}, {1024, 1024, 1024}, {20_000, 19_488, 19_872}, {^uint64(0), 1<<30 - 512, 1<<30 - 128}} {
		if got := otherDescriptors(c.limit, c.clients); got != c.want {
			t.Errorf("of %d descriptors, up to %d of clients, others have up to %d, want %d", c.limit, c.clients, got, c.want)
		}
	}
}

// Neither connections to upstreams nor those of the admin API take the ledger's descriptors.
// Nothing is connected to: it is proven that nothing was sent.
func TestConnectionsOfOthersLeaveTheLedgersDescriptors(t *testing.T) {
	t.Parallel()
	e := newEgress(config.Egress{})
	port, connected := listener(t, "127.0.0.1:0")
	through, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://127.0.0.1:" + port}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"mutations": e.Dial, "reads": e.DialRead, "through another proxy": through.Dial,
	} {
		e.bound.highest.Store(1)
		_, err := dial(t.Context(), "tcp", "127.0.0.1:"+port)
		var refused *upstream.Error
		if !errors.As(err, &refused) || !refused.Class.Unsent() || !strings.Contains(err.Error(), "the ledger's") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A name is not even looked up; nor is it given to another proxy unjudged for that.
	e.resolver.PreferGo = true // The system's resolver can't be bounded.
	byName, err := newUpstreamProxy(e, config.UpstreamProxy{URL: "http://keep.test:" + port}, config.Sources{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	through.dialer, byName.dialer.Control = net.Dialer{}, nil
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"a name": e.Dial, "a name through another proxy": through.Dial, "another proxy's name": byName.DialNamed,
	} {
		_, err := dial(t.Context(), "tcp", "keep.test:"+port)
		if err == nil || !strings.Contains(err.Error(), errLedgers.Text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if connected.Load() != 0 {
		t.Errorf("%d connections", connected.Load())
	}
	e.bound.highest.Store(1 << 20)
	c, err := e.Dial(t.Context(), "tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	t.Run("of the admin API", func(t *testing.T) {
		t.Parallel()
		inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		b := &descriptorBound{}
		l := b.wrap(inner)
		accepted := make(chan net.Conn, 8)
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		b.highest.Store(1)
		turned, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turned.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("beyond the bound: %v", err)
		}
		b.highest.Store(0)
		taken, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := <-accepted
		if c.RemoteAddr().String() != taken.LocalAddr().String() {
			t.Error("another connection was taken")
		}
		_, _, _, _ = turned.Close(), taken.Close(), c.Close(), l.Close()
		<-accepted
	})
}
