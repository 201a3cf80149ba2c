package proxy

import (
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// onceBusy answers each content with this first, and takes it after that.
func onceBusy(t *testing.T, status int, retryAfter string) http.HandlerFunc {
	t.Helper()
	var seen counter
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if seen.add(string(body)); seen.of(string(body)) > 1 || r.Method == http.MethodGet || strings.Contains(string(body), "at once") {
			created(rw, r)
			return
		}
		if retryAfter != "" {
			rw.Header().Set("Retry-After", retryAfter)
		}
		rw.WriteHeader(status)
	}
}

func TestEachFailedRequestOfARunMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status           int
		asked, toldToAsk string
	}{
		"another token is wanted": {http.StatusUnauthorized, "", "1"},
		"for the moment":          {http.StatusTooManyRequests, "", "1"},
		"for longer":              {http.StatusTooManyRequests, "120", "121"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var both atomic.Int32
			met := make(chan struct{})
			busy := onceBusy(t, c.status, c.asked)
			w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
				// The two that come first are answered together.
				if n := both.Add(1); n == 2 {
					close(met)
				} else if n == 1 {
					<-met
				}
				busy(rw, r)
			})
			r := w.open("a")
			first := make(chan got, 1)
			go func() { first <- r.post("/pay", `{"to":"x"}`) }()
			second := r.post("/pay", `{"to":"y"}`)
			if a := <-first; a.status != c.status || second.status != c.status {
				t.Fatalf("got %d and %d", a.status, second.status)
			}
			for _, other := range []string{`{"to":"at once"}`, `{"to":"x","amount":2}`} {
				g := r.post("/pay", other)
				wantProblem(t, g, "run-failing", 503, "Nothing was sent")
				if wait := g.header.Get("Retry-After"); wait != c.toldToAsk {
					t.Errorf("Retry-After %q, want %q", wait, c.toldToAsk)
				}
			}
			wantAnswer(t, r.get("/read"), 201, `{"id":1}`, false)
			wantAnswer(t, r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false)
			wantProblem(t, r.post("/pay", `{"to":"at once"}`), "run-failing", 503, "")
			wantAnswer(t, r.post("/pay", `{"to":"y"}`), 201, `{"id":1}`, false)
			wantAnswer(t, r.post("/pay", `{"to":"at once"}`), 201, `{"id":1}`, false)
			if s := r.state(); s.State != ledger.RunRunning {
				t.Errorf("the run is %s: %s", s.State, s.Reason)
			}
			w.wantSends("/pay", 5)
		})
	}
}

// looked tells that somebody asked how a run stands.
type looked struct {
	ledger.Standings
	tell func()
}

func (l looked) Standing(run string) (ledger.Run, []ledger.Blocker, error) {
	l.tell()
	return l.Standings.Standing(run)
}

// Within proxy.hold nobody is refused who waits for another's retry.
func TestOthersWaitForTheRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hold    time.Duration
		meet    func(*run)
		problem string
	}{
		"which succeeds":      {waitLimit, func(r *run) { wantAnswer(r.t.(*testing.T), r.post("/pay", `{"to":"x"}`), 201, `{"id":1}`, false) }, ""},
		"whose run ends":      {waitLimit, func(r *run) { r.end(r) }, "run-aborted"},
		"which does not come": {holdTick, func(*run) {}, "run-failing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waits := make(chan struct{}, 1)
			var armed atomic.Bool
			w := newWorld(t, onceBusy(t, http.StatusTooManyRequests, ""), func(config *Config) {
				// An inline try has its own time, which isn't waited for here.
				config.Hold, config.Inline = c.hold, time.Hour
				config.Ledger.Standings = looked{config.Ledger.Standings, func() {
					if armed.CompareAndSwap(true, false) {
						waits <- struct{}{}
					}
				}}
			})
			r := w.open("a")
			if g := r.post("/pay", `{"to":"x"}`); g.status != http.StatusTooManyRequests {
				t.Fatalf("got %d", g.status)
			}
			armed.Store(true)
			other := make(chan got, 1)
			go func() { other <- r.post("/pay", `{"to":"at once"}`) }()
			<-waits
			c.meet(r)
			select {
			case g := <-other:
				if c.problem == "" {
					wantAnswer(t, g, 201, `{"id":1}`, false)
				} else if g.problem() != c.problem {
					t.Errorf("got %d %s", g.status, g.body)
				}
			case <-time.After(10 * time.Second):
				t.Error("it waits still")
			}
		})
	}
}

// What the API asks to wait decides how long a run waits for the retry, and whether it does.
func TestHowLongARunWaitsForTheRetry(t *testing.T) {
	t.Parallel()
	reset := func(in time.Duration) func() http.Header {
		return func() http.Header { return http.Header{"X-Reset": {strconv.FormatInt(time.Now().Add(in).Unix(), 10)}} }
	}
	said := func(retryAfter string) func() http.Header {
		return func() http.Header { return http.Header{"Retry-After": {retryAfter}} }
	}
	for name, c := range map[string]struct {
		status int
		header func() http.Header
		// waits is when the API wants to be asked again, 0 for nothing said.
		waits time.Duration
		state ledger.RunState
	}{
		"nothing said":                   {429, func() http.Header { return nil }, 0, ledger.RunFailing},
		"seconds":                        {429, said("120"), 2 * time.Minute, ledger.RunFailing},
		"a date":                         {429, func() http.Header { return said(time.Now().Add(2 * time.Minute).UTC().Format(http.TimeFormat))() }, 2 * time.Minute, ledger.RunFailing},
		"too long":                       {429, said("3600"), time.Hour, ledger.RunAborted},
		"a time that the rule names":     {403, reset(2 * time.Minute), 2 * time.Minute, ledger.RunFailing},
		"such a time, too late":          {403, reset(time.Hour), time.Hour, ledger.RunAborted},
		"such a time, in years":          {403, reset(1e5 * time.Hour), 24 * time.Hour, ledger.RunAborted},
		"such a time that has passed":    {403, reset(-time.Hour), 0, ledger.RunFailing},
		"such a time that can't be read": {403, func() http.Header { return http.Header{"X-Reset": {"soon"}, "Retry-After": {"120"}} }, 2 * time.Minute, ledger.RunFailing},
		"a duration that the rule names": {420, said("3600"), 2 * time.Minute, ledger.RunFailing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(rw http.ResponseWriter, _ *http.Request) {
				maps.Copy(rw.Header(), c.header())
				rw.WriteHeader(c.status)
			})
			w.use(changed("    identity: {to: json.to}\n    payload", `    identity: {to: json.to}
    outcome:
      - {when: response.status == 403, then: failed, class: transient, retry_after: "timestamp(int(header_of(response, 'x-reset')))"}
      - {when: response.status == 420, then: failed, class: transient, retry_after: duration('2m')}
    payload`))
			began := time.Now()
			r := w.open("a")
			if g := r.post("/pay", `{"to":"x"}`); g.status != c.status {
				t.Fatalf("got %d %s", g.status, g.body)
			}
			// Fields tell whole seconds.
			near := func(what string, got time.Time, want time.Duration) {
				if d := got.Sub(began) - want; d < -2*time.Second || d > waitLimit/3-time.Second {
					t.Errorf("%s in %v, want %v", what, got.Sub(began), want)
				}
			}
			m, s := w.mutation("a"), r.state()
			if m.RetryAfter.IsZero() != (c.waits == 0) || m.State != ledger.Failed || m.Class != verdict.Transient {
				t.Errorf("the record is %s, %s, again after %v", m.State, m.Class, m.RetryAfter)
			} else if c.waits > 0 {
				near("to be asked again", m.RetryAfter, c.waits)
			}
			if s.State != c.state || s.Class != verdict.Transient || s.Cause != m.ID {
				t.Errorf("the run is %s, %s by %s", s.State, s.Class, s.Cause)
			} else if c.state == ledger.RunFailing {
				near("the grace ends", s.FailingUntil, c.waits+time.Minute)
			}
		})
	}
}
