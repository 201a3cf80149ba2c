package integration

import (
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"keep-proxy/internal/clock"
)

// timed makes a world whose wall clock can be set.
func timed(t *testing.T) (*world, func(time.Duration)) {
	t.Helper()
	wall := &jumping{Clock: clock.System()}
	w := prepare(t)
	w.clock = wall
	w.start()
	return w, func(d time.Duration) { wall.ahead.Store(int64(d)) }
}

// TestARunsOwnListenerEndsAfterItsRun: a script that goes on is told why for a minute, and
// then nobody has that address.
func TestARunsOwnListenerEndsAfterItsRun(t *testing.T) {
	t.Parallel()
	w, at := timed(t)
	over, going := w.open("a", ownListener), w.open("b", ownListener)
	if err := over.finish("done"); err != nil {
		t.Fatal(err)
	}
	over.transfer(w.keyed, "R-1").wantRefusal("run-aborted", http.StatusFailedDependency, "over")
	at(2 * time.Minute)
	address, err := url.Parse(over.opened.ProxyURL)
	if err != nil {
		t.Fatal(err)
	}
	w.poll("the listener of the run that is over is closed", func() bool {
		conn, err := net.Dial("tcp", address.Host)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	going.transfer(w.keyed, "R-2").wantApplied(http.StatusCreated)
	w.keyed.want("transfer:R-1", 0, 0)
}

// TestTheTokenOfAnEndedRunIsKnownForADay: until then each request is told why; then the
// token is nobody's.
func TestTheTokenOfAnEndedRunIsKnownForADay(t *testing.T) {
	t.Parallel()
	w, at := timed(t)
	run := w.open("a")
	if err := run.finish("done"); err != nil {
		t.Fatal(err)
	}
	// In the clear: certificates of the proxy are of the time that it is there.
	at(23 * time.Hour)
	w.open("b")
	run.do(http.MethodGet, "http://api.test/", "").wantRefusal("run-aborted", http.StatusFailedDependency, "over")
	at(25 * time.Hour)
	w.open("c")
	if got := run.do(http.MethodGet, "http://api.test/", ""); got.status != http.StatusProxyAuthRequired {
		t.Errorf("after a day: %v", got)
	}
}
