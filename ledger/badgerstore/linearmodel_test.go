package badgerstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"keep-proxy/internal/verdict"
	"keep-proxy/ledger"
)

// The model is what one caller after another would see of one item: its runs, its
// mutations, and what these owe. It is written from docs/semantics.md, and calls nothing of
// the ledger but its words.

// asked is a command.
type asked struct {
	Item string `json:"item"`
	Do   string `json:"do"`
	// Key is the mutation: a letter and its attempt.
	Key string `json:"key,omitempty"`
	// Run is the token of the run.
	Run string `json:"run,omitempty"`
	// Dispatch is the command's own, or that which it ends.
	Dispatch string `json:"dispatch,omitempty"`
	// Version is the one that the caller saw, and State the state.
	Version int64  `json:"version,omitempty"`
	State   string `json:"state,omitempty"`
	// How are the words that choose between the forms of the command.
	How string `json:"how,omitempty"`
}

func (q *asked) is(word string) bool { return slices.Contains(strings.Fields(q.How), word) }

// payload is what the command's request says.
func (q *asked) payload() string {
	if q.is("other") {
		return "other"
	}
	return "payload"
}

// answered is what came back: the decision, the problem or the state; the version of the
// record; the state of the run; and whose result a script gets.
type answered struct {
	Got     string `json:"got"`
	Version int64  `json:"version,omitempty"`
	Run     string `json:"run,omitempty"`
	Result  string `json:"result,omitempty"`
}

// said is a line that the process prints: a call with what was asked, else its answer.
type said struct {
	ID     int64     `json:"id"`
	Asked  *asked    `json:"asked,omitempty"`
	Answer *answered `json:"answer,omitempty"`
}

// cut is the answer of a command that a kill cut.
var cut = answered{Got: "cut"}

const (
	refused = "refused"
	nothing = "none"
	stale   = "version"
	wrong   = "invalid"
	asItWas = "ok"
)

// world is the state of one item and of all that belongs to it.
type world struct {
	Item      unit
	Runs      map[string]*execution
	Records   map[string]*record
	Delivered map[string]delivered
	// Objects says whose evidence an object is.
	Objects map[string]string
}

// unit is the item.
type unit struct {
	State   ledger.ItemState
	Attempt int
	Active  string
	Cause   string
}

// execution is a run.
type execution struct {
	State     ledger.RunState
	OnFailure ledger.OnFailure
	Mutations ledger.Mutations
	Attempt   int
	Reads     bool
	Overdue   bool
	ByHost    bool
	Only      string
	// Failing are the mutations by which it fails, without a gap.
	Failing [mostFailing]retrying
}

// retrying is a mutation that may be tried again.
type retrying struct {
	Key, Payload string
	Tries        int
}

// mostFailing is more than an item of these tests has mutations.
const mostFailing = 16

// failing finds a mutation among those by which the run fails, or else the first free place.
func (r *execution) failing(key string) *retrying {
	for i := range r.Failing {
		if f := &r.Failing[i]; f.Key == key || f.Key == "" {
			return f
		}
	}
	panic("a run fails by more than the model holds")
}

// healed takes a mutation out of them.
func (r *execution) healed(key string) {
	left := r.Failing
	r.Failing = [mostFailing]retrying{}
	for _, f := range left {
		if f.Key != "" && f.Key != key {
			*r.failing(f.Key) = f
		}
	}
	if r.State == ledger.RunFailing && r.Failing[0].Key == "" {
		r.State = ledger.RunRunning
	}
}

// delivered is the answer that a run has had.
type delivered struct {
	State    string
	Dispatch string
}

// record is a mutation; flat is what of it can be compared by itself.
type record struct {
	flat
	Dispatches  []sending
	Obligations []string
}

type flat struct {
	State     ledger.State
	Version   int64
	Committed bool
	// Known says that an answer is kept, Lost that it is known to be missing, and Result
	// whose answer it is.
	Known, Lost bool
	Result      string
	Payload     string
	Accepted    string
	Disputed    string
	Class       verdict.Class
	Generation  int
	// Absences are those that count, Tries those of the runner.
	Absences, Tries int
	Resends         int
	ResendsClosed   bool
	Queued          bool
	// Question is the kind of the last escalation, and Open whether it is.
	Question string
	Open     bool
	// Displaced are the kinds of those that it displaced, the latest last.
	Displaced string
	// Disagreed and Acknowledged are of what the world said of the result.
	Disagreed, Acknowledged bool
	Forgotten               bool
	Run                     string
	// Of, Order, Sent and Allowed are an obligation's.
	Of                   string
	Order, Sent, Allowed int
}

// sending is one dispatch.
type sending struct {
	ID, Run, Payload string
	Generation       int
	Verdict          ledger.Verdict
	Resolved, Gone   bool
	Resend, Prepared bool
	Redispatch       bool
}

func (w *world) clone() *world {
	c := &world{Item: w.Item, Delivered: maps.Clone(w.Delivered), Objects: maps.Clone(w.Objects)}
	c.Runs, c.Records = map[string]*execution{}, map[string]*record{}
	for token, r := range w.Runs {
		copied := *r
		c.Runs[token] = &copied
	}
	for key, m := range w.Records {
		c.Records[key] = &record{m.flat, slices.Clone(m.Dispatches), slices.Clone(m.Obligations)}
	}
	return c
}

func (w *world) equal(o *world) bool {
	return w.Item == o.Item && maps.Equal(w.Delivered, o.Delivered) && maps.Equal(w.Objects, o.Objects) &&
		maps.EqualFunc(w.Runs, o.Runs, func(a, b *execution) bool { return *a == *b }) &&
		maps.EqualFunc(w.Records, o.Records, func(a, b *record) bool {
			return a.flat == b.flat && slices.Equal(a.Dispatches, b.Dispatches) && slices.Equal(a.Obligations, b.Obligations)
		})
}

func newWorld() *world {
	return &world{
		Runs: map[string]*execution{}, Records: map[string]*record{}, Delivered: map[string]delivered{}, Objects: map[string]string{},
	}
}

// rules are what the rule of a mutation says.
type rules struct {
	reconciler, native, prepares bool
	onAbsent                     ledger.OnAbsent
	scope                        ledger.BlockScope
	limit                        int
}

// Limits of the model and of the ledger that it is held against.
const (
	triesOfRunner = 4
	triesOfGrace  = 2
	resendsAtMost = 3
	sendings      = 2
)

// rulesOf is the rule of a mutation. It differs from item to item, whose names end in a
// number. What is owed has a rule of its own.
func rulesOf(item, key string) rules {
	n := int(item[len(item)-1]-'0') % 3
	switch {
	case strings.HasPrefix(key, "undo"):
		return rules{onAbsent: ledger.AbsentEscalate, scope: ledger.BlockWorkflow, limit: sendings}
	case key[0] == 'a':
		return rules{
			reconciler: true, native: true, limit: sendings,
			onAbsent: []ledger.OnAbsent{ledger.AbsentRedispatch, ledger.AbsentRedispatch, ledger.AbsentEscalate}[n],
			scope:    []ledger.BlockScope{ledger.BlockItem, ledger.BlockMutation, ledger.BlockWorkflow}[n],
		}
	case n == 1:
		return rules{reconciler: true, onAbsent: ledger.AbsentFail, scope: ledger.BlockMutation, limit: sendings}
	}
	return rules{prepares: true, onAbsent: ledger.AbsentFail, scope: ledger.BlockItem, limit: sendings}
}

// steps are the commands of the model.
var steps = map[string]func(*world, *asked) answered{
	"claim": (*world).claim, "join": (*world).join, "read": (*world).read, "look": (*world).look, "recover": (*world).recover,
	"finish": (*world).finish, "commit": (*world).commit, "park": (*world).park, "prepared": (*world).prepared,
	"observe": (*world).observe, "exhaust": (*world).exhaust, "resend": (*world).resend,
	"redispatch": (*world).redispatch, "call_off": (*world).callOff, "run_obligation": (*world).runObligation,
	"resolve": (*world).resolve, "verified": (*world).verified, "forget": (*world).forget,
	"open": (*world).open, "finish_run": (*world).finishRun, "end_run": (*world).endRun, "refuse_run": (*world).endRun,
	"fail_run": (*world).failRun, "heartbeat": (*world).heartbeat, "expire": (*world).expireRuns,
	"decide": (*world).decide, "gate": (*world).gate, "gate_token": (*world).gate, "gate_unmanaged": (*world).gateUnmanaged,
	"deliver": (*world).deliver, "replayed": (*world).deliver, "undelivered": (*world).undelivered, "answering": (*world).note, "refuse": (*world).note,
}

// linear is the model that the history of each item is held against.
var linear = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		byItem := map[string][]porcupine.Operation{}
		for _, o := range history {
			if q, ok := o.Input.(asked); ok {
				byItem[q.Item] = append(byItem[q.Item], o)
			}
		}
		for _, part := range byItem {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{newWorld()} },
	Step: func(state, input, output any) []any {
		w, okState := state.(*world)
		q, okInput := input.(asked)
		got, okOutput := output.(answered)
		if !okState || !okInput || !okOutput {
			return nil
		}
		next := w.clone()
		want := steps[q.Do](next, &q)
		all := []any{next}
		if q.Do == "recover" && next.forgets(q.Key) {
			// An answer is delivered if that is known to be durable.
			less := next.clone()
			maps.DeleteFunc(less.Delivered, func(to string, _ delivered) bool { return strings.HasSuffix(to, " "+q.Key) })
			all = append(all, less)
		}
		switch {
		case got == cut && !next.equal(w):
			return append(all, w)
		case got == cut || got == want:
			return all
		}
		return nil
	},
	Equal: func(a, b any) bool {
		x, okX := a.(*world)
		y, okY := b.(*world)
		return okX && okY && x.equal(y)
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// forgets reports whether a run was delivered an answer of the mutation.
func (w *world) forgets(key string) bool {
	for to := range w.Delivered {
		if strings.HasSuffix(to, " "+key) {
			return true
		}
	}
	return false
}

// read is what the ledger holds of a mutation.
func (w *world) read(q *asked) answered {
	m := w.Records[q.Key]
	if m == nil {
		return answered{Got: nothing}
	}
	a := answered{Got: string(m.State), Version: m.Version}
	if m.State == ledger.Applied && m.Known {
		a.Result = m.Result
	}
	return a
}

// look is what the ledger holds of the item.
func (w *world) look(*asked) answered {
	if w.Item.State == "" {
		return answered{Got: nothing}
	}
	return answered{Got: string(w.Item.State), Version: int64(w.Item.Attempt), Run: w.Item.Active}
}

func (w *world) note(q *asked) answered {
	if q.Run != "" && w.Runs[q.Run] == nil {
		return answered{Got: nothing}
	}
	return answered{Got: asItWas}
}

// undelivered notes that the run asked for the mutation, unless it has had an answer.
func (w *world) undelivered(q *asked) answered {
	if w.Runs[q.Run] == nil {
		return answered{Got: nothing}
	}
	if to := q.Run + " " + q.Key; !w.given(q.Run, q.Key) {
		w.Delivered[to] = delivered{}
	}
	return answered{Got: asItWas}
}

// deliver notes that the run has had the answer of the mutation as the caller saw it.
func (w *world) deliver(q *asked) answered {
	if w.Runs[q.Run] == nil {
		return answered{Got: nothing}
	}
	w.Delivered[q.Run+" "+q.Key] = delivered{q.State, q.Dispatch}
	return answered{Got: asItWas}
}
