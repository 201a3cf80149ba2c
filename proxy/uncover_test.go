package proxy

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"keep-proxy/ledger"
)

// alsoAt are the test rules, in force at another host too.
func alsoAt(host string) string {
	return strings.Replace(testRules, `hosts: ["HOST"]`, `hosts: ["HOST", "`+host+`"]`, 1)
}

// A tunnel that was blind when it was opened isn't for longer than it may be: what is sent in it
// after its host became a connector's would pass unrecorded.
func TestAReloadCutsTheBlindTunnelsToAConnectorsHost(t *testing.T) {
	t.Parallel()
	theirs, others := echo(t), echo(t)
	w := newWorld(t, created, func(c *Config) { c.Passthrough = []string{"127.0.0.1"} })
	r := w.open("a")
	c, in, _ := r.tunnelTo(theirs)
	kept, keptIn, _ := r.tunnelTo(others)
	says := func(c net.Conn, in *bufio.Reader) error {
		_, _ = io.WriteString(c, "hello\n")
		_, err := in.ReadString('\n')
		return err
	}
	if err := says(c, in); err != nil {
		t.Fatal(err)
	}
	w.use(testRules)
	w.proxy.Reloaded()
	if err := says(c, in); err != nil {
		t.Errorf("a reload that has nothing to do with it cut the tunnel: %v", err)
	}
	w.use(alsoAt(theirs))
	w.proxy.Reloaded()
	// It is cut beside the reload, which waits for no connection.
	for deadline := time.Now().Add(waitLimit); says(c, in) == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the tunnel is still blind")
		}
	}
	if err := says(kept, keptIn); err != nil {
		t.Errorf("the tunnel to another host: %v", err)
	}
}

// A reload that comes while a blind tunnel is being made counts too.
func TestAReloadWhileABlindTunnelIsMade(t *testing.T) {
	t.Parallel()
	target := echo(t)
	var w *world
	w = newWorld(t, created, func(c *Config) {
		c.Passthrough = []string{"127.0.0.1"}
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			w.use(alsoAt(target))
			w.proxy.Reloaded()
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}
	})
	c, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\nProxy-Authorization: Basic %s\r\n\r\n",
		target, base64.StdEncoding.EncodeToString([]byte("run:"+w.open("a").token)))
	if resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect}); err == nil {
		t.Errorf("a blind tunnel to a connector's host: %s", resp.Status)
	}
}

// Nor does a connection that changed protocols go on once its rule doesn't name the protocol.
func TestAReloadCutsAConnectionWhoseRuleNamesItsProtocolNoMore(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			w := newLive(t, changes)
			r := w.open("a")
			u := w.request(r, way, "GET", "/live", ask, "")
			u.says(t, "hello")
			base := strings.Replace(testRules, `["HOST"]`, `["HOST", "`+w.plain+`"]`, 1)
			w.use(base + strings.Replace(liveRules, "chat/2", "chat/3", 1))
			w.proxy.Reloaded()
			u.says(t, "again")
			w.use(base + strings.Replace(liveRules, "[websocket, chat/2]", "[chat/2]", 1))
			w.proxy.Reloaded()
			for carried := true; carried; { // It is cut beside the reload.
				_, _ = io.WriteString(u, "more\n") // Which comes back where it is carried.
				line, err := u.in.ReadString('\n')
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("after it the client reads %q, %v", line, err)
				}
				carried = err == nil
			}
			<-w.ends
			if fields := w.ended(); fields["ended"] != "stop" || fields["delivered"] != false {
				t.Errorf("the log says %v", fields)
			}
			if got := r.state().State; got != ledger.RunRunning {
				t.Errorf("the run is %s", got)
			}
		})
	}
}
