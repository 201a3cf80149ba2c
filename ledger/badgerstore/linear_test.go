package badgerstore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"keep-proxy/internal/fault"
	"keep-proxy/ledger"
)

// Concurrent callers command a real ledger in a process that is killed again and again. What
// they called and were answered has to be what one caller after another would have seen, for
// each mutation; a command that was cut by a kill was done before it or never.

// linearVar tells the test binary to be that process; it holds the keys of all lives, of
// which the last ones are asked about.
const linearVar = "KEEP_TEST_LEDGER_LINEAR"

// keysAsked is how many those are: of this life and the one before.
const keysAsked = 6

// linearLives is how often the process is killed; the number of kills in the environment,
// which is that of the whole program, asks for more. linearLines is after how many lines at
// most.
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
	var all []string
	points := []string{"", "badgerstore.before_sync:9", "badgerstore.before_highwater:14", "", "badgerstore.after_highwater:11", "badgerstore.after_publish:20"}
	lives := linearLives()
	for life := range lives {
		keys := []string{fmt.Sprintf("%d-a", life), fmt.Sprintf("%d-b", life), fmt.Sprintf("%d-c", life)}
		all = append(all, keys...)
		lines := linearLife(t, dir, all, points[life%len(points)], 40+random.IntN(linearLines))
		history = append(history, operations(t, lines, &clock)...)
	}
	l := linearLedger(t, dir)
	for _, k := range all {
		q := asked{Key: k, Do: "read"}
		history = append(history, porcupine.Operation{Input: q, Call: clock, Output: l.do(q), Return: clock + 1})
		clock += 2
	}
	if err := l.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, part := range linear.Partition(history) {
		if result := porcupine.CheckOperationsTimeout(linear.ToModel(), part, 5*time.Minute); result != porcupine.Ok {
			t.Errorf("a history of %d commands is %s:", len(part), result)
			for _, o := range part {
				t.Logf("%d to %d: %+v: %+v", o.Call, o.Return, o.Input, o.Output)
			}
		}
	}
	done := map[string]int{}
	for _, o := range history {
		if a, ok := o.Output.(answered); ok {
			done[a.Got]++
		}
	}
	t.Logf("%d commands on %d mutations in %d lives: %v", len(history), len(all), lives, done)
	for _, want := range []string{"dispatch", "applied", "replay"} {
		if done[want] == 0 {
			t.Errorf("no command was answered %s: %v", want, done)
		}
	}
	if _, err := Verify(context.Background(), testConfig(dir), nil); err != nil {
		t.Error(err)
	}
}

// A checker that takes everything would find nothing.
func TestLinearizabilityIsNotTakenForGranted(t *testing.T) {
	t.Parallel()
	op := func(do, dispatch, got string, call, ret int64) porcupine.Operation {
		return porcupine.Operation{Input: asked{"k", do, dispatch}, Output: answered{Got: got}, Call: call, Return: ret}
	}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		want    bool
	}{
		"two claims at once, one is sent": {[]porcupine.Operation{op("claim", "1", "dispatch", 0, 3), op("claim", "2", "join", 1, 2)}, true},
		"two claims at once, both are":    {[]porcupine.Operation{op("claim", "1", "dispatch", 0, 3), op("claim", "2", "dispatch", 1, 2)}, false},
		"a claim that was acknowledged is gone": {
			[]porcupine.Operation{op("claim", "1", "dispatch", 0, 1), op("recover", "", "", 2, 3), op("claim", "2", "dispatch", 4, 5)}, false,
		},
		"one that was cut may be": {
			[]porcupine.Operation{op("claim", "1", "cut", 0, 1), op("recover", "", "", 2, 3), op("claim", "2", "dispatch", 4, 5)}, true,
		},
		"one that was cut comes after the kill": {
			[]porcupine.Operation{op("claim", "1", "cut", 0, 1), op("read", "", "", 2, 3), op("read", "", "in_flight", 4, 5)}, false,
		},
	} {
		if got := porcupine.CheckOperations(linear.ToModel(), c.history); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// linearLife runs the process until it is killed, and returns what it printed.
func linearLife(t *testing.T, dir string, keys []string, point string, lines int) []said {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(keys)
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
		if all = append(all, s); len(all) == lines {
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
	return ops
}

// linearized is a ledger whose commands are asked and answered in words.
type linearized struct {
	store *Store
	*ledger.Ledger
	ids atomic.Int64
	tag string
	// prints is held while a line is printed.
	prints sync.Mutex
}

func linearLedger(tb testing.TB, dir string) *linearized {
	tb.Helper()
	l, err := openLinear(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return l
}

func openLinear(dir string) (*linearized, error) {
	c := testConfig(dir)
	// Ids are told apart over processes.
	tag := fmt.Sprintf("p%d", time.Now().UnixNano())
	l := &linearized{tag: tag}
	c.NewID = l.id
	s, err := Open(context.Background(), c)
	if err != nil {
		return nil, err
	}
	l.store, l.Ledger = s, ledger.New(s, ledger.Config{Now: c.Now, NewID: l.id})
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

// tell does a command between its two lines.
func (l *linearized) tell(q asked) answered {
	id := l.ids.Add(1)
	l.print(said{ID: id, Asked: &q})
	a := l.do(q)
	l.print(said{ID: id, Answer: &a})
	return a
}

// commandForEver opens the ledger, recovers, and commands it from several goroutines.
func commandForEver(text string) error {
	var keys []string
	if err := errors.Join(json.Unmarshal([]byte(text), &keys), fault.ArmFromEnv()); err != nil {
		return err
	}
	l, err := openLinear(".")
	if err != nil {
		return err
	}
	var ids []int64
	for _, k := range keys {
		ids = append(ids, l.ids.Add(1))
		l.print(said{ID: ids[len(ids)-1], Asked: &asked{Key: k, Do: "recover"}})
	}
	if _, err := l.Recover(context.Background(), func(*ledger.Mutation) time.Time { return time.Now() }); err != nil {
		return err
	}
	for _, id := range ids {
		l.print(said{ID: id, Answer: &answered{}})
	}
	var callers sync.WaitGroup
	for range 5 {
		callers.Go(func() { l.call(keys[max(0, len(keys)-keysAsked):]) })
	}
	callers.Wait()
	return nil
}

// call claims, and ends what it got to send.
func (l *linearized) call(keys []string) {
	for {
		k := keys[rand.IntN(len(keys))]
		switch rand.IntN(6) {
		case 0:
			l.tell(asked{Key: k, Do: "read"})
		case 1:
			l.tell(asked{Key: k, Do: []string{"happened", "did_not_happen"}[rand.IntN(2)], Dispatch: l.id()})
		default:
			q := asked{Key: k, Do: "claim", Dispatch: l.id()}
			if a := l.tell(q); a.Got == "dispatch" {
				q.Do = []string{"applied", "failed", "failed", "uncertain"}[rand.IntN(4)]
				l.tell(q)
			}
		}
	}
}

// do carries out a command.
func (l *linearized) do(q asked) answered {
	ctx, key := context.Background(), ledger.Key(sha256.Sum256([]byte(q.Key)))
	var m *ledger.Mutation
	var err error
	switch q.Do {
	case "claim":
		var out ledger.Claimed
		if out, err = l.Claim(ctx, linearClaim(q, key)); err == nil {
			return answered{string(out.Decision), resultOf(out.Mutation, out.Decision == ledger.DecideReplay)}
		}
	case "read":
		m, err = l.record(key)
		if errors.Is(err, ledger.ErrNotFound) {
			return answered{}
		}
	case "happened", "did_not_happen":
		if m, err = l.record(key); err == nil {
			var out ledger.Finished
			out, err = l.Resolve(ctx, linearDecision(q, key, m.Version))
			m = out.Mutation
		}
	default:
		var out ledger.Finished
		out, err = l.Finish(ctx, linearEnd(q, key))
		m = out.Mutation
	}
	if errors.Is(err, ledger.ErrNotAllowed) || errors.Is(err, ledger.ErrVersion) || errors.Is(err, ledger.ErrNotFound) {
		return answered{Got: refused}
	}
	if err != nil {
		return answered{Got: err.Error()}
	}
	return answered{string(m.State), resultOf(m, q.Do == "read" && m.State == ledger.Applied)}
}

func (l *linearized) record(key ledger.Key) (m *ledger.Mutation, err error) {
	err = l.View(context.Background(), func(v ledger.View) (err error) {
		m, err = v.Mutation(key)
		return err
	})
	return m, err
}

// ofDispatch is a header field of a result that says whose it is.
const ofDispatch = "Of-Dispatch"

func resultOf(m *ledger.Mutation, wanted bool) string {
	if !wanted || m == nil || m.Result == nil || len(m.Result.Header[ofDispatch]) == 0 {
		return ""
	}
	return m.Result.Header[ofDispatch][0]
}

func linearClaim(q asked, key ledger.Key) ledger.Claim {
	return ledger.Claim{
		Scope: ledger.Scope{Workflow: "w", Item: q.Key, Attempt: 1}, Key: key, DispatchID: q.Dispatch,
		Record: ledger.Mutation{
			Connector: "bank", Operation: "transfer", Target: q.Key, Account: "acme", PayloadDigest: "payload", SignificantDigest: "significant",
			Policy: ledger.Policy{BlockScope: ledger.BlockMutation, OnAbsent: ledger.AbsentFail, Settle: time.Minute, Confirmations: 2, Spacing: time.Second},
		},
	}
}

func linearResult(q asked) *ledger.Result {
	return &ledger.Result{Status: 201, Header: ledger.Header{ofDispatch: {q.Dispatch}}}
}

func linearEnd(q asked, key ledger.Key) ledger.Finish {
	f := ledger.Finish{Key: key, Dispatch: ledger.Dispatch{
		ID: q.Dispatch, Verdict: ledger.Verdict(q.Do), Reason: "because of a test", BytesWritten: 1,
	}}
	switch f.Dispatch.Verdict {
	case ledger.VerdictApplied:
		f.Result = linearResult(q)
	case ledger.VerdictFailed:
		f.Dispatch.Class = ledger.ClassTransient
	}
	return f
}

func linearDecision(q asked, key ledger.Key, version int64) ledger.Resolve {
	r := ledger.Resolve{Key: key, Action: ledger.Trigger(q.Do), Actor: "ada", Reason: "looked", Version: version, Force: true}
	if r.Action == ledger.OnHappened {
		r.Result = linearResult(q)
		r.Force = false
	}
	return r
}
