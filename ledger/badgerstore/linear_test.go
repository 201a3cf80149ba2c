package badgerstore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
	"keep-proxy/ledger/ledgertest"
)

// Concurrent callers command a real ledger in a process that is killed again and again. What
// they called and were answered has to be what one caller after another would have seen, for
// each item with its runs, its mutations and what these owe; a command that was cut by a kill
// was done before it or never. The commands are those of calls.

// linearVar tells the test binary to be that process; it holds a life.
const linearVar = "KEEP_TEST_LEDGER_LINEAR"

// life is one process.
type life struct {
	Number int `json:"number"`
	// Items are those of all lives, of which the last ones are asked about.
	Items []string `json:"items"`
	// First are the commands that nobody was asked yet.
	First []string `json:"first"`
}

// newItems is how many items each life begins, itemsAsked how many are asked about: those,
// and one of the life before.
const (
	newItems   = 2
	itemsAsked = 3
)

// linearLives is how often the process is killed; the number of kills in the environment,
// which is that of the whole program, asks for more. linearLines is after how many lines at
// least, and up to as many more.
func linearLives() int {
	if n, err := strconv.Atoi(os.Getenv("KEEP_TEST_KILLS")); err == nil {
		return max(fewLinearLives, n/4)
	}
	return fewLinearLives
}

const (
	fewLinearLives = 6
	linearLines    = 300
)

func TestCommandsOfConcurrentCallersAreLinearizable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(5, 6))
	var history []porcupine.Operation
	var clock int64
	points := []string{"", "badgerstore.before_log:60", "badgerstore.after_fold:4", "", "badgerstore.after_log:51", "badgerstore.after_publish:80"}
	now := life{First: words()}
	for now.Number = range linearLives() {
		for n := range newItems {
			now.Items = append(now.Items, fmt.Sprintf("item-%d", newItems*now.Number+n))
		}
		lines := linearLife(t, dir, now, points[now.Number%len(points)], linearLines+random.IntN(linearLines))
		history = append(history, operations(t, lines, &clock)...)
		now.First = slices.DeleteFunc(now.First, func(word string) bool {
			return slices.ContainsFunc(lines, func(s said) bool { return s.Asked != nil && s.Asked.Do == word })
		})
	}
	if len(now.First) > 0 {
		t.Errorf("nobody was asked to %v", now.First)
	}
	now.Number++
	l := linearLedger(t, dir, now.Number)
	for _, item := range now.Items {
		_, records, err := l.mutations(item)
		if err != nil {
			t.Fatal(err)
		}
		ask := []asked{{Item: item, Do: "look"}}
		for key := range records {
			ask = append(ask, asked{Item: item, Do: "read", Key: key})
		}
		for _, q := range ask {
			history = append(history, porcupine.Operation{Input: q, Call: clock, Output: l.do(q), Return: clock + 1})
			clock += 2
		}
	}
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	checkLinear(t, history)
	if _, err := Verify(context.Background(), testConfig(dir), nil); err != nil {
		t.Error(err)
	}
}

// checkLinear holds the history of each item against the model, and tells how often which
// command was answered what.
func checkLinear(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	for _, part := range linear.Partition(history) {
		if result := porcupine.CheckOperationsTimeout(linear.ToModel(), part, 5*time.Minute); result != porcupine.Ok {
			t.Errorf("a history of %d commands is %s:\n%s", len(part), result, whereItEnds(part))
		}
	}
	done := map[string]map[string]int{}
	for _, o := range history {
		q, _ := o.Input.(asked)
		a, _ := o.Output.(answered)
		if done[q.Do] == nil {
			done[q.Do] = map[string]int{}
		}
		done[q.Do][a.Got]++
	}
	t.Logf("%d commands: %v", len(history), done)
	if done["claim"]["dispatch"] == 0 {
		t.Errorf("no claim was sent: %v", done["claim"])
	}
}

// whereItEnds is the end of the shortest beginning of the history that no order explains.
func whereItEnds(part []porcupine.Operation) string {
	slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Return - b.Return) })
	n := 1
	for ; n < len(part) && porcupine.CheckOperations(linear.ToModel(), until(part, part[n-1].Return)); n++ {
	}
	text := ""
	last := part[:min(n, len(part))]
	cutOff := slices.DeleteFunc(slices.Clone(part), func(o porcupine.Operation) bool { return o.Output != cut || o.Call > last[len(last)-1].Return })
	for _, o := range append(cutOff, last[max(0, len(last)-linesOfPart):]...) {
		text += fmt.Sprintf("%d to %d: %+v: %+v\n", o.Call, o.Return, o.Input, o.Output)
	}
	return text
}

// until is what was called before a moment; what had no answer then may have been done.
func until(part []porcupine.Operation, moment int64) (begun []porcupine.Operation) {
	for _, o := range part {
		if o.Call >= moment {
			continue
		}
		if o.Return > moment {
			o.Output, o.Return = cut, moment
		}
		begun = append(begun, o)
	}
	return begun
}

const linesOfPart = 60

// A checker that takes everything would find nothing.
func TestLinearizabilityIsNotTakenForGranted(t *testing.T) {
	t.Parallel()
	op := func(q asked, a answered, call, ret int64) porcupine.Operation {
		q.Item, q.Key = "item-0", "a1"
		return porcupine.Operation{Input: q, Output: a, Call: call, Return: ret}
	}
	claim := func(dispatch, got string, call, ret int64) porcupine.Operation {
		return op(asked{Do: "claim", Dispatch: dispatch}, answered{Got: got, Version: 1}, call, ret)
	}
	lost := op(asked{Do: "recover"}, answered{Got: asItWas}, 2, 3)
	cutShort := op(asked{Do: "claim", Dispatch: "1"}, cut, 0, 1)
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"two claims at once, one is sent":       {[]porcupine.Operation{claim("1", "dispatch", 0, 3), claim("2", "join", 1, 2)}, true},
		"two claims at once, both are":          {[]porcupine.Operation{claim("1", "dispatch", 0, 3), claim("2", "dispatch", 1, 2)}, false},
		"a claim that was acknowledged is gone": {[]porcupine.Operation{claim("1", "dispatch", 0, 1), lost, claim("2", "dispatch", 4, 5)}, false},
		"one that was cut may be":               {[]porcupine.Operation{cutShort, lost, claim("2", "dispatch", 4, 5)}, true},
		"one that was cut comes after the kill": {
			[]porcupine.Operation{
				cutShort, op(asked{Do: "read"}, answered{Got: nothing}, 2, 3), op(asked{Do: "read"}, answered{Got: "in_flight", Version: 1}, 4, 5),
			}, false,
		},
		"a stale observation counts": {
			[]porcupine.Operation{claim("1", "dispatch", 0, 1), op(asked{Do: "exhaust", Version: 0}, answered{Got: "indeterminate", Version: 2}, 2, 3)}, false,
		},
	} {
		if got := porcupine.CheckOperations(linear.ToModel(), c.history); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A command that is new has to be drawn, or it is said why not.
func TestEveryCommandIsDrawn(t *testing.T) {
	t.Parallel()
	drawn := map[string]bool{}
	for word, c := range calls {
		drawn[c.method] = true
		if steps[word] == nil {
			t.Errorf("the model doesn't know %s", word)
		}
	}
	commands, store, memory := reflect.TypeFor[*ledger.Ledger](), reflect.TypeFor[ledger.Store](), reflect.TypeFor[ledger.Standings]()
	for method := range commands.Methods() {
		name := method.Name
		_, ofStore := store.MethodByName(name)
		_, ofMemory := memory.MethodByName(name)
		if !ofStore && !ofMemory && !drawn[name] && notDrawn[name] == "" {
			t.Errorf("no caller draws %s", name)
		}
		delete(drawn, name)
	}
	delete(drawn, "")
	if len(drawn) > 0 {
		t.Errorf("there are no commands %v", slices.Collect(maps.Keys(drawn)))
	}
}

// linearLife runs the process until it is killed, and returns what it printed.
func linearLife(t *testing.T, dir string, now life, point string, lines int) []said {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(now)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), linearVar+"="+string(text), fault.EnvVar+"="+point)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var all []said
	for in := bufio.NewScanner(out); in.Scan(); {
		var s said
		if err := json.Unmarshal(in.Bytes(), &s); err != nil {
			continue // The line that the kill cut.
		}
		if all = append(all, s); s.Asked != nil && s.Asked.Do != "recover" {
			lines -= 2
		}
		if lines <= 0 {
			_ = cmd.Process.Kill()
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the process was not killed: %v", err)
	}
	return all
}

// operations joins calls and answers. What has no answer was cut at the end.
func operations(t *testing.T, lines []said, clock *int64) []porcupine.Operation {
	t.Helper()
	var ops []porcupine.Operation
	at := map[int64]int{}
	for _, s := range lines {
		*clock++
		if s.Asked != nil {
			at[s.ID] = len(ops)
			ops = append(ops, porcupine.Operation{Input: *s.Asked, Call: *clock, Output: cut, Return: -1})
			continue
		}
		ops[at[s.ID]].Output, ops[at[s.ID]].Return = *s.Answer, *clock
	}
	*clock++
	for i := range ops {
		if ops[i].Return < 0 {
			ops[i].Return = *clock
		}
	}
	if len(ops) == 0 {
		t.Error("the process did nothing")
	}
	untilDurable(ops, *clock)
	return ops
}

// untilDurable lets notes, which nobody waits for, take effect until what was surely written after
// them is durable, or the process ends: what is asked of the newest state that is durable may be
// answered without them till then.
func untilDurable(ops []porcupine.Operation, end int64) {
	type write struct{ call, ret int64 }
	var writes []write
	for _, o := range ops {
		q, _ := o.Input.(asked)
		a, _ := o.Output.(answered)
		if q.Do == "claim" && a.Got == "dispatch" || q.Do == "open" && a.Got == string(ledger.RunRunning) {
			writes = append(writes, write{o.Call, o.Return})
		}
	}
	for i := range ops {
		o := &ops[i]
		if q, _ := o.Input.(asked); !slices.Contains([]string{"deliver", "replayed", "undelivered"}, q.Do) || o.Output == cut {
			continue
		}
		until := end
		for _, w := range writes {
			if w.call > o.Return {
				until = min(until, w.ret)
			}
		}
		o.Return = max(o.Return, until)
	}
}

// linearized is a ledger whose commands are asked and answered in words.
type linearized struct {
	ctx   context.Context
	store *Store
	*ledger.Ledger
	ids atomic.Int64
	tag string
	now func() ledger.Stamp
	// owed are the keys of obligations by their names, tokens the last run opened of each
	// workflow.
	owed, tokens sync.Map
	// prints is held while a line is printed.
	prints sync.Mutex
	// tours is held while the next command is drawn.
	tours sync.Mutex
	tour  []string
	// lingering are items of which a run goes on that nobody asks about any more.
	lingering []string
}

func linearLedger(tb testing.TB, dir string, number int) *linearized {
	tb.Helper()
	l, err := openLinear(dir, number)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

// linearTick is what passes between two looks at the clock, which goes on from life to life
// by a minute: no settle is over by chance.
const linearTick = time.Microsecond

func openLinear(dir string, number int) (*linearized, error) {
	c := testConfig(dir)
	c.ring = 256 << 10 // So that Badger is given something every now and then.
	// Ids are told apart over processes.
	l := &linearized{ctx: context.Background(), tag: fmt.Sprintf("p%d", number)}
	var ticks atomic.Int64
	l.now = func() ledger.Stamp {
		passed := time.Duration(number+1)*time.Minute + time.Duration(ticks.Add(1))*linearTick
		return ledger.Stamp{Wall: ledgertest.Epoch.Add(passed), Mono: passed, Boot: passed, BootID: "boot"}
	}
	c.NewID, c.Now = l.id, l.now
	s, err := Open(context.Background(), c)
	if err != nil {
		return nil, err
	}
	l.store, l.Ledger = s, ledger.New(s, ledger.Config{
		Now: l.now, NewID: l.id, RetryGrace: linearTTL, RetryGraceTries: triesOfGrace, Reconcile: ledger.ReconcileLimits{MaxAttempts: triesOfRunner},
	})
	return l, nil
}

func (l *linearized) id() string { return fmt.Sprintf("%s-%d", l.tag, l.ids.Add(1)) }

// print tells the parent. It comes before a command is called, and after it was answered.
func (l *linearized) print(s said) {
	l.prints.Lock()
	defer l.prints.Unlock()
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // Strings and numbers only.
	}
	fmt.Println(string(text))
}

// begin tells of calls, and returns how to tell of their answers.
func (l *linearized) begin(all ...asked) (end func(answered)) {
	var ids []int64
	for _, q := range all {
		ids = append(ids, l.ids.Add(1))
		l.print(said{ID: ids[len(ids)-1], Asked: &q})
	}
	return func(a answered) {
		for _, id := range ids {
			l.print(said{ID: id, Answer: &a})
		}
	}
}

// tell does a command between its two lines.
func (l *linearized) tell(q asked) {
	all := []asked{q}
	if q.Do == "expire" {
		// It is about every run.
		for _, item := range l.lingering {
			if item != q.Item {
				all = append(all, asked{Item: item, Do: q.Do})
			}
		}
	}
	end := l.begin(all...)
	if q.Do == "expire" {
		a := answered{Got: asItWas}
		if _, err := l.ExpireRuns(l.ctx); err != nil {
			a.Got = err.Error()
		}
		end(a)
		return
	}
	a := l.do(q)
	end(a)
	if q.Do == "open" && a.Got == string(ledger.RunRunning) {
		l.tokens.Store(q.Item, q.Run)
	}
}

// commandForEver opens the ledger, recovers, and commands it from several goroutines.
func commandForEver(text string) error {
	var now life
	if err := errors.Join(json.Unmarshal([]byte(text), &now), fault.ArmFromEnv()); err != nil {
		return err
	}
	l, err := openLinear(".", now.Number)
	if err != nil {
		return err
	}
	l.tour = now.First
	items := now.Items[max(0, len(now.Items)-itemsAsked):]
	lost, err := l.lost(now.Items)
	if err != nil {
		return err
	}
	end := l.begin(lost...)
	if _, err := l.Recover(l.ctx, func(*ledger.Mutation) time.Time { return l.now().Wall }); err != nil {
		return err
	}
	end(answered{Got: asItWas})
	running, err := l.Running()
	if err != nil {
		return err
	}
	l.lingering = slices.Clone(items)
	for i := range running {
		if !slices.Contains(items, running[i].Workflow) {
			l.lingering = append(l.lingering, running[i].Workflow)
		}
	}
	slices.Sort(l.lingering)
	l.lingering = slices.Compact(l.lingering)
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() { l.call(items) })
	}
	callers.Wait()
	return nil
}

// lost is what recovery may mean: to the records of the last items any change, to those of
// others only if the process before was killed as it recovered.
func (l *linearized) lost(items []string) (all []asked, err error) {
	for n, item := range items {
		_, records, err := l.mutations(item)
		if err != nil {
			return nil, err
		}
		for key, m := range records {
			if n >= len(items)-itemsAsked-newItems || m.State == ledger.InFlight || m.State == ledger.NeedsReconcile {
				all = append(all, asked{Item: item, Do: "recover", Key: key})
			}
		}
	}
	return all, nil
}
