package reconcilers

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"keep-proxy/ledger"
)

// simulation is a world in which things go wrong, but in which no effect comes later
// than settle after the dispatch that asked for it.
type simulation struct {
	*world
	record *ledger.Mutation

	// mu is for the API, which may still be at a request that nobody waits for.
	mu sync.Mutex
	// late are effects that may still come, each until a time on the boot clock.
	late []effect
	// down is the boot time of earlier boots, and the time between them.
	down time.Duration
}

type effect struct {
	thing thing
	until time.Duration
}

func TestNothingIsBelievedThatIsNotSo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{world: newWorld(t, rapid.SampledFrom([]string{viaProbe, viaProbe, viaBoth}).Draw(t, "operation"))}
		s.begin(rapid.SampledFrom([]string{"late", "late", "lost", "done"}).Draw(t, "first dispatch"))
		t.Repeat(map[string]func(*rapid.T){
			"":          func(*rapid.T) { s.check() },
			"wait":      func(t *rapid.T) { s.clock.Advance(seconds(t, 1, 400)) },
			"sleep":     func(t *rapid.T) { s.clock.Sleep(seconds(t, 1, 400)) },
			"try":       func(t *rapid.T) { s.try(rapid.IntRange(1, 4).Draw(t, "tries")) },
			"try on":    func(*rapid.T) { s.try(8) },
			"wall jump": func(t *rapid.T) { s.clock.JumpWall(seconds(t, -900, 900)) },
			"late": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "comes") == 0 {
					s.arrive()
				}
			},
			"fault":   func(t *rapid.T) { s.fault(rapid.SampledFrom(faults).Draw(t, "fault")) },
			"restart": func(*rapid.T) { s.restart() },
			"reboot":  func(t *rapid.T) { s.reboot(seconds(t, 1, 400)) },
		})
	})
}

// begin claims, and loses the answer of a dispatch that was lost, may still take
// effect, or did.
func (s *simulation) begin(how string) {
	s.record = s.unknown("a")
	made := thing{Reference: "a", KeepID: s.record.Marker, Key: s.record.VendorKey}
	switch how {
	case "late":
		s.promise(made)
	case "done":
		s.api.commit(made.Reference, made.KeepID, made.Key)
	}
}

// promise is an effect that may come within settle from now on, on any clock.
func (s *simulation) promise(made thing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = append(s.late, effect{made, s.boot() + s.record.Policy.Settle - time.Second})
}

// boot is real time: it runs on during sleep, and through a reboot. The caller holds mu.
func (s *simulation) boot() time.Duration { return s.clock.Boot() + s.down }

// arrive makes every effect that may still come.
func (s *simulation) arrive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.late {
		if s.boot() <= e.until {
			s.api.commit(e.thing.Reference, e.thing.KeepID, e.thing.Key)
		}
	}
	s.late = nil
}

// seconds draws a time.
func seconds(t *rapid.T, least, most int64) time.Duration {
	return time.Duration(rapid.Int64Range(least, most).Draw(t, "seconds")) * time.Second
}

func (s *simulation) reboot(down time.Duration) {
	s.mu.Lock()
	s.down += s.clock.Boot() + down
	s.clock.Reboot(down)
	s.mu.Unlock()
	s.restart()
}

// try runs the runner n times, each time with the record due.
func (s *simulation) try(n int) {
	for ; n > 0 && s.read(s.record).State == ledger.NeedsReconcile; n-- {
		s.due(s.record)
	}
}

// faults are what the API does to each request until another one is drawn.
var faults = []string{"none", "none", "500", "404", "429", "cut", "hang up", "done, then hang up", "late, and hang up"}

func (s *simulation) fault(name string) {
	s.api.script(func(w http.ResponseWriter, r *http.Request) bool {
		post := r.Method == http.MethodPost
		made := thing{Reference: "a", KeepID: s.record.Marker, Key: r.Header.Get("Idempotency-Key")}
		switch {
		case name == "500":
			w.WriteHeader(http.StatusInternalServerError)
			return true
		case name == "404" && !post:
			w.WriteHeader(http.StatusNotFound)
			return true
		case name == "429":
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		case name == "cut" && !post:
			return cut(w, r)
		case name == "done, then hang up" && post:
			s.api.commit(made.Reference, made.KeepID, made.Key)
			return hangUp(w, r)
		case name == "late, and hang up" && post:
			s.promise(made)
			return hangUp(w, r)
		case name == "hang up":
			return hangUp(w, r)
		}
		return false
	})
}

// check holds what is recorded against what is so.
func (s *simulation) check() {
	now := s.read(s.record)
	if now.State == ledger.Failed {
		// The worst moment for an effect that may still come.
		s.arrive()
	}
	_, _, things := s.api.counts()
	if things > 1 {
		s.Fatalf("%d effects of one mutation", things)
	}
	switch now.State {
	case ledger.Applied:
		if things == 0 {
			s.Fatalf("applied, but nothing happened: %+v", last(now))
		}
	case ledger.Failed:
		if things != 0 {
			s.Fatalf("failed, but it happened: %+v", last(now))
		}
	case ledger.NeedsReconcile, ledger.Indeterminate:
	default:
		s.Fatalf("state %s", now.State)
	}
}
