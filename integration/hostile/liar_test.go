package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// liar is an upstream that answers by script: the request's query says which.
type liar struct {
	listener net.Listener
	scripts  map[string]string
	wg       sync.WaitGroup
	// later is taken from when a script says {LATER}, and given back when what follows
	// is written.
	later, said chan struct{}

	mu    sync.Mutex
	conns []net.Conn
}

func newLiar(tb testing.TB, scripts map[string]string) *liar {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	u := &liar{listener: l, scripts: scripts, later: make(chan struct{}), said: make(chan struct{})}
	u.wg.Add(1)
	go u.accept()
	tb.Cleanup(func() {
		_ = l.Close()
		u.mu.Lock()
		for _, c := range u.conns {
			_ = c.Close()
		}
		u.mu.Unlock()
		u.wg.Wait()
	})
	return u
}

func (u *liar) authority() string { return u.listener.Addr().String() }

func (u *liar) accept() {
	defer u.wg.Done()
	for {
		c, err := u.listener.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		u.conns = append(u.conns, c)
		u.mu.Unlock()
		u.wg.Add(1)
		go u.serve(c)
	}
}

// serve answers one request after the other until a script ends the connection.
func (u *liar) serve(c net.Conn) {
	defer u.wg.Done()
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		name := r.URL.Query().Get("v")
		script, known := u.scripts[name]
		if !known {
			body := fmt.Sprintf(`{"clean":%q}`, name)
			script = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		script, early := strings.CutPrefix(script, "{EARLY}")
		if !early {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		if !u.play(c, script) {
			return
		}
	}
}

// play writes a script; it reports whether the connection goes on.
func (u *liar) play(c net.Conn, script string) bool {
	var out bytes.Buffer
	flush := func() { _, _ = c.Write(out.Bytes()); out.Reset() }
	waited := false
	defer func() {
		if waited {
			u.said <- struct{}{}
		}
	}()
	for {
		text, rest, found := cutControl(script)
		out.WriteString(text)
		if !found {
			flush()
			return true
		}
		word, after, _ := strings.Cut(rest, "}")
		script = after
		switch word {
		case "CLOSE":
			flush()
			_ = c.Close()
			return false
		case "RESET":
			flush()
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
			return false
		case "LATER":
			flush()
			<-u.later
			waited = true
		case "BOMB":
			out.WriteString(bomb())
		default:
			n, what, _ := strings.Cut(strings.TrimPrefix(word, "REPEAT:"), ":")
			times, err := strconv.Atoi(n)
			if err != nil {
				panic("a script with " + word)
			}
			out.WriteString(strings.Repeat(what, times))
		}
	}
}

// cutControl finds the next word in braces and capitals.
func cutControl(script string) (text, rest string, found bool) {
	for i := 0; i+1 < len(script); i++ {
		if script[i] == '{' && 'A' <= script[i+1] && script[i+1] <= 'Z' {
			return script[:i], script[i+1:], true
		}
	}
	return script, "", false
}

// bomb is a small answer that unpacks to 10 MiB.
func bomb() string {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 10<<20))
	_ = w.Close()
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String())
}
