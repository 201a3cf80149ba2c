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
	// connectors are those of the mutations that block, by the place of each name in names.
	connectors map[ledger.Key]uint32
	names      []string
	places     map[string]uint32
	// ended lists runs by their end, so that the gate lets the old ones go.
	ended []endedRun
}

// blocked is a blocker as the gate keeps it, with its age, by which blockers are ordered.
// Its texts are parts of one: where a hundred thousand block, what the collector has to
// look at each time is one pointer for each instead of six.
type blocked struct {
	created uint64
	key     ledger.Key
	// text is workflow, id, item, run, scope and state, and ends where each of them ends.
	text string
	ends [6]uint32
}

// blockedBy copies the texts of by: what was read is parts of one text, which the gate
// must not keep for a few names.
func blockedBy(created uint64, by *ledger.Blocker) blocked {
	b := blocked{created: created, key: by.Key}
	texts := [...]string{by.Workflow, by.ID, by.Item, by.Run, string(by.Scope), string(by.State)}
	n := 0
	for _, s := range texts {
		n += len(s)
	}
	var text strings.Builder
	text.Grow(n)
	for i, s := range texts {
		text.WriteString(s)
		b.ends[i] = uint32(text.Len()) // A record is far shorter than 4 GiB.
	}
	b.text = text.String()
	return b
}

// workflow is the one that b blocks.
func (b *blocked) workflow() string { return b.text[:b.ends[0]] }

// blocker is what b was made of.
func (b *blocked) blocker() ledger.Blocker {
	e := &b.ends
	return ledger.Blocker{
		Key: b.key, Workflow: b.workflow(), ID: b.text[e[0]:e[1]], Item: b.text[e[1]:e[2]], Run: b.text[e[2]:e[3]],
		Scope: ledger.BlockScope(b.text[e[3]:e[4]]), State: ledger.State(b.text[e[4]:e[5]]),
	}
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
		stopped: map[string]*stopped{}, connectors: map[ledger.Key]uint32{}, places: map[string]uint32{},
	}
}

func (d *gateDelta) setRun(r *ledger.Run) {
	c := *r
	d.runs = append(d.runs, &c)
}

func (d *gateDelta) setMutation(m *ledger.Mutation) {
	c := blockChange{unresolved: m.Unresolved()}
	by := ledger.Blocker{Key: m.Key, Workflow: m.Workflow}
	if c.unresolved {
		by, c.connector = blockerOf(m), m.Connector
	}
	c.blocked = blockedBy(nanos(m.CreatedAt), &by)
	d.mutations = append(d.mutations, c)
}

func (d *gateDelta) add(o gateDelta) {
	d.runs = append(d.runs, o.runs...)
	d.mutations = append(d.mutations, o.mutations...)
}

// publish makes d visible, tells those who watch, and lets go of runs that have ended.
func (g *gate) publish(d gateDelta, now time.Time) {
	g.mu.Lock()
	stops := g.put(d, now)
	g.mu.Unlock()
	if stops {
		g.watchers.Tell()
	}
}

// put reports whether it may have stopped something. The lock is held.
func (g *gate) put(d gateDelta, now time.Time) (stops bool) {
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
		g.connectors[c.key] = g.place(c.connector)
	} else {
		delete(g.connectors, c.key)
	}
	s := g.stopped[c.workflow()]
	if s == nil {
		s = new(stopped)
	}
	if !s.put(change{c.blocked, c.unresolved}) {
		return false
	}
	if s.count == 0 {
		delete(g.stopped, c.workflow())
	} else {
		g.stopped[c.workflow()] = s
	}
	return true
}

// place returns where a copy of a connector's name is, the same one each time: there are few.
func (g *gate) place(connector string) uint32 {
	at, ok := g.places[connector]
	if !ok {
		at = uint32(len(g.names))
		g.names = append(g.names, strings.Clone(connector))
		g.places[g.names[at]] = at
	}
	return at
}

// connectorOf is the connector of one that blocks, "" for any other.
func (g *gate) connectorOf(k ledger.Key) string {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if at, ok := g.connectors[k]; ok {
		return g.names[at]
	}
	return ""
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

// plain lists what blocks as others see it.
func plain(list []blocked) []ledger.Blocker {
	out := make([]ledger.Blocker, len(list))
	for i := range list {
		out[i] = list[i].blocker()
	}
	return out
}

func byAge(a, b blocked) int {
	return cmp.Or(cmp.Compare(a.created, b.created), bytes.Compare(a.key[:], b.key[:]))
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
			if c.workflow() == workflow {
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
