package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"keep-proxy/admin/wire"
	"keep-proxy/internal/fakes/script"
)

// killsVar says how often the program is killed at random moments.
const killsVar = "KEEP_TEST_KILLS"

// thorough is the number of kills from which on the crash points are gone through
// more closely too.
const thorough = 200

func kills() int {
	if n, err := strconv.Atoi(os.Getenv(killsVar)); err == nil && n >= 0 {
		return n
	}
	return 16
}

// smallRing is the length of a log, in bytes, that is folded after a few mutations, and has room for some of
// the commits that several scripts share.
const smallRing = 256 << 10

// Several programs are killed beside each other, each while several scripts use it.
const (
	worldsOfKills = 4
	scriptsAtOnce = 6
	// longestLife is beyond starting, settling and some work.
	longestLife = 2 * time.Second
)

func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	for i := range worldsOfKills {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			absent := func(s *settings) { s.OnAbsent = []string{"fail", "redispatch"}[i%2] }
			k := &killing{world: prepare(t, crashing, absent), random: rand.New(rand.NewPCG(seed, 0))}
			if i >= worldsOfKills/2 {
				k.ringOf(smallRing)
			}
			k.run((kills() + worldsOfKills - 1) / worldsOfKills)
		})
	}
}

// killing is a world whose program is killed again and again.
type killing struct {
	*world
	mu     sync.Mutex
	random *rand.Rand
	// next is the number of each script's next mutation.
	next [scriptsAtOnce]int
}

// chance draws a number below n.
func (k *killing) chance(n int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.random.IntN(n)
}

func (k *killing) run(times int) {
	k.misbehave(k.chance)
	for range times {
		k.quiet()
		k.life()
		k.checkTwice()
	}
	k.quiet()
	k.mustSpawn()
	if err := errors.Join(k.settle(), k.check()); err != nil {
		k.t.Fatal(err)
	}
	done := 0
	for _, n := range k.next {
		done += n
	}
	k.t.Logf("%d mutations were answered in %d lives", done, times)
	if report, err := k.api.VerifyLedger(k.t.Context(), nil); err != nil || !report.Sound {
		k.t.Errorf("the ledger: %+v, %v", report, err)
	}
	if err := k.child.end(); err != nil {
		k.t.Errorf("the program ended with %v", err)
	}
}

// misbehave lets the upstreams lose answers and refuse now and then, as often as chance
// says, which draws a number below the one that it is given.
func (w *world) misbehave(chance func(n int) int) {
	often := func(percent int) script.Match {
		return script.Match{When: func(script.Subject) bool { return chance(100) < percent }}
	}
	for _, u := range w.upstreams() {
		u.armFault(script.Fault{Match: often(8), Times: script.Always, Steps: []script.Step{{Do: script.Commit}, {Do: script.Close}}})
		u.armFault(script.Fault{Match: often(5), Times: script.Always, Steps: []script.Step{{Do: script.Close}}})
		u.armFault(script.Fault{Match: often(5), Times: script.Always, Steps: []script.Step{{Do: script.Status, Status: http.StatusTooManyRequests}}})
		u.armFault(script.Fault{Match: often(20), Times: script.Always, Steps: []script.Step{
			{Do: script.Commit}, {Do: script.Slow, Bytes: 100, For: script.Duration(30 * time.Millisecond)},
		}})
	}
}

// life starts the program, lets it settle what the one before left, puts it to work,
// and kills it at a random moment of all that.
func (k *killing) life() {
	k.t.Helper()
	ctx, end := context.WithTimeout(context.Background(), time.Duration(k.chance(int(longestLife))))
	defer end()
	started := make(chan error, 1)
	go func() { started <- k.spawnUntil(ctx) }()
	if err := <-started; err != nil {
		if !errors.Is(err, errDied) || ctx.Err() == nil || !k.child.killed() {
			k.t.Fatal(err)
		}
		return
	}
	err := k.settle()
	if err == nil {
		err = k.check()
	}
	if err == nil {
		var scripts sync.WaitGroup
		for i := range scriptsAtOnce {
			scripts.Go(func() { k.work(ctx, i) })
		}
		scripts.Wait()
	}
	k.mustHaveDied(err)
}

// spawnUntil is spawn of a process that is killed when ctx ends.
func (k *killing) spawnUntil(ctx context.Context) error {
	return k.spawnWith(func(c *child) {
		context.AfterFunc(ctx, func() { _ = c.cmd.Process.Kill() })
	}, "")
}

// work sends one script's mutations, each in runs of its own, until the program is
// gone. A mutation is left only for one that was answered with a success.
func (k *killing) work(ctx context.Context, i int) {
	for ctx.Err() == nil {
		item := fmt.Sprintf("script-%d-%d", i, k.next[i])
		run, err := k.tryOpen(item, inWorkflow(item)) //nolint:contextcheck // The test asks, whose life is longer.
		if err != nil {
			if _, refused := errors.AsType[*wire.Problem](err); !refused {
				return
			}
			continue
		}
		a := k.send(ctx, run, i, item)
		run.client.CloseIdleConnections()
		if a.err == nil && a.status/100 == 2 {
			k.next[i]++
		}
	}
}

// send is one mutation of a kind that depends on the script.
func (k *killing) send(ctx context.Context, run *scriptRun, i int, item string) reply {
	switch i % 4 {
	case 0:
		return run.try(ctx, http.MethodPost, k.probed.URL()+"/transfers", order(item))
	case 1:
		return run.try(ctx, http.MethodPost, k.keyed.URL()+"/transfers", order(item))
	case 2:
		return run.try(ctx, http.MethodPost, k.mail.URL()+"/send", message(item))
	}
	return run.try(ctx, http.MethodPost, k.hooks.URL()+"/hook/bounded/"+item, "hello")
}
