package admin_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/ledger"
)

// pipe is a listener on loopback, in memory, so that time can be the test's.
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipe() *pipe { return &pipe{make(chan net.Conn), make(chan struct{})} }

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	select {
	case <-p.closed:
	default:
		close(p.closed)
	}
	return nil
}

func (*pipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081} }

// post sends a request over a new connection and returns the answer.
func (p *pipe) post(path, body string) (int, string, error) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	p.conns <- theirs
	fmt.Fprintf(ours, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, operatorToken, len(body), body)
	got, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	content, err := io.ReadAll(got.Body)
	return got.StatusCode, string(content), err
}

func TestFinishWaitsAsLongAsTheSendingTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSilentWorld(t, nil)
		run, err := w.ledger.OpenRun(t.Context(), ledger.OpenRun{Workflow: "billing", Item: "order-1", TokenSHA256: digest("x")})
		if err != nil {
			t.Fatal(err)
		}
		m := w.claim(transfer(&wire.Run{ID: run.ID, Item: "order-1"}))
		ln := newPipe()
		served := make(chan error, 1)
		go func() { served <- w.server.Serve(ln) }()
		time.AfterFunc(5*time.Minute, func() { w.apply(m, 200, "ok") })

		began := time.Now()
		status, body, err := ln.post("/v1/runs/"+run.ID+"/finish", `{"outcome":"done"}`)
		if err != nil || status != 200 || !strings.Contains(body, `"state":"finished"`) {
			t.Errorf("finish: %d %s, %v", status, body, err)
		}
		if waited := time.Since(began); waited < 5*time.Minute || waited > 5*time.Minute+time.Second {
			t.Errorf("waited %s, the sending took 5m", waited)
		}
		if err := w.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestABodyMustComeInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSilentWorld(t, nil)
		ln := newPipe()
		served := make(chan error, 1)
		go func() { served <- w.server.Serve(ln) }()
		ours, theirs := net.Pipe()
		defer ours.Close()
		ln.conns <- theirs
		began := time.Now()
		fmt.Fprintf(ours, "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: 99\r\n\r\n{", operatorToken)
		got, err := http.ReadResponse(bufio.NewReader(ours), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		content, _ := io.ReadAll(got.Body)
		p := answer{got.StatusCode, got.Header, string(content)}.problem(t)
		checkProblem(t, &p, 400, "bad-request", "did not arrive whole")
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("waited %s for a body, want 1m", waited)
		}
		if err := w.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		<-served
	})
}
