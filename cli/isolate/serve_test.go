package isolate

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// slowly looks up like outside, but slow.shop.test once release is closed.
func slowly(release <-chan struct{}) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, name string) (bool, error) {
		if name == "slow.shop.test" {
			select {
			case <-release:
			case <-ctx.Done():
				return false, ctx.Err()
			}
		}
		return outside(ctx, name)
	}
}

// packed is a query as it is sent by UDP, and framed as it is by TCP.
func packed(t *testing.T, name string) []byte {
	t.Helper()
	q := query(name, dnsmessage.TypeA)
	msg, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func framed(t *testing.T, name string) []byte {
	t.Helper()
	msg := packed(t, name)
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
}

// answered says which name an answer is for, and what it says.
func answered(t *testing.T, msg []byte) string {
	t.Helper()
	var reply dnsmessage.Message
	if err := reply.Unpack(msg); err != nil || len(reply.Questions) != 1 {
		t.Fatalf("%x: %v", msg, err)
	}
	return reply.Questions[0].Name.String() + " " + told(reply)
}

// packets serves n at a socket, and is a client's socket that leads there.
func packets(t *testing.T, n *Names) (client net.Conn) {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- n.ServePackets(context.WithoutCancel(t.Context()), c) }()
	if client, err = net.Dial("udp", c.LocalAddr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = client.Close(), c.Close()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	return client
}

// receive reads one answer from a UDP socket.
func receive(t *testing.T, client net.Conn) string {
	t.Helper()
	buf := make([]byte, 4096)
	size, err := client.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return answered(t, buf[:size])
}

func TestPacketsWaitForNoOtherLookup(t *testing.T) {
	release := make(chan struct{})
	client := packets(t, NewNames(slowly(release)))
	for _, msg := range [][]byte{packed(t, "slow.shop.test."), []byte("nonsense"), packed(t, "api.shop.test.")} {
		if _, err := client.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	if got := receive(t, client); got != "api.shop.test. Success 198.18.0.2" {
		t.Errorf("got %s", got)
	}
	close(release)
	if got := receive(t, client); got != "slow.shop.test. Success 198.18.0.3" {
		t.Errorf("got %s", got)
	}
}

func TestClosingEndsLookups(t *testing.T) {
	looking, why := make(chan struct{}), make(chan error, 1)
	t.Cleanup(func() { // after packets closed the socket, and waited for the end
		if err := <-why; !errors.Is(err, context.Canceled) {
			t.Errorf("the lookup ended by %v", err)
		}
	})
	client := packets(t, NewNames(func(ctx context.Context, _ string) (bool, error) {
		close(looking)
		<-ctx.Done()
		why <- ctx.Err()
		return false, ctx.Err()
	}))
	if _, err := client.Write(packed(t, "api.shop.test.")); err != nil {
		t.Fatal(err)
	}
	<-looking
}

// pipes is a listener whose connections are pipes, so that time can be a bubble's.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (pipes) Close() error   { return nil }
func (pipes) Addr() net.Addr { return nil }

// streams serves n over TCP, and is a client's connection that leads there.
func streams(t *testing.T, n *Names) net.Conn {
	t.Helper()
	l := make(pipes)
	ended := make(chan error, 1)
	go func() { ended <- n.ServeStreams(context.WithoutCancel(t.Context()), l) }()
	client, server := net.Pipe()
	l <- server
	t.Cleanup(func() {
		close(l)
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("the connection still stands: %v", err)
		}
	})
	return client
}

// next reads one answer from a connection.
func next(t *testing.T, client net.Conn) string {
	t.Helper()
	var size uint16
	if err := binary.Read(client, binary.BigEndian, &size); err != nil {
		t.Fatal(err)
	}
	msg := make([]byte, size)
	if _, err := io.ReadFull(client, msg); err != nil {
		t.Fatal(err)
	}
	return answered(t, msg)
}

func TestStreamsCarrySeveralQueries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		client := streams(t, NewNames(slowly(release)))
		both := append(framed(t, "slow.shop.test."), framed(t, "api.shop.test.")...)
		for _, b := range both { // byte by byte
			if _, err := client.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if got := next(t, client); got != "api.shop.test. Success 198.18.0.2" {
			t.Errorf("got %s", got)
		}
		close(release)
		if got := next(t, client); got != "slow.shop.test. Success 198.18.0.3" {
			t.Errorf("got %s", got)
		}
	})
}

func TestStreamsEndWhenIdle(t *testing.T) {
	for what, begun := range map[string][]byte{"nothing": nil, "half a length": {0}, "half a query": {0, 40, 1, 2, 3}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := streams(t, NewNames(outside))
				if _, err := client.Write(begun); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("read: %v", err)
				}
				if took := time.Since(began); took < 10*time.Second || took > time.Minute {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestServingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n, ended := NewNames(outside), make(chan error, 2)
	go func() { ended <- n.ServeStreams(ctx, l) }()
	go func() { ended <- n.ServePackets(ctx, c) }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Write(framed(t, "api.shop.test.")); err != nil {
		t.Fatal(err)
	}
	if got := next(t, client); got != "api.shop.test. Success 198.18.0.2" {
		t.Errorf("got %s", got)
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	}
}
