package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// sendTo tells a process of this test to send to the URL in it, and nothing else.
const sendTo = "UPSTREAM_TEST_SEND_TO"

func TestMain(m *testing.M) {
	if at := os.Getenv(sendTo); at != "" {
		sendAndStay(at)
		return
	}
	os.Exit(m.Run())
}

// unread is content that fits into the buffers of sockets, and is more than a hesitant upstream takes.
var unread = strings.Repeat("x", inlineBody)

// hesitant is an upstream that reads nothing before it is told to, but for what a TLS handshake
// takes, and has little room for what it is sent: most of a request waits on the sender's side.
func hesitant(t *testing.T, protos ...string) (at *url.URL, accepted <-chan net.Conn) {
	t.Helper()
	narrow := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 1) })
		if err != nil {
			return err
		}
		return failed
	}}
	l, err := narrow.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns, scheme := make(chan net.Conn, 1), "http"
	if len(protos) > 0 {
		scheme = "https"
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if len(protos) > 0 {
			session := tls.Server(c, serverTLS(protos...))
			_ = session.HandshakeContext(t.Context())
			c = session
		}
		conns <- c
	}()
	t.Cleanup(func() { _ = l.Close() })
	return mustURL(t, scheme+"://"+l.Addr().String()+"/m"), conns
}

// wantCut reads what arrives of a request whose sending has ended: it isn't the whole.
func wantCut(t *testing.T, c net.Conn) {
	t.Helper()
	defer func() { _ = c.Close() }()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	in := bufio.NewReader(c)
	whole := arrives
	if session, ok := c.(*tls.Conn); ok && session.ConnectionState().NegotiatedProtocol == "h2" {
		whole = arrivesH2
	}
	if whole(in) {
		t.Error("a whole request arrived after its sending had ended")
	}
}

// arrives reports whether a whole request comes.
func arrives(in *bufio.Reader) bool {
	r, err := http.ReadRequest(in)
	if err != nil {
		return false
	}
	content, err := io.ReadAll(r.Body)
	return err == nil && string(content) == unread
}

// arrivesH2 is arrives for HTTP/2.
func arrivesH2(in *bufio.Reader) bool {
	if _, err := in.Discard(len(http2.ClientPreface)); err != nil {
		return false
	}
	fr := http2.NewFramer(io.Discard, in)
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return false
		}
		if data, ok := f.(*http2.DataFrame); ok && data.StreamEnded() {
			return true
		}
	}
}

// Once a sending has ended, nothing may make its request whole: settle counts from there, and who
// believes that it is absent sends it again.
func TestNothingArrivesAfterTheEndOfASending(t *testing.T) {
	t.Parallel()
	// Connecting and sending take less than enough, also on a busy machine.
	const soon, enough = 100 * time.Millisecond, 3 * time.Second
	for name, protos := range map[string][]string{"HTTP/1.1": nil, "HTTP/1.1 in TLS": {"http/1.1"}, "HTTP/2": {"h2"}} {
		for how, tc := range map[string]struct {
			cfg  Config
			ends func(*Request, context.CancelFunc)
		}{
			"its deadline":          {Config{}, func(r *Request, _ context.CancelFunc) { r.Total = enough }},
			"that of its head":      {Config{ResponseTimeout: soon}, func(*Request, context.CancelFunc) {}},
			"the end of its caller": {Config{}, func(_ *Request, cancel context.CancelFunc) { time.AfterFunc(enough, cancel) }},
		} {
			t.Run(name+", by "+how, func(t *testing.T) {
				t.Parallel()
				at, accepted := hesitant(t, protos...)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				tc.cfg.LookEvery = soon / 10
				r := post(at, unread)
				tc.ends(r, cancel)
				a := sender(t, tc.cfg).Send(ctx, r)
				if ev := a.Evidence(); ev.Head || ev.NotSent || ev.BytesWritten < int64(len(unread)) || ev.Ended.BootID == "" {
					t.Fatalf("evidence: %s", brief(ev))
				}
				wantCut(t, <-accepted)
			})
		}
	}
}

// A sender that is lost is taken for having ended, and nobody is left who could end its sending.
func TestASendingEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	at, accepted := hesitant(t)
	sending := exec.CommandContext(t.Context(), os.Args[0])
	sending.Env = append(os.Environ(), sendTo+"="+at.String())
	says, err := sending.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sending.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(says).ReadString('\n'); err != nil {
		t.Fatalf("the sender says %q, %v", line, err)
	}
	_ = sending.Process.Kill()
	_ = sending.Wait()
	wantCut(t, <-accepted)
}

// telling says when a whole request was written.
type telling struct {
	*net.TCPConn
	n int
}

// Write implements net.Conn.
func (c *telling) Write(p []byte) (int, error) {
	n, err := c.TCPConn.Write(p)
	if c.n += n; c.n > len(unread) && c.n-n <= len(unread) {
		fmt.Println("written")
	}
	return n, err
}

// sendAndStay sends and waits for the answer.
func sendAndStay(at string) {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	s := New(Config{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &telling{TCPConn: c.(*net.TCPConn)}, nil
	}})
	s.Send(context.Background(), post(u, unread))
}
