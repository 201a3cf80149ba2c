package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"keep-proxy/integration/powerloss"
)

// foldings are the steps in which the ledger folds its log, and uses the ring again, and at which passing the
// program ends there.
var foldings = []struct {
	step     string
	passings []int
}{
	{"before " + folding, []int{2, 3, 5, 8}},
	{"after " + folding, []int{2, 3, 5, 8}},
	{"before sync of log: claim", []int{5, 20}},
	{"after sync of log: claim", []int{5, 20}},
}

// fewFoldings is how many of them make test goes through for each ending.
const fewFoldings = 2

func foldingSteps() (steps []string) {
	for _, e := range foldings {
		for _, passing := range e.passings {
			steps = append(steps, fmt.Sprintf("%s #%d", e.step, passing))
		}
	}
	return steps
}

// TestEndedWhileTheRingTurns ends the program at each step in which the ledger folds its log, which is
// short, while several scripts use it, in life after life upon one ledger. After each, all that
// was answered with a success is there. Of the steps make test draws a few for each ending; all are
// gone through where KEEP_TEST_KILLS asks for hundreds of kills.
func TestEndedWhileTheRingTurns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, ending := range endings {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			k := &killing{world: prepare(t, crashing, redispatching), random: rand.New(rand.NewPCG(seed, 0))}
			k.ringOf(smallRing)
			k.misbehave(k.chance)
			steps := foldingSteps()
			if kills() < thorough {
				k.random.Shuffle(len(steps), func(a, b int) { steps[a], steps[b] = steps[b], steps[a] })
				steps = steps[:fewFoldings]
			}
			for _, step := range steps {
				if !t.Run(strings.ReplaceAll(step, "/", "|"), func(life *testing.T) {
					k.t = life
					k.folded(ending, step, k.random.Uint64())
				}) {
					return
				}
			}
		})
	}
}

// folded is one life, and the next, in which all that the one was asked for comes to its end.
func (k *killing) folded(ending, step string, seed uint64) {
	k.t.Helper()
	dir := k.t.TempDir()
	x := &crash{world: k.world, cell: cell{ending: ending, step: step, seed: seed}, watching: watching{
		Ledger: filepath.Join(k.settings.Dir, "state", "ledger"), Shadow: filepath.Join(dir, "shadow"),
		Steps: powerloss.Steps{Trace: filepath.Join(dir, "trace"), Begun: filepath.Join(dir, "begun"), Kill: step},
	}}
	if err := os.Mkdir(x.watching.Shadow, 0o700); err != nil {
		k.t.Fatal(err)
	}
	x.keep()
	x.mustSpawnWatched()
	x.begin()
	first := k.next
	ctx, gone := context.WithTimeout(context.Background(), patience)
	child := k.child // The next life has another.
	go func() {
		<-child.gone
		gone()
	}()
	var scripts sync.WaitGroup
	for i := range scriptsAtOnce {
		scripts.Go(func() { k.work(ctx, i) })
	}
	scripts.Wait()
	k.mustHaveDied(errors.New(step + " never came"))
	if err := x.lose(); err != nil {
		k.t.Fatal(err)
	}
	k.quiet()
	k.mustSpawn()
	if err := errors.Join(k.settle(), k.check()); err != nil {
		k.t.Fatal(err)
	}
	k.askAgain(first)
	if report, err := k.api.VerifyLedger(k.t.Context(), nil); err != nil || !report.Sound {
		k.t.Errorf("the ledger: %+v, %v", report, err)
	}
	if err := k.child.end(); err != nil {
		k.t.Errorf("the program ended with %v", err)
	}
}

// askAgain asks for all that was answered with a success since: it is there, and nothing takes
// effect again.
func (k *killing) askAgain(first [scriptsAtOnce]int) {
	k.t.Helper()
	asked := 0
	for i := range scriptsAtOnce {
		for n := first[i]; n < k.next[i]; n++ {
			asked++
			item := fmt.Sprintf("script-%d-%d", i, n)
			run := k.open(item, inWorkflow(item), takeover)
			if a := k.send(k.t.Context(), run, i, item); a.status/100 != 2 || a.header.Get("Keep-Replayed") != "true" {
				k.t.Errorf("%s was answered with a success before, and now: %v", item, a)
			}
			run.client.CloseIdleConnections()
		}
	}
	k.checkTwice()
	k.t.Logf("%d mutations were answered before", asked)
}
