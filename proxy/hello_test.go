package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"keep-proxy/ledger"
)

// written is a connection that keeps what is written to it, and gives nothing.
type written struct {
	net.Conn
	all []byte
}

func (c *written) Write(b []byte) (int, error) { c.all = append(c.all, b...); return len(b), nil }
func (*written) Read([]byte) (int, error)      { return 0, io.EOF }

// helloFor is a ClientHello that names the host, in records of at most size bytes each; 0 for one.
func helloFor(t *testing.T, host string, size int) []byte {
	t.Helper()
	var c written
	if err := tls.Client(&c, &tls.Config{ServerName: host, InsecureSkipVerify: true}).Handshake(); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if size == 0 {
		return c.all
	}
	var out []byte
	for piece := range slices.Chunk(c.all[5:], size) {
		out = binary.BigEndian.AppendUint16(append(out, c.all[:3]...), uint16(len(piece)))
		out = append(out, piece...)
	}
	return out
}

// greeter is an upstream that speaks first, and then says what it hears.
func greeter(t *testing.T) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, "220 ready\n")
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}
}

const cdn = "cdn.test:443"

func TestABlindTunnelCarriesNoTLSForAnotherHost(t *testing.T) {
	t.Parallel()
	alert := []byte{21, 3, 3, 0, 2, 1, 90}
	for name, c := range map[string]struct {
		said   []byte
		passes bool
	}{
		"the tunnel's own name":                {helloFor(t, "cdn.test", 0), true},
		"its own name in capitals":             {helloFor(t, "CDN.test", 0), true},
		"its own name in many records":         {helloFor(t, "cdn.test", 7), true},
		"no name":                              {helloFor(t, "", 0), true},
		"its own name behind an alert":         {append(slices.Clone(alert), helloFor(t, "cdn.test", 0)...), true},
		"half a hello":                         {helloFor(t, "api.test", 0)[:60], true},
		"no TLS":                               {[]byte("EHLO me\r\n"), true},
		"no TLS that begins like it":           {[]byte("\x16 is no TLS"), true},
		"another name":                         {helloFor(t, "api.test", 0), false},
		"another name in many records":         {helloFor(t, "api.test", 1), false},
		"another name behind an alert":         {append(slices.Clone(alert), helloFor(t, "api.test", 0)...), false},
		"another name below the tunnel's":      {helloFor(t, "api.cdn.test", 0), false},
		"another name that no server may take": {bytes.Replace(helloFor(t, "api.testx", 0), []byte("api.testx"), []byte("api.test."), 1), false},
		"another name that is no text":         {bytes.Replace(helloFor(t, "api.test", 0), []byte("api.test"), []byte("\xffpi\n.[st"), 1), false},
		"a hello behind what isn't one":        {append([]byte{20, 3, 3, 0, 1, 1}, helloFor(t, "api.test", 0)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &lines{}
			w := newWorld(t, created, func(config *Config) {
				config.Passthrough, config.Dial, config.Log = []string{"*.test"}, greeter(t), zerolog.New(log)
			})
			r := w.open("a")
			client, in, _ := r.tunnelTo(cdn)
			_ = client.SetDeadline(time.Now().Add(waitLimit))
			if line, err := in.ReadString('\n'); line != "220 ready\n" {
				t.Fatalf("the upstream doesn't come first: %q, %v", line, err)
			}
			for piece := range slices.Chunk(c.said, 50) {
				_, _ = client.Write(piece)
			}
			closeWrite(client)
			heard, err := io.ReadAll(in)
			if want := map[bool]string{true: string(c.said)}[c.passes]; string(heard) != want || c.passes && err != nil {
				t.Errorf("the upstream heard %q, %v; want %q", heard, err, want)
			}
			log.await(t, 1)
			if log.with(`"problem":"misdirected"`) == 1 == c.passes {
				t.Errorf("the log says %s", log.all())
			}
			if missing := r.state().Missing(); (len(missing) == 0) != c.passes {
				t.Errorf("the run lacks %+v", missing)
			}
		})
	}
}

// What is no TLS is carried as it comes, from the first byte on.
func TestABlindTunnelWaitsForNoTLSOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Passthrough, c.Dial = []string{"cdn.test"}, greeter(t) })
	client, in, _ := w.open("a").tunnelTo(cdn)
	_ = client.SetDeadline(time.Now().Add(waitLimit))
	for _, said := range []string{"220 ready\n", "Q", "\x16\x03\x01"} {
		if said[0] != '2' {
			_, _ = io.WriteString(client, said)
		}
		heard := make([]byte, len(said))
		if _, err := io.ReadFull(in, heard); string(heard) != said {
			t.Fatalf("heard %q, %v; want %q", heard, err, said)
		}
	}
}

// The work that a cut tunnel leaves undone is done by a tunnel to the host that was meant, and by none to another.
func TestACutTunnelMarksTheRunUntilTheRightOneGetsThrough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Passthrough, c.Dial = []string{"*.test"}, greeter(t) })
	r := w.open("a")
	client, in, _ := r.tunnelTo(cdn)
	_ = client.SetDeadline(time.Now().Add(waitLimit))
	_, _ = client.Write(helloFor(t, "api.test", 0))
	closeWrite(client)
	_, _ = io.Copy(io.Discard, in)
	r.tunnelTo(cdn)
	_, err := w.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeDone, false)
	refused, is := errors.AsType[*ledger.RefusedError](err)
	if !is || len(refused.Refused) != 1 || refused.Refused[0].Host != "api.test:443" || refused.Refused[0].Code != "misdirected" {
		t.Fatalf("finished as done: %v", err)
	}
	r.tunnelTo("api.test:443")
	if _, err := w.ledger.FinishRun(t.Context(), r.id, ledger.OutcomeDone, false); err != nil {
		t.Error(err)
	}
}

func TestARunThatReadsOnlyGetsABlindTunnelIfItIsToldSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, created, func(c *Config) { c.Passthrough, c.Dial = []string{"cdn.test"}, greeter(t) })
	for _, told := range []bool{false, true} {
		r := w.open(map[bool]string{false: "a", true: "b"}[told], func(o *ledger.OpenRun) { o.Mutations, o.Passthrough = ledger.MutationsNone, told })
		_, in, resp := r.tunnelTo(cdn)
		if told {
			if line, _ := in.ReadString('\n'); resp.StatusCode != http.StatusOK || line != "220 ready\n" {
				t.Errorf("told so: %d %q", resp.StatusCode, line)
			}
			continue
		}
		if resp.StatusCode == http.StatusOK {
			t.Fatal("it got a tunnel, which has no end to read to")
		}
		text, _ := io.ReadAll(bufio.NewReader(resp.Body))
		wantProblem(t, got{resp.StatusCode, resp.Header, string(text), nil}, "read-only-run", 403, "--passthrough")
		if missing := r.state().Missing(); len(missing) != 1 || !strings.HasPrefix(missing[0].Host, "cdn.test") {
			t.Errorf("the run lacks %+v", missing)
		}
	}
}
