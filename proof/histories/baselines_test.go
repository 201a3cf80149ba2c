package histories

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// rival is another way of sending, in the place of keep-proxy: it sends a step and says
// whether the script may take it as done.
type rival struct {
	name string
	send func(b *bench, s step) bool
}

// bench is the same scripts and the same API, without keep-proxy.
type bench struct {
	plan *plan
	api  *api

	mu sync.Mutex
	// locks are held until a time, done is what a table of results says.
	locks map[string]time.Time
	done  map[string]bool
	conns map[net.Conn]bool
	down  bool
	keys  int
	// believed are the references that a script took as done.
	believed map[string]bool
}

// lockLife is how long a rival's lock lives.
const lockLife = 60 * time.Second

var rivals = []rival{
	{"naive retry", func(b *bench, s step) bool { return b.retry(s, func() string { return "" }) }},
	{"retry with a random vendor key", func(b *bench, s step) bool { return b.retry(s, b.newKey) }},
	{"a lock that expires", func(b *bench, s step) bool {
		if !b.lock(s.reference + s.subkey) {
			return true // Somebody else does it.
		}
		done := b.retry(s, func() string { return "" })
		if done {
			b.mark(s.reference + s.subkey)
		}
		return done
	}},
	{"a table of results without a claim", func(b *bench, s step) bool {
		if b.marked(s.reference + s.subkey) {
			return true
		}
		done := b.retry(s, func() string { return "" })
		if done {
			b.mark(s.reference + s.subkey)
		}
		return done
	}},
}

func (b *bench) newKey() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys++
	return fmt.Sprintf("key-%d", b.keys)
}

func (b *bench) lock(ref string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done[ref] || b.locks[ref].After(time.Now()) {
		return false
	}
	b.locks[ref] = time.Now().Add(lockLife)
	return true
}

func (b *bench) mark(ref string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done[ref] = true
}

func (b *bench) marked(ref string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[ref]
}

// retry asks until it gets a success, as often as the script does.
func (b *bench) retry(s step, key func() string) bool {
	for range s.tries {
		if b.post(s, key()) {
			return true
		}
		pause(s.pause)
	}
	return false
}

// post sends a request straight to the API, and reports a whole answer of success.
func (b *bench) post(s step, key string) bool {
	b.mu.Lock()
	if b.down {
		b.mu.Unlock()
		return false
	}
	ours, theirs := net.Pipe()
	b.conns[ours] = true
	b.mu.Unlock()
	defer func() { _ = ours.Close() }()
	b.api.serve(theirs)
	patience := response
	if s.patience > 0 {
		patience = min(patience, s.patience)
	}
	_ = ours.SetDeadline(time.Now().Add(patience))
	body := fmt.Sprintf(`{"reference":%q,"amount":%d}`, s.reference, s.amount)
	if key != "" {
		key = "Idempotency-Key: " + key + "\r\n"
	}
	if _, err := fmt.Fprintf(ours, "POST /%s HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n%s", s.operation, hostOf(s.operation), key, len(body), body); err != nil {
		return false
	}
	resp, err := http.ReadResponse(bufio.NewReader(ours), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode >= 200 && resp.StatusCode < 300
}

// compare runs the plan's scripts with a rival, and counts the references that took effect
// more than once, and those that a script took as done and that never did.
func compare(t *testing.T, r rival, p *plan) (references, duplicates, losses int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			plan: p, api: newAPI(p), locks: map[string]time.Time{}, done: map[string]bool{},
			conns: map[net.Conn]bool{}, believed: map[string]bool{},
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for _, item := range p.items {
			all.Go(func() { b.script(r, item) })
		}
		all.Go(func() { b.crash(ctx, p.events) })
		all.Wait()
		pause(2 * latest)
		b.api.working.Wait()
		for ref, intents := range intended(p) {
			made := b.api.total(ref, 0)
			references += intents
			if made > intents {
				duplicates++
			}
			if made == 0 && b.believed[ref] {
				losses++
			}
		}
	})
	return references, duplicates, losses
}

// intended counts the effects that a plan's scripts mean to have of each reference. A state
// that is set twice is as one that is set once, so that it counts for nothing here.
func intended(p *plan) map[string]int {
	intents := map[string]map[string]bool{}
	for _, item := range p.items {
		for _, run := range item.runs {
			for _, s := range run.steps {
				if s.operation != "placed" {
					note(intents, s.reference, s.subkey)
				}
			}
		}
	}
	out := map[string]int{}
	for ref, of := range intents {
		out[ref] = len(of)
	}
	return out
}

// script runs an item's runs until one of them came to its end.
func (b *bench) script(r rival, item itemPlan) {
	for _, run := range item.runs {
		pause(run.after)
		if b.execute(r, run) {
			return
		}
	}
}

// execute is one run, and reports whether it came to its end.
func (b *bench) execute(r rival, run runPlan) bool {
	for _, s := range run.steps {
		if !r.send(b, s) {
			return false
		}
		b.mu.Lock()
		b.believed[s.reference] = true
		b.mu.Unlock()
	}
	return true
}

// crash cuts the connections when the machine crashes, and lets it be down.
func (b *bench) crash(ctx context.Context, events []event) {
	begun := time.Now()
	for _, e := range events {
		if e.kind == "wall" || ctx.Err() != nil {
			continue
		}
		pause(e.at - time.Since(begun))
		b.mu.Lock()
		b.down = true
		for c := range b.conns {
			_ = c.Close()
		}
		b.mu.Unlock()
		pause(e.down)
		b.mu.Lock()
		b.down = false
		b.mu.Unlock()
	}
}

// TestRivalsPayTwice holds the same judge against ways of sending that are known to be
// wrong: a judge that finds nothing there would find nothing anywhere.
func TestRivalsPayTwice(t *testing.T) {
	n := 300
	if *flagN > 0 {
		n = min(*flagN, 20_000)
	}
	for _, r := range rivals {
		references, duplicates, losses := 0, 0, 0
		for i := range n {
			all, twice, lost := compare(t, r, newPlan(*flagSeed+uint64(i), nil))
			references, duplicates, losses = references+all, duplicates+twice, losses+lost
		}
		t.Logf("%s: %d histories, %d intended effects, %d took effect more than once, %d were taken as done and never were",
			r.name, n, references, duplicates, losses)
		if duplicates == 0 {
			t.Errorf("%s: the judge found no duplicate", r.name)
		}
	}
}
