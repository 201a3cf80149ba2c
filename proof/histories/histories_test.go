package histories

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"keep-proxy/ledger"
	"keep-proxy/proxy"
)

var (
	flagN       = flag.Int("histories", 0, "how many histories to go through; 0: a bounded number")
	flagSeed    = flag.Uint64("seed", 1, "the seed of the first history")
	flagWithin  = flag.Duration("within", 0, "how long histories are gone through at most; what is left then is left out; 0: without an end")
	flagWithout = flag.String("without", "", "numbers of parts that are left out of the history, as a failure prints them")
)

// A history lives for milliseconds and leaves much garbage: collecting it twelve times as
// seldom takes a quarter of the processor time away, for some 160 MiB.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1200)
	os.Exit(m.Run())
}

func newHouse(t *testing.T) *house {
	t.Helper()
	ca, err := proxy.LoadCA(t.TempDir()+"/ca.pem", t.TempDir()+"/ca.key", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{ca: ca}
	for version := range versions {
		h.sets = append(h.sets, loadRules(t, version))
	}
	h.quiet, _ = pipe(t)
	var end *os.File
	h.ended, end = pipe(t)
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

// pipe is one that is closed with the test.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}

// bounded is how many histories go through in every test run.
func bounded() int {
	switch {
	case raceEnabled, testing.Short():
		return 100
	}
	return 2000
}

func TestHistories(t *testing.T) {
	shared := newHouse(t)
	without := leftOut(t)
	n := *flagN
	if n == 0 {
		n = bounded()
	}
	if len(without) > 0 {
		n = 1
	}
	now := time.Now()
	all := &gone{first: n, began: now, said: now, sum: outcome{ends: map[ledger.State]int{}}}
	t.Run("all", func(t *testing.T) {
		workers := min(n, runtime.GOMAXPROCS(0))
		for w := range workers {
			t.Run(strconv.Itoa(w), func(t *testing.T) {
				t.Parallel()
				for i := w; all.goesOn(i); i += workers {
					all.add(i, simulate(t, shared, newPlan(*flagSeed+uint64(i), without)))
				}
			})
		}
	})
	if all.first < n {
		seed, out := *flagSeed+uint64(all.first), all.failed
		if len(without) == 0 {
			without, out = shrink(t, shared, seed, out)
		}
		t.Fatalf("history %d of %d: %s\nrepeat: go test ./proof/histories -run TestHistories -seed=%d -without=%s",
			all.first+1, n, strings.Join(out.wrongs, "\n  and "), seed, numbers(without))
	}
	if what := all.sum.never(); len(what) > 0 && all.through >= manyHistories {
		t.Errorf("in %d histories there were no %s: what is judged of them holds for nothing", all.through, strings.Join(what, ", no "))
	}
	t.Logf("%d histories from seed %d: %s", all.through, *flagSeed, &all.sum)
}

// manyHistories is in how many each thing that is judged comes up.
const manyHistories = 2000

// gone is through which histories several workers have gone. First is the number of the first
// one that failed.
type gone struct {
	mu      sync.Mutex
	began   time.Time
	said    time.Time
	through int
	sum     outcome
	first   int
	failed  outcome
}

// goesOn reports whether a history may still be the first one that fails, in time.
func (g *gone) goesOn(i int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return i < g.first && (*flagWithin == 0 || time.Since(g.began) < *flagWithin)
}

// add adds what a history showed.
func (g *gone) add(i int, out outcome) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(out.wrongs) > 0 && i < g.first {
		g.first, g.failed = i, out
	}
	g.through++
	g.sum.add(out)
	if time.Since(g.said) >= time.Minute {
		g.said = time.Now()
		fmt.Printf("%d histories so far, in %s\n", g.through, time.Since(g.began).Round(time.Second))
	}
}

// add adds the counts of another history.
func (o *outcome) add(out outcome) {
	o.sendings += out.sendings
	o.reads += out.reads
	o.crashes += out.crashes
	o.decisions += out.decisions
	for state, n := range out.ends {
		o.ends[state] += n
	}
	c, more := &o.counts, out.counts
	c.drafts += more.drafts
	c.jobs += more.jobs
	c.twins += more.twins
	c.undone += more.undone
	c.settings += more.settings
	c.attempts += more.attempts
	c.items += more.items
	c.accepted += more.accepted
	c.drifts += more.drifts
	c.subkeys += more.subkeys
	c.rewritten += more.rewritten
	c.looks += more.looks
	c.asked += more.asked
	c.onces += more.onces
	c.singles += more.singles
	c.loose += more.loose
	c.vanished += more.vanished
	c.unverified += more.unverified
	c.confirmed += more.confirmed
	c.forgotten += more.forgotten
	c.removed += more.removed
	c.refused += more.refused
	c.owing += more.owing
}

// counted is how often something happened.
type counted struct {
	n    int
	what string
}

// counted are all counts, but for those of the ends.
func (o *outcome) counted() []counted {
	c := o.counts
	return []counted{
		{o.sendings, "sendings"},
		{o.reads, "reads at the API"},
		{c.looks, "reads by scripts"},
		{o.crashes, "crashes"},
		{o.decisions, "decisions of people"},
		{c.items, "decisions on items"},
		{c.attempts, "new attempts"},
		{c.drafts, "commits of drafts"},
		{c.jobs, "answers 202"},
		{c.settings, "states that were set"},
		{c.subkeys, "references with several subkeys"},
		{c.onces, "runs with `once`"},
		{c.singles, "runs of one mutation or none"},
		{c.loose, "sendings of an unmanaged scope"},
		{c.rewritten, "changes of the rules"},
		{c.accepted, "payloads accepted"},
		{c.drifts, "drifts let be"},
		{c.twins, "effects that the API doubled"},
		{c.undone, "effects taken back"},
		{c.vanished, "effects that others took back"},
		{c.unverified, "replays refused for that"},
		{c.confirmed, "replays wanted by a person all the same"},
		{c.forgotten, "contents forgotten"},
		{c.refused, "requests refused for that"},
		{c.removed, "records removed"},
		{c.owing, "items closed over what was owed"},
		{c.asked, "times that a person was asked"},
	}
}

// never is what did not happen.
func (o *outcome) never() (what []string) {
	for _, end := range []ledger.State{ledger.Applied, ledger.Failed, ledger.Skipped} {
		if o.ends[end] == 0 {
			what = append(what, "mutations that ended "+string(end))
		}
	}
	for _, count := range o.counted() {
		if count.n == 0 {
			what = append(what, count.what)
		}
	}
	return what
}

// String is what happened in so many histories, as a list of counts.
func (o *outcome) String() string {
	var said []string
	for _, state := range slices.Sorted(maps.Keys(o.ends)) {
		said = append(said, fmt.Sprintf("%d mutations that ended %s", o.ends[state], state))
	}
	for _, count := range o.counted() {
		said = append(said, fmt.Sprintf("%d %s", count.n, count.what))
	}
	return strings.Join(said, ", ")
}

// shrink leaves out whatever the failure doesn't need: runs, events, and what the API did.
func shrink(t *testing.T, shared *house, seed uint64, failed outcome) ([]int, outcome) {
	t.Helper()
	p := newPlan(seed, nil)
	var parts []int
	for _, e := range p.events {
		parts = append(parts, e.number)
	}
	for _, item := range p.items {
		for _, r := range slices.Backward(item.runs) {
			parts = append(parts, r.number)
		}
	}
	parts = append(parts, failed.fates...)
	var without []int
	for _, part := range parts {
		try := append(slices.Clone(without), part)
		if out := simulate(t, shared, newPlan(seed, try)); len(out.wrongs) > 0 {
			without, failed = try, out
		}
	}
	return without, failed
}

func leftOut(t *testing.T) []int {
	t.Helper()
	var out []int
	for text := range strings.SplitSeq(*flagWithout, ",") {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-without: %v", err)
		}
		out = append(out, n)
	}
	return out
}

func numbers(all []int) string {
	var out []string
	for _, n := range all {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}
