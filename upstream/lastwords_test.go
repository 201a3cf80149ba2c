package upstream

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// Who has answered may still be reading, however slowly: after what may be a success the
// request is not cut off for that, since the upstream would have half of it. After anything
// else, and where nobody reads, it is.
func TestASuccessWaitsForItsRequestAsLongAsThatGoesOn(t *testing.T) {
	t.Parallel()
	const size, pause = 80_000, lastWords - time.Second
	for name, tc := range map[string]struct {
		status   int
		most     int64 // of the content the upstream reads no more
		complete bool
		took     time.Duration // at least, on a clock that only waiting moves
	}{
		"200, read slowly":          {200, size, true, 2 * lastWords},
		"303, read slowly":          {303, size, true, 2 * lastWords},
		"302, read slowly":          {302, size, true, 2 * lastWords},
		"200, not read any more":    {200, size / 2, false, 2 * lastWords},
		"200, not read":             {200, 0, false, lastWords},
		"303, not read":             {303, 0, false, lastWords},
		"400, would be read slowly": {400, size, false, 0},
		"503, would be read slowly": {503, size, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				read := make(chan int64, 1)
				go func() {
					defer func() { _ = theirs.Close() }()
					r, err := http.ReadRequest(bufio.NewReader(theirs))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = fmt.Fprintf(theirs, "HTTP/1.1 %d Status\r\nContent-Length: 0\r\n\r\n", tc.status)
					n := int64(0)
					for n < tc.most {
						<-time.After(pause)
						more, err := io.CopyN(io.Discard, r.Body, min(tc.most-n, size/4))
						if n += more; err != nil {
							break
						}
					}
					read <- n
					<-t.Context().Done()
				}()
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				s := sender(t, Config{FreshFor: -1, Dial: func(context.Context, string, string) (net.Conn, error) { return ours, nil }})
				r := post(mustURL(t, "http://127.0.0.1:1/"), "")
				r.Body = zeros(size)
				began := time.Now()
				a := s.Send(ctx, r)
				defer a.Close()
				ev := a.Evidence()
				if !ev.BodyComplete || ev.Status != tc.status || ev.RequestComplete != tc.complete {
					t.Errorf("%s, request complete %t, want %t", brief(ev), ev.RequestComplete, tc.complete)
				}
				if took := time.Since(began); took < tc.took || took > tc.took+2*lastWords {
					t.Errorf("it took %v, want about %v", took, tc.took)
				}
				if n := <-read; tc.complete && n != size {
					t.Errorf("the upstream read %d bytes of %d", n, size)
				}
			})
		})
	}
}
