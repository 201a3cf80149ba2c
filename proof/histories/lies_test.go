package histories

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// lie is something in which an API is not as it seems: within what its rules declare, and
// beyond that.
type lie struct {
	name            string
	operations      []string
	inside, outside world
	// condition is which one is broken outside, and where that is said.
	condition string
}

// The conditions of docs/semantics.md that can be broken by an API.
const (
	tellsTheTruth = "1: the connector tells the truth"
	inTime        = "2: commits and shows in time"
)

// asked are the operations whose lost answers are found out by a probe.
var probedOperations = []string{"probed", "again", "dear", "split"}

// lost makes a request that isn't simply good one whose answer is lost.
func lost(f *fate) { f.commits, f.answer, f.think = true, "lost", 0 }

var lies = []lie{
	{
		"a commit comes late", append([]string{"keyed", "drafted"}, probedOperations...),
		world{says: "within the declared 40 s", fate: func(r *rand.Rand, f *fate) { lost(f); f.late = upTo(r, latest-2*time.Second) }},
		world{says: "up to 90 s after settle is over", fate: func(r *rand.Rand, f *fate) { lost(f); f.late = time.Minute + upTo(r, 90*time.Second) }},
		inTime,
	},
	{
		"reads lag", append([]string{"drafted"}, probedOperations...),
		world{says: "within the declared 5 s", fate: func(r *rand.Rand, f *fate) { lost(f); f.late, f.shows = 0, upTo(r, lag) }},
		world{says: "up to 3 min", fate: func(r *rand.Rand, f *fate) { lost(f); f.late, f.shows = 0, time.Minute+upTo(r, 2*time.Minute) }},
		inTime,
	},
	{
		"listings lose what is there", probedOperations,
		world{says: "and the rule takes no absence as proof", loses: true, replace: []string{"absence_is_proof: true", "absence_is_proof: false"}},
		world{says: "and the rule says that they are complete", loses: true},
		tellsTheTruth,
	},
	{
		"a cache answers reads", append([]string{"drafted"}, probedOperations...),
		world{says: "as of up to 4 min before, which its Age tells", caches: 4 * time.Minute, fate: func(_ *rand.Rand, f *fate) { lost(f); f.late = 0 }},
		world{
			says: "as of up to 4 min before, and says nothing of that", caches: 4 * time.Minute, silent: true,
			fate: func(_ *rand.Rand, f *fate) { lost(f); f.late = 0 },
		},
		inTime,
	},
	{
		"pages shift", probedOperations,
		world{says: "by what is made meanwhile, newest first"},
		world{says: "by what vanishes meanwhile, so that one object is skipped", shifts: true},
		tellsTheTruth,
	},
	{
		"the API's clock is off", append([]string{"alike"}, probedOperations...),
		world{says: "by 4 min, which its Date tells", clock: 4 * time.Minute, alike: true},
		world{says: "by 30 min, which its Date tells", clock: 30 * time.Minute, alike: true},
		"none: absence isn't believed, and the record says that a clock is wrong",
	},
	{
		"times of creation are off", []string{"alike"},
		world{says: "with the API's clock, which its Date tells", clock: -90 * time.Second, alike: true},
		world{says: "by 10 min, and its Date is right", stamps: 10 * time.Minute, alike: true},
		tellsTheTruth,
	},
	{
		"200 before the commit", operations,
		world{says: "which comes within the declared 40 s", believed: true, fate: func(r *rand.Rand, f *fate) {
			f.commits, f.answer, f.believed, f.late, f.fails = true, "ok", true, upTo(r, latest-2*time.Second), false
		}},
		world{says: "which sometimes never comes", believed: true, fate: func(r *rand.Rand, f *fate) {
			f.commits, f.answer, f.believed, f.late = r.IntN(3) > 0, "ok", true, upTo(r, latest-2*time.Second)
		}},
		tellsTheTruth,
	},
	{
		"500 after the commit", append([]string{"keyed", "drafted", "blind"}, probedOperations...),
		world{says: "and the rule doesn't say what it means", fate: func(_ *rand.Rand, f *fate) { f.commits, f.answer = true, "500" }},
		world{says: "and the rule says that it failed", fate: func(_ *rand.Rand, f *fate) { f.commits, f.answer = true, "500" }, replace: []string{
			"    effect: mutation\n", "    effect: mutation\n    outcome:\n      - {when: response.status == 500, then: failed, class: transient}\n",
		}},
		tellsTheTruth,
	},
	{
		"a vendor key is forgotten", []string{"keyed"},
		world{says: "after the declared 6 min", forgets: 6 * time.Minute, replace: shortWindow},
		world{says: "after 5 s", forgets: 5 * time.Second, replace: shortWindow},
		tellsTheTruth,
	},
}

// shortWindow declares a window that is short enough to be over within a history.
var shortWindow = []string{"window: 24h}", "window: 6m}\n    timeout: 60s"}

// came is what came of a lie.
type came struct {
	histories, sendings, twice, failed, applied, other, asked, clocks int
	// first is the first wrong, with its history's seed.
	first string
}

// String is one line of the table that the proof prints.
func (c *came) String() string {
	return fmt.Sprintf("%d histories, %d sendings, %d twice, %d wrongly failed, %d wrongly applied, %d else, %d asked, %d clocks",
		c.histories, c.sendings, c.twice, c.failed, c.applied, c.other, c.asked, c.clocks)
}

// add classifies what one history showed.
func (c *came) add(seed uint64, out outcome) {
	c.histories++
	c.sendings += out.sendings
	c.asked += out.counts.asked
	c.clocks += out.counts.clocks
	for _, wrong := range out.wrongs {
		switch {
		case strings.Contains(wrong, " took effect ") && strings.HasSuffix(wrong, " times"):
			c.twice++
		case strings.Contains(wrong, "is recorded as failed, but"):
			c.failed++
		case strings.Contains(wrong, "but never took effect"), strings.Contains(wrong, "and it never did"):
			c.applied++
		default:
			c.other++
		}
		if c.first == "" {
			c.first = fmt.Sprintf("seed %d: %s", seed, wrong)
		}
	}
}

// tell goes through histories in a world.
func tell(t *testing.T, shared *house, operations []string, w *world, n int) came {
	t.Helper()
	h := &house{ca: shared.ca, quiet: shared.quiet, ended: shared.ended}
	h.sets = append(h.sets, loadRules(t, 0, w.replace...))
	var c came
	for i := range n {
		seed := *flagSeed + uint64(i)
		p := newPlanOf(seed, nil, operations)
		p.world = w
		c.add(seed, simulate(t, h, p))
	}
	return c
}

// liesInTests is in how many histories a lie is told, on each side, in every test run.
func liesInTests() int {
	switch {
	case *flagN > 0:
		return *flagN
	case raceEnabled, testing.Short():
		return 10
	}
	return 100
}

// TestLies lets the API be as it should not. Within what its rules declare nothing may go
// wrong; beyond that something shows, or the lie would prove nothing.
func TestLies(t *testing.T) {
	shared := newHouse(t)
	n := liesInTests()
	for _, l := range lies {
		t.Run(strings.ReplaceAll(l.name, " ", "_"), func(t *testing.T) {
			inside := tell(t, shared, l.operations, &l.inside, n)
			t.Logf("inside| %s | %s | %s", l.name, l.inside.says, &inside)
			switch {
			case inside.first != "":
				t.Errorf("%s, %s: %s", l.name, l.inside.says, inside.first)
			case inside.sendings == 0:
				t.Errorf("%s, %s: nothing was sent that could go wrong", l.name, l.inside.says)
			}
			outside := tell(t, shared, l.operations, &l.outside, n)
			t.Logf("outside| %s | %s | %s | %s", l.name, l.outside.says, &outside, l.condition)
			if n >= 100 && outside.first == "" && outside.clocks == 0 {
				t.Errorf("%s, %s: nothing came of it", l.name, l.outside.says)
			}
		})
	}
}
