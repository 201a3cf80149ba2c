package upstream

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"keep-proxy/internal/verdict"
)

// ledgerOf counts what an upstream has read, by the id that each request carries.
type ledgerOf struct {
	mu    sync.Mutex
	count map[string]int
}

func (l *ledgerOf) add(id string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[id]++
	n, _ := strconv.Atoi(id)
	return n
}

// TestEveryDispatchIsSentAtMostOnce has an upstream that breaks off in every way,
// and holds what it counted against what the evidence claims.
func TestEveryDispatchIsSentAtMostOnce(t *testing.T) {
	t.Parallel()
	const senders, each = 8, 28
	for name, start := range map[string]func(*testing.T, *ledgerOf) *rawUpstream{
		"HTTP/1.1": fickleH1, "HTTP/2": fickleH2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted := &ledgerOf{count: map[string]int{}}
			u := start(t, counted)
			s := sender(t, Config{})
			claims := make([]Evidence, senders*each)
			var wg sync.WaitGroup
			for n := range senders {
				wg.Go(func() {
					for i := range each {
						id := n*each + i
						r := post(u.url("https", "/m"), "some content")
						r.Header = http.Header{"X-Id": {strconv.Itoa(id)}}
						claims[id] = send(t, s, r).ev
					}
				})
			}
			wg.Wait()
			counted.mu.Lock()
			defer counted.mu.Unlock()
			kinds := map[VerdictKind]int{}
			for id, ev := range claims {
				n := counted.count[strconv.Itoa(id)]
				kinds[Judge(ev, Facts{Method: "POST"}, verdict.Opinion{}).Kind]++
				if n > 1 {
					t.Errorf("dispatch %d was sent %d times", id, n)
				}
				if n != 0 && ev.NotSent {
					t.Errorf("dispatch %d was read by the upstream, but: %s", id, brief(ev))
				}
				if n != 1 && ev.Head {
					t.Errorf("dispatch %d was not read by the upstream, but: %s", id, brief(ev))
				}
			}
			if kinds[Applied] == 0 || kinds[Uncertain] == 0 || kinds[Committed] == 0 {
				t.Errorf("verdicts %v: the upstream was not fickle enough", kinds)
			}
		})
	}
}

func fickleH1(t *testing.T, counted *ledgerOf) *rawUpstream {
	t.Helper()
	return serve(t, serverTLS("http/1.1"), func(p *peer) {
		for {
			r, _, read := p.request()
			if !read {
				return
			}
			switch counted.add(r.Header.Get("X-Id")) % 7 {
			case 0:
				return
			case 1:
				p.reset()
				return
			case 2:
				p.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut")
				return
			case 3:
				p.say(ok)
				return
			case 4:
				p.say(ok + "stray")
			default:
				p.say(ok)
			}
		}
	})
}

func fickleH2(t *testing.T, counted *ledgerOf) *rawUpstream {
	t.Helper()
	return framedMeta(t, func(p *peer, fr *http2.Framer, f *http2.MetaHeadersFrame) {
		id := f.StreamID
		var n int
		for _, field := range f.RegularFields() {
			if field.Name == "x-id" {
				n = counted.add(field.Value)
			}
		}
		switch n % 7 {
		case 0:
			_ = p.Close()
		case 1:
			p.reset()
		case 2:
			writeHead(fr, id, false, "200", "content-length", "9")
			_ = fr.WriteRSTStream(id, http2.ErrCodeInternal)
		case 3:
			writeHead(fr, id, true, "200")
			_ = fr.WriteGoAway(id, http2.ErrCodeNo, nil)
		case 4:
			_ = fr.WriteRSTStream(id, http2.ErrCodeProtocol)
		default:
			writeHead(fr, id, true, "200")
		}
	})
}

// TestNothingIsLeftBehind is not parallel: it counts goroutines.
func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("exchanges", func(t *testing.T) {
		h1 := serve(t, serverTLS("http/1.1"), answeringAll(ok))
		early := serve(t, nil, func(p *peer) {
			_, _ = http.ReadRequest(p.br)
			p.say("HTTP/1.1 413 X\r\nContent-Length: 0\r\n\r\n")
			p.hold()
		})
		stuck := serve(t, nil, (*peer).hold)
		h2 := framed(t, func(_ *peer, fr *http2.Framer, id uint32) { _ = fr.WriteRSTStream(id, http2.ErrCodeCancel) })
		s := sender(t, Config{})
		for _, r := range []*Request{
			post(h1.url("https", "/"), "x"), post(h2.url("https", "/warm"), ""), post(h2.url("https", "/m"), "x"),
		} {
			send(t, s, r)
		}
		r := post(early.url("http", "/"), "")
		r.Body = zeros(32 << 20)
		send(t, s, r)
		r = post(stuck.url("http", "/"), "")
		r.Body, r.Total = zeros(32<<20), 5*time.Second
		if g := send(t, s, r); g.ev.ErrorClass != ErrorTimeout {
			t.Errorf("evidence %s", brief(g.ev))
		}
		a := s.Send(t.Context(), post(h1.url("https", "/"), "x"))
		a.Close()
	})
	deadline := time.Now().Add(2 * time.Minute)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		runtime.Gosched()
	}
}

func TestEvidenceHoldsNoContent(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, answer := range map[string]string{
		"malformed head":  secret + " \r\n\r\n",
		"malformed field": "HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n",
		"bad length":      "HTTP/1.1 200 OK\r\nContent-Length: " + secret + "\r\n\r\n",
		"bad chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + secret + "\r\n",
		"bad coding":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + secret + "\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := serve(t, nil, answering(answer))
			r := post(u.url("http", "/"+secret), secret)
			r.Header.Set("Authorization", "Bearer "+secret)
			g := send(t, sender(t, Config{}), r)
			if text := fmt.Sprintf("%+v %v", g.ev, g.err); strings.Contains(text, secret) || g.ev.ErrorClass != ErrorMalformed {
				t.Errorf("evidence %s", text)
			}
		})
	}
}

// held is a Body that yields half of its content only when it is released. The
// other half is more than is buffered, so that the head goes out with it.
type held struct {
	zeros
	release chan struct{}
}

func (h held) Open() (io.ReadCloser, error) {
	content, err := h.zeros.Open()
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(content, int64(h.zeros)/2), waiting(h.release), content), content}, err
}

// waiting is empty, once it is closed.
type waiting chan struct{}

func (w waiting) Read([]byte) (int, error) {
	<-w
	return 0, io.EOF
}

func TestASuccessDoesNotStopItsRequest(t *testing.T) {
	t.Parallel()
	const size = 40_000
	read := make(chan int64, 1)
	h1 := serve(t, serverTLS("http/1.1"), func(p *peer) {
		if r, err := http.ReadRequest(p.br); err == nil {
			p.say("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			n, _ := io.Copy(io.Discard, r.Body)
			read <- n
		}
	})
	h2 := serve(t, serverTLS("h2"), func(p *peer) {
		_, _ = p.br.Discard(len(http2.ClientPreface))
		fr := http2.NewFramer(p.Conn, p.br)
		_ = fr.WriteSettings()
		for n := int64(0); ; {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				writeHead(fr, f.StreamID, false, "200")
				_ = fr.WriteData(f.StreamID, true, []byte("ok"))
			case *http2.DataFrame:
				n += int64(len(f.Data()))
				if f.StreamEnded() {
					read <- n
				}
			}
		}
	})
	for name, u := range map[string]*rawUpstream{"HTTP/1.1": h1, "HTTP/2": h2} {
		t.Run(name, func(t *testing.T) {
			r := post(u.url("https", "/"), "")
			release := make(chan struct{})
			r.Body = held{zeros(size), release}
			a := sender(t, Config{}).Send(t.Context(), r)
			defer a.Close()
			start := make([]byte, 2)
			if _, err := io.ReadFull(a.Body, start); err != nil || a.Evidence().RequestComplete {
				t.Errorf("reading the answer: %v, request complete: %v", err, a.Evidence().RequestComplete)
			}
			close(release)
			_, err := io.ReadAll(a.Body)
			got{Answer: a, content: string(start), err: err, ev: a.Evidence()}.check(t, whole)
			if n := <-read; n != size || !a.Evidence().RequestComplete {
				t.Errorf("the upstream read %d bytes, request complete: %v", n, a.Evidence().RequestComplete)
			}
		})
	}
}
