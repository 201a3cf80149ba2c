package badgerstore

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"keep-proxy/ledger"
)

// gate answers from memory what stands in a request's way: the runs that aren't
// over, or ended less than keepEnded ago, and what blocks each workflow.
type gate struct {
	watchers ledger.Watchers

	mu   sync.RWMutex
	runs map[string]*ledger.Run
	// running are those of them that aren't over.
	running map[string]*ledger.Run
	tokens  map[string]string
	// stopped are the workflows in which something blocks.
	stopped map[string]*stopped
	// connectors are those of the mutations that block. names holds each of their names
	// once.
	connectors map[ledger.Key]string
	names      map[string]string
	// ended lists runs by their end, so that the gate lets the old ones go.
	ended []endedRun
}

// blocked is a blocker with its age, by which blockers are ordered.
type blocked struct {
	created uint64
	ledger.Blocker
}

type endedRun struct {
	at time.Time
	id string
}

// gateDelta is what one command, or one batch, changes in the gate.
type gateDelta struct {
	runs      []*ledger.Run
	mutations []blockChange
}

// blockChange says whether a mutation stands in the way from now on.
type blockChange struct {
	blocked
	connector  string
	unresolved bool
}

func newGate() *gate {
	return &gate{
		runs: map[string]*ledger.Run{}, running: map[string]*ledger.Run{}, tokens: map[string]string{},
		stopped: map[string]*stopped{}, connectors: map[ledger.Key]string{}, names: map[string]string{},
	}
}

func (d *gateDelta) setRun(r *ledger.Run) {
	c := *r
	d.runs = append(d.runs, &c)
}

func (d *gateDelta) setMutation(m *ledger.Mutation) {
	c := blockChange{blocked{nanos(m.CreatedAt), blockerOf(m)}, m.Connector, m.Unresolved()}
	// What was read is parts of one text, which the gate must not keep for a few names.
	if c.unresolved {
		own(&c.Blocker)
	} else {
		c.Blocker = ledger.Blocker{Key: c.Key, Workflow: strings.Clone(c.Workflow)}
	}
	d.mutations = append(d.mutations, c)
}

// own makes the names of b parts of one copy: the fewer there are, the sooner memory has
// been looked through.
func own(b *ledger.Blocker) {
	names := [...]*string{&b.ID, &b.Workflow, &b.Item, &b.Run}
	var text strings.Builder
	text.Grow(len(b.ID) + len(b.Workflow) + len(b.Item) + len(b.Run))
	for _, n := range names {
		text.WriteString(*n)
	}
	rest := text.String()
	for _, n := range names {
		*n, rest = rest[:len(*n)], rest[len(*n):]
	}
	b.Scope = oneOf(b.Scope, ledger.BlockWorkflow, ledger.BlockItem, ledger.BlockMutation)
	b.State = oneOf(b.State, ledger.InFlight, ledger.NeedsReconcile, ledger.Indeterminate)
}

// oneOf returns v as one of those that are known, or a copy of it.
func oneOf[T ~string](v T, known ...T) T {
	if at := slices.Index(known, v); at >= 0 {
		return known[at]
	}
	return T(strings.Clone(string(v)))
}

func (d *gateDelta) add(o gateDelta) {
	d.runs = append(d.runs, o.runs...)
	d.mutations = append(d.mutations, o.mutations...)
}

// publish makes d visible, in one step, tells those who watch, and lets go of runs that
// have ended.
func (g *gate) publish(d gateDelta, now time.Time) {
	if g.put(d, now) {
		g.watchers.Tell()
	}
}

// put reports whether it may have stopped something.
func (g *gate) put(d gateDelta, now time.Time) (stops bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range d.runs {
		stops = stops || shuts(g.runs[r.ID], r)
		g.setRun(r)
	}
	for _, c := range d.mutations {
		stops = g.setMutation(c) || stops
	}
	g.letGo(now)
	return stops
}

// setMutation reports whether c changes what blocks its workflow.
func (g *gate) setMutation(c blockChange) bool {
	if c.unresolved {
		c.connector = g.name(c.connector)
		g.connectors[c.Key] = c.connector
	} else {
		c.connector = ""
		delete(g.connectors, c.Key)
	}
	s := g.stopped[c.Workflow]
	if s == nil {
		s = new(stopped)
	}
	if !s.put(c) {
		return false
	}
	if s.count == 0 {
		delete(g.stopped, c.Workflow)
	} else {
		g.stopped[c.Workflow] = s
	}
	return true
}

// name returns a copy of a connector's name, the same one each time: there are few.
func (g *gate) name(connector string) string {
	known, ok := g.names[connector]
	if !ok {
		known = strings.Clone(connector)
		g.names[known] = known
	}
	return known
}

// connectorsOf lists the connectors of those that block, "" for any other.
func (g *gate) connectorsOf(keys []ledger.Key) []string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = g.connectors[k]
	}
	return out
}

// shuts reports whether what a run was, if it was, may be refused now.
func shuts(was, is *ledger.Run) bool {
	return !ledger.Admit(*is, nil).Open ||
		was != nil && (was.TokenSHA256 != is.TokenSHA256 || was.Workflow != is.Workflow || was.Item != is.Item)
}

func (g *gate) setRun(r *ledger.Run) {
	if old := g.runs[r.ID]; old != nil {
		delete(g.tokens, old.TokenSHA256)
	}
	g.runs[r.ID] = r
	if r.TokenSHA256 != "" {
		g.tokens[r.TokenSHA256] = r.ID
	}
	if r.State.Ended() {
		delete(g.running, r.ID)
		g.ended = append(g.ended, endedRun{r.EndedAt, r.ID})
		return
	}
	g.running[r.ID] = r
}

// listRunning copies the runs that aren't over.
func (g *gate) listRunning() []ledger.Run {
	g.mu.RLock()
	defer g.mu.RUnlock()
	list := make([]ledger.Run, 0, len(g.running))
	for _, id := range slices.Sorted(maps.Keys(g.running)) {
		list = append(list, *g.running[id])
	}
	return list
}

// rest lets go of runs that have ended, as publish does, if nothing is published.
func (g *gate) rest(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.letGo(now)
	g.ended = slices.Clip(slices.Clone(g.ended))
}

// letGo drops runs whose end is past: the store finds them in the engine.
func (g *gate) letGo(now time.Time) {
	n := 0
	for ; n < len(g.ended) && now.Sub(g.ended[n].at) > keepEnded; n++ {
		r := g.runs[g.ended[n].id]
		if r == nil || now.Sub(r.EndedAt) <= keepEnded {
			continue
		}
		delete(g.runs, r.ID)
		delete(g.tokens, r.TokenSHA256)
	}
	g.ended = slices.Delete(g.ended, 0, n)
}

func plain(list []blocked) []ledger.Blocker {
	out := make([]ledger.Blocker, len(list))
	for i := range list {
		out[i] = list[i].Blocker
	}
	return out
}

func byAge(a, b blocked) int {
	return cmp.Or(cmp.Compare(a.created, b.created), bytes.Compare(a.Key[:], b.Key[:]))
}

// apply puts c into the ordered list, or takes it out.
func apply(list []blocked, c blockChange) ([]blocked, bool) {
	at, found := slices.BinarySearchFunc(list, c.blocked, byAge)
	switch {
	case c.unresolved && found:
		if list[at] == c.blocked {
			return list, false
		}
		list[at] = c.blocked
		return list, true
	case c.unresolved:
		return slices.Insert(list, at, c.blocked), true
	case found:
		return slices.Delete(list, at, at+1), true
	}
	return list, false
}

// pending lists a workflow's blockers as the deltas leave them.
func (g *gate) pending(workflow string, deltas ...*gateDelta) []ledger.Blocker {
	g.mu.RLock()
	list := slices.Clone(g.stopped[workflow].sorted())
	g.mu.RUnlock()
	for _, d := range deltas {
		for _, c := range d.mutations {
			if c.Workflow == workflow {
				list, _ = apply(list, c)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return plain(list)
}

func (g *gate) standing(id string) (ledger.Run, []ledger.Blocker, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.standingLocked(id)
}

func (g *gate) standingByToken(token string) (ledger.Run, []ledger.Blocker, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	id, ok := g.tokens[token]
	if !ok || token == "" {
		return ledger.Run{}, nil, ledger.ErrNotFound
	}
	return g.standingLocked(id)
}

func (g *gate) standingLocked(id string) (ledger.Run, []ledger.Blocker, error) {
	r := g.runs[id]
	if r == nil {
		return ledger.Run{}, nil, ledger.ErrNotFound
	}
	return *r, g.stopped[r.Workflow].standstill().of(r), nil
}

// blockersFor are those that may stop a run which the gate needn't know.
func (g *gate) blockersFor(r *ledger.Run) []ledger.Blocker {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.stopped[r.Workflow].standstill().of(r)
}

func (g *gate) blockersOf(workflow string) []ledger.Blocker {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.stopped[workflow].standstill().all
}
