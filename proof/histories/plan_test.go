package histories

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// The API's bounds, which the rules declare.
const (
	latest   = 40 * time.Second // a commit after its sending ended
	longest  = 45 * time.Second // a job after it was accepted
	lag      = 5 * time.Second  // of a read
	response = 50 * time.Second // the proxy's patience for an answer's head
)

// plan is one history: what happens by itself. What an API does with one request is drawn
// from the seed and the request's own number, so that it stays the same when something
// else is left out.
type plan struct {
	seed    uint64
	without []int
	items   []itemPlan
	events  []event
	// retention is what the ledger lets go of.
	retention ledger.Retention
	// world is how the API is other than its rules assume, nil for as they do.
	world *world

	mu sync.Mutex
	// drawn are the fates that were not simply good, by their numbers.
	drawn map[int]bool
}

// itemPlan is an item's script, in the versions of its runs.
type itemPlan struct {
	name string
	runs []runPlan
}

// runPlan is one execution of a script.
type runPlan struct {
	number   int
	after    time.Duration
	takeover bool
	// many says that it is a run of many items, whose requests name this one, once that a re-run
	// is new work, and loose that there is no run: the client is an unmanaged one.
	many, once, loose bool
	scope             string
	// mutations is how many it may make.
	mutations ledger.Mutations
	// stubborn says that the script catches every error and goes on, looks that it reads
	// before each step, and closes that its host closes the item when it comes to its end.
	stubborn, looks, closes bool
	steps                   []step
}

// step is one request of a script.
type step struct {
	operation string
	reference string
	// subkey tells two intents of one reference apart, place is what a setting sets.
	subkey, place string
	amount        int
	// patience is when the script hangs up, 0 for never.
	patience time.Duration
	// tries is how often it asks within one run.
	tries int
	pause time.Duration
}

// event is something that happens to the machine.
type event struct {
	number int
	kind   string
	at     time.Duration
	count  int
	down   time.Duration
	jump   time.Duration
	// reboot makes a crash another boot, and puts a wall clock right again.
	reboot bool
}

// drawn is a stream of randomness of its own for one matter.
func drawn(seed uint64, matter string, number int) *rand.Rand {
	h := fnv.New64a()
	text := append(strconv.AppendUint(make([]byte, 0, 80), seed, 10), ' ')
	text = append(append(text, matter...), ' ')
	_, _ = h.Write(strconv.AppendInt(text, int64(number), 10))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func upTo(r *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(most) + 1))
}

func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

var operations = []string{
	"keyed", "keyed", "probed", "again", "again", "blind", "split", "dear", "doubled", "doubled", "owed", "placed", "placed",
	"drafted", "watched", "warned", "strict", "strict", "shown",
}

// newPlan draws a history, without the parts that are left out.
func newPlan(seed uint64, without []int) *plan { return newPlanOf(seed, without, operations) }

// newPlanOf draws a history of these operations.
func newPlanOf(seed uint64, without []int, operations []string) *plan {
	r := drawn(seed, "plan", 0)
	p := &plan{seed: seed, without: without, drawn: map[int]bool{}}
	number := 0
	next := func() int { number++; return number }
	for i := range 1 + r.IntN(2) {
		item := itemPlan{name: fmt.Sprintf("item-%d", i)}
		steps := script(r, item.name, operations)
		for range 2 + r.IntN(4) {
			run := runPlan{
				number: next(), after: upTo(r, 100*time.Second), takeover: r.IntN(2) == 0,
				scope: one(r, "workflow", "workflow", "item", "mutation"), stubborn: r.IntN(4) == 0, looks: r.IntN(3) == 0, closes: r.IntN(4) == 0,
			}
			run.steps = rewritten(r, steps, run.number)
			run.many = drawn(seed, "many", run.number).IntN(4) == 0
			run.mutations = allowance(seed, run.number)
			if !p.leftOut(run.number) {
				item.runs = append(item.runs, run)
			}
		}
		p.items = append(p.items, item)
	}
	for range r.IntN(5) {
		e := event{
			number: next(), kind: one(r, "kill", "kill", "kill before commit", "kill after commit", "kill at write", "wall", "rules"),
			at: upTo(r, 400*time.Second), count: 1 + r.IntN(12), down: upTo(r, 90*time.Second),
			jump: upTo(r, 80*time.Minute) - 40*time.Minute, reboot: r.IntN(3) == 0,
		}
		if !p.leftOut(e.number) {
			p.events = append(p.events, e)
		}
	}
	p.addOthers(operations, next)
	p.forget()
	slices.SortFunc(p.events, func(a, b event) int { return int(a.at - b.at) })
	return p
}

func (p *plan) leftOut(number int) bool { return slices.Contains(p.without, number) }

// script is what an item's script does in its first version.
func script(r *rand.Rand, item string, operations []string) []step {
	var steps []step
	for n := range 1 + r.IntN(3) {
		s := step{operation: one(r, operations...), reference: fmt.Sprintf("%s-%d", item, n), amount: 100 + n}
		switch s.operation {
		case "placed":
			s.place = "place-0"
		case "split":
			s.subkey = one(r, "", "a")
			steps = append(steps, s)
			s.subkey = "b"
		}
		steps = append(steps, s)
	}
	return steps
}

// rewritten is the script of one run: mostly the same, sometimes in another order, with a
// step less, with another amount, or with another identity.
func rewritten(r *rand.Rand, steps []step, run int) []step {
	out := slices.Clone(steps)
	if r.IntN(4) == 0 {
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	}
	if r.IntN(6) == 0 && len(out) > 1 {
		out = out[1:]
	}
	for i := range out {
		s := &out[i]
		s.tries, s.pause = 1+r.IntN(3), upTo(r, 8*time.Second)
		if r.IntN(5) == 0 {
			s.patience = upTo(r, 50*time.Second) + time.Millisecond
		}
		if r.IntN(12) == 0 {
			s.amount++
		}
		if drifts := r.IntN(16); drifts == 0 || drifts < 4 && s.operation == "dear" {
			s.reference += fmt.Sprintf("-r%d", run)
		}
	}
	return out
}

// fate is what the API does with one request.
type fate struct {
	// think is how long it works on it before it commits or refuses.
	think time.Duration
	// commits says that it takes effect.
	commits bool
	// answer is ok, lost (closed without a word), cut (in the body), torn (in the head), 500, 503, 409,
	// 422 or 429; the last two never commit.
	answer string
	// late is how long after the end of the sending it commits, if it had not.
	late time.Duration
	// keep leaves the connection open for the next request.
	keep bool
	// shows is how long reads miss what it did.
	shows time.Duration
	// job is how long what was accepted is worked on, and fails that nothing comes of it.
	job   time.Duration
	fails bool
	// twin is after what time the API commits a second time by itself, 0 for never.
	twin time.Duration
	// believed says that the API answers before it commits.
	believed bool
}

// good is what becomes of a request when nothing is wrong.
var good = fate{commits: true, answer: "ok", keep: true, job: time.Second}

// fate draws what becomes of the nth request of a kind. A left out fate is a good one.
func (p *plan) fate(matter string, n int) fate {
	id := fateNumber(matter, n)
	if p.leftOut(id) {
		return good
	}
	r := drawn(p.seed, matter, n)
	if r.IntN(2) == 0 {
		return good
	}
	p.mu.Lock()
	p.drawn[id] = true
	p.mu.Unlock()
	f := good
	f.think = one(r, 0, upTo(r, 3*time.Second), upTo(r, 3*time.Second), upTo(r, 80*time.Second))
	f.commits = r.IntN(3) != 0
	f.answer = one(r, "ok", "ok", "lost", "lost", "lost", "cut", "torn", "500", "503", "409", "422", "429", "after 503")
	f.late, f.shows = upTo(r, latest-2*time.Second), upTo(r, lag-time.Second)
	f.keep = r.IntN(2) == 0
	if f.answer == "422" || f.answer == "429" {
		f.commits = false
	}
	if f.answer == "ok" || f.answer == "cut" {
		f.commits = true
	}
	f.job, f.fails = upTo(r, longest-time.Second), r.IntN(4) == 0
	f.twin = one(r, 0, 0, time.Nanosecond, upTo(r, time.Second)+1)
	if p.world != nil && p.world.fate != nil {
		p.world.fate(r, &f)
	}
	return f
}

// fates are the numbers of the fates that were not simply good.
func (p *plan) fates() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.drawn))
}

// fateNumber is the number by which a fate is left out.
func fateNumber(matter string, n int) int {
	h := fnv.New32a()
	text := append(append(make([]byte, 0, 60), matter...), ' ')
	_, _ = h.Write(strconv.AppendInt(text, int64(n), 10))
	return 1000 + int(h.Sum32()%1_000_000)
}
