package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"keep-proxy/admin/wire"
)

// habit is how one kind of client behaves, and how many of it there are.
type habit struct {
	name   string
	beside int
	round  func(*visitor) error
}

var habits = []habit{
	{"read by HTTP/1.1", 2, (*visitor).readsOne},
	{"read by HTTP/2, eight at once", 2, (*visitor).readsMany},
	{"read slowly", 2, (*visitor).readsSlowly},
	{"leave a stream", 2, (*visitor).leavesAStream},
	{"leave a mutation", 1, (*visitor).leavesAMutation},
	{"read what breaks off", 2, (*visitor).readsBroken},
	{"drop a tunnel", 2, (*visitor).dropsATunnel},
	{"end a tunnel on one side", 1, (*visitor).halfOpens},
	{"show a wrong token", 1, (*visitor).showsAWrongToken},
	{"mutate until it is settled", 4, (*visitor).mutates},
}

// rush is a habit that writes as much to the ledger as it can.
var rush = habit{"mutate in a rush", 4, (*visitor).rushes}

func (v *visitor) readsOne() error {
	return errors.Join(v.reads(v.h1, v.s.h1), v.reads(v.h1, v.s.h2))
}

func (v *visitor) readsMany() error {
	var all sync.WaitGroup
	problems := make([]error, 8)
	for i := range problems {
		all.Go(func() { problems[i] = v.reads(v.h2, v.upstream()) })
	}
	all.Wait()
	return errors.Join(problems...)
}

// open begins to read.
func (v *visitor) open(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.upstream().URL+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := v.client().Do(r)
	if err == nil && resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp, err
}

// readsSlowly takes an answer in small pieces, and every third one not to its end.
func (v *visitor) readsSlowly() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := v.open(ctx, "/blob")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	piece := make([]byte, 4<<10)
	length := 0
	for range 16 {
		n, err := io.ReadFull(resp.Body, piece)
		if err != nil {
			return err
		}
		length += n
		wait(ctx, soakDrip)
	}
	if v.n%3 == 0 {
		return nil
	}
	rest, err := io.Copy(io.Discard, resp.Body)
	if length += int(rest); err != nil || length != soakBlob {
		return fmt.Errorf("read %d bytes, %w", length, err)
	}
	return nil
}

func (v *visitor) leavesAStream() error {
	ctx, leave := context.WithTimeout(context.Background(), patience)
	defer leave()
	resp, err := v.open(ctx, "/drip")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.ReadFull(resp.Body, make([]byte, 2*len(kilobyte)))
	return err
}

// leavesAMutation goes away while it is being sent, or just before or after; what comes
// of it is between the proxy, the API and a person.
func (v *visitor) leavesAMutation() error {
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(v.name, " ", "-"), v.n)
	run, err := v.s.visit(name)
	if err != nil {
		return err
	}
	defer run.client.CloseIdleConnections()
	ctx, leave := context.WithTimeout(context.Background(), time.Duration(v.s.chance(10_000))*time.Microsecond)
	defer leave()
	_ = run.try(ctx, http.MethodPost, v.s.hooks.URL()+"/hook/bounded/"+name, strings.Repeat("x", v.s.chance(100_000)))
	settling, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := v.s.api.EndRun(settling, run.id, wire.EndRun{Reason: "it left", Actor: "ann"}); err != nil {
		return err
	}
	return v.s.settleItem(settling, name)
}

// readsBroken wants what broke off to look so.
func (v *visitor) readsBroken() error {
	for _, path := range []string{"/cut", "/reset"} {
		status, body, err := get(v.client(), v.upstream().URL+path)
		if err == nil && status != http.StatusBadGateway {
			return fmt.Errorf("%s: status %d and %d bytes look whole", path, status, len(body))
		}
	}
	return nil
}

// dropsATunnel leaves at some moment of opening one, in order or by a reset.
func (v *visitor) dropsATunnel() error {
	host := v.upstream().Listener.Addr().String()
	drop := func(c net.Conn) {
		if v.n%2 == 0 {
			_ = c.Close()
		} else {
			reset(c)
		}
	}
	if v.n/2%5 == 0 {
		c, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", v.way.proxy.Host)
		if err != nil {
			return err
		}
		text := v.way.opening(host)
		_, err = io.WriteString(c, text[:v.s.chance(len(text))])
		drop(c)
		return err
	}
	c, err := v.way.connect(host)
	if err != nil {
		return err
	}
	switch v.n / 2 % 5 {
	case 2:
		_, err = c.Write([]byte("\x16\x03\x01\x00\x05hello"))
	case 3:
		_, err = c.Write([]byte("\x05\x01\x00"))
	case 4:
		secure, err := v.way.secure(c, host, "http/1.1")
		if err != nil {
			return err
		}
		_, err = io.WriteString(secure, "GET /read HTTP/1.1\r\nHo")
		drop(secure)
		return err
	}
	drop(c)
	return err
}

// halfOpens ends its sending direction, and waits for the proxy to end the other.
func (v *visitor) halfOpens() error {
	host := v.upstream().Listener.Addr().String()
	c, err := v.way.connect(host)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if v.n%2 == 1 {
		secure, err := v.way.secure(c, host, "h2", "http/1.1")
		if err == nil {
			err = secure.CloseWrite()
		}
		if err != nil {
			return err
		}
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if err := tcp.CloseWrite(); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, c)
	return err
}

func (v *visitor) showsAWrongToken() error {
	y := *v.way
	y.credentials = "cnVuOndyb25n"
	c, err := y.connect(v.upstream().Listener.Addr().String())
	if err == nil {
		_ = c.Close()
		return errors.New("a wrong token opened a tunnel")
	}
	if !strings.Contains(err.Error(), " 407 ") {
		return err
	}
	return nil
}
