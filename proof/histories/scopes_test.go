package histories

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// looseItem is the item of the unmanaged scope.
const looseItem = "loose"

// allowance is how many mutations a run may make.
func allowance(seed uint64, run int) ledger.Mutations {
	switch drawn(seed, "allowance", run).IntN(12) {
	case 0:
		return ledger.MutationsNone
	case 1, 2:
		return ledger.MutationsOne
	}
	return ledger.MutationsMany
}

// addOthers draws what goes on beside the items' scripts: scripts each of whose runs is new
// work, and a client without a run, which works on an item of its own or on a script's.
func (p *plan) addOthers(operations []string, next func() int) {
	r := drawn(p.seed, "others", 0)
	for i := range max(0, r.IntN(6)-3) {
		p.add(itemPlan{name: fmt.Sprintf("once-%d", i)}, 2+r.IntN(3), operations, next, func(run *runPlan) { run.once = true })
	}
	if r.IntN(3) > 0 {
		return
	}
	item, steps := itemPlan{name: looseItem}, []step(nil)
	if all := p.items[0].runs; r.IntN(2) == 0 && len(all) > 0 {
		item.name, steps = p.items[0].name, all[0].steps
	}
	p.add(item, 1+r.IntN(3), operations, next, func(run *runPlan) {
		run.loose, run.mutations = true, ledger.MutationsMany
		if steps != nil {
			run.steps = rewritten(drawn(p.seed, "loose", run.number), steps, run.number)
		}
	})
}

// add draws runs of a script.
func (p *plan) add(item itemPlan, runs int, operations []string, next func() int, change func(*runPlan)) {
	r := drawn(p.seed, "other", len(p.items))
	steps := script(r, item.name, operations)
	for range runs {
		run := runPlan{
			number: next(), after: upTo(r, 100*time.Second), scope: one(r, "workflow", "item", "mutation"),
			stubborn: r.IntN(4) == 0, looks: r.IntN(3) == 0, closes: r.IntN(4) == 0,
		}
		run.steps, run.mutations = rewritten(r, steps, run.number), allowance(p.seed, run.number)
		change(&run)
		if !p.leftOut(run.number) {
			item.runs = append(item.runs, run)
		}
	}
	if len(item.runs) > 0 {
		p.items = append(p.items, item)
	}
}

// items are the names of all items, each once.
func (h *history) items() []string {
	names := []string{looseItem}
	for _, item := range h.plan.items {
		if !slices.Contains(names, item.name) {
			names = append(names, item.name)
		}
	}
	h.onces.mu.Lock()
	defer h.onces.mu.Unlock()
	return append(names, h.onces.items...)
}

// onces are the items of the runs with once, in the order in which they were opened.
type onces struct {
	mu    sync.Mutex
	items []string
}

func (o *onces) add(item string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.items = append(o.items, item)
}

// loose lets a client without a run go through its steps.
func (h *history) loose(ctx context.Context, p *process, item itemPlan, r runPlan) {
	c := &caller{h: h, process: p, by: fmt.Sprintf("loose-%d", r.number)}
	if item.name != looseItem {
		c.named = item.name
	}
	c.run = h.begin(c.by, &ledger.Run{Item: item.name}, item, r)
	c.performs(ctx, r)
}

// begin notes a run that was opened.
func (h *history) begin(by string, opened *ledger.Run, item itemPlan, r runPlan) *running {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tick++
	run := &running{
		id: opened.ID, item: item.name, reads: opened.Item, opened: h.tick, at: time.Now(), plan: r,
		asked: map[string]bool{}, told: map[string]told{}, intents: map[string]map[string]bool{},
		sent: map[string]bool{}, given: map[string]bool{}, posted: map[string]time.Time{},
	}
	if r.loose && item.name != looseItem {
		run.reads = looseItem // Its reads name no item.
	}
	if r.once {
		run.item = opened.Item
		h.onces.add(opened.Item)
		h.counts.onces++
	}
	if r.mutations != ledger.MutationsMany {
		h.counts.singles++
	}
	h.runs[by] = run
	return run
}

// sends judges what goes out for a run: nothing for one that may only read, and one mutation for
// one that may make one.
func (h *history) sends(q asked) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run := h.runs[q.by]
	if run == nil {
		return
	}
	run.sent[q.KeepID] = true
	h.over("sent", run.plan, len(run.sent))
	if run.plan.loose {
		h.counts.loose++
	}
}

// over judges how many mutations a run has.
func (h *history) over(what string, r runPlan, n int) {
	switch {
	case r.mutations == ledger.MutationsNone && n > 0:
		h.wrongs = append(h.wrongs, "a run that may only read "+what+" a mutation")
	case r.mutations == ledger.MutationsOne && n > 1:
		h.wrongs = append(h.wrongs, "a run of one mutation "+what+" two")
	}
}

// allowed judges what a run is told of, replays too: no more than it may make.
func (h *history) allowed(m *ledger.Mutation, run *running) {
	h.mu.Lock()
	defer h.mu.Unlock()
	run.given[m.Marker] = true
	h.over("was told of", run.plan, len(run.given))
}

// stops judges what goes out for the first time by the API's own books alone: while a sending is
// over of which nobody was told, and which still takes effect, nobody can know what became of
// it, so nothing that it stops goes out, and no other run with once begins.
func (h *history) stops(q asked) {
	h.mu.Lock()
	run := h.runs[q.by]
	var posted time.Time
	if run != nil {
		posted = run.posted[q.Reference]
	}
	h.mu.Unlock()
	if run == nil || h.api.knows(q.KeepID) {
		return
	}
	for _, other := range h.api.unknown(q.KeepID) {
		h.mu.Lock()
		of := h.runs[other.by]
		h.mu.Unlock()
		switch {
		case of == nil:
		case of.stops(run.item) && posted.After(other.over): // Else it may be one of before that is sent again.
			h.wrongf("%s went out while nobody could know what became of another of its scope", q.operation)
		case of.plan.once && run.plan.once && run.at.After(other.over):
			h.wrongf("a run with once began while nobody could know what became of another's mutation")
		}
	}
}

// stopsRead judges a script's read likewise.
func (h *history) stopsRead(run *running) {
	if run == nil {
		return
	}
	for _, other := range h.api.unknown("") {
		h.mu.Lock()
		of := h.runs[other.by]
		h.mu.Unlock()
		if of != nil && of.stops(run.reads) {
			h.wrongf("a read went out while nobody could know what became of a mutation of its scope")
		}
	}
}

// stops reports whether what is unknown of a run stops an item.
func (r *running) stops(item string) bool {
	switch {
	case r.plan.loose, r.plan.scope == "workflow":
		return true
	case r.plan.scope == "item":
		return r.item == item
	}
	return false
}

// knows reports whether a marker was seen before.
func (a *api) knows(marker string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[marker] {
		return true
	}
	a.seen[marker] = true
	return false
}

// unknown are the sendings of other markers that are over since before now, of which nobody was
// told, and that take effect later, where nothing of their markers is there.
func (a *api) unknown(but string) []asked {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []asked
	for marker, all := range a.hanging {
		there := slices.ContainsFunc(a.objects, func(o *object) bool { return o.KeepID == marker })
		for _, q := range all {
			if marker != but && !there && q.over.Before(time.Now()) {
				out = append(out, q)
			}
		}
	}
	return out
}

// judgeOnce holds that each run with once had effects of its own, and each of them once.
func (h *history) judgeOnce(item itemPlan) {
	most, operations := map[string]int{}, map[string]string{}
	for _, r := range item.runs {
		by := fmt.Sprintf("token-%d", r.number)
		run := h.runs[by]
		if run == nil {
			continue
		}
		for _, s := range r.steps {
			operations[s.reference] = s.operation
		}
		for reference, subkeys := range run.intents {
			most[reference] += len(subkeys)
			if operations[reference] != "placed" && h.api.totalBy(reference, by) > len(subkeys) {
				h.wrongf("%s took effect several times for one run with once", operations[reference])
			}
		}
	}
	for reference, n := range most {
		if total := h.api.total(reference, 0); operations[reference] != "placed" && total > n {
			h.wrongf("%s took effect %d times", operations[reference], total)
		}
	}
}

// totalBy counts what was made of a reference for one client.
func (a *api) totalBy(reference, by string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, o := range a.objects {
		if o.Reference == reference && o.by == by && !o.twin {
			n++
		}
	}
	return n
}
