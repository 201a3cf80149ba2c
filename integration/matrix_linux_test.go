package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"keep-proxy/integration/powerloss"
	"keep-proxy/internal/fakes/oracle"
)

// The crash matrix: what a program does is followed to each of its steps towards
// durability, and ended there in each of three ways, while the upstream commits in each of
// four. Whatever comes of it is judged by the upstream's own log.

// Ways of ending at a step.
const (
	sigkill   = "SIGKILL"
	powerless = "power loss"
	torn      = "torn write"
)

var endings = []string{sigkill, powerless, torn}

// What the upstream does with the sending that the row is about, seen from the crash.
const (
	commitsBefore = "before"
	commitsAfter  = "after" // While nothing of the program runs.
	commitsNever  = "never"
	commitsLate   = "late" // When the program runs again.
)

var commits = []string{commitsBefore, commitsAfter, commitsNever, commitsLate}

// gateOfMatrix holds what the upstream does after a crash.
const gateOfMatrix = "matrix"

// cell is one crash.
type cell struct {
	life   life
	commit string
	// ending and step are "" where nothing is to end: the steps are recorded then.
	ending, step string
	seed         uint64
}

// How long after a sending's end an absence counts, which is settled by the claim: never
// where the upstream is still going to commit; and where a first absence has to be believed
// before that, longer than the upstream takes when it is let go.
const (
	soon  = "1s"
	later = "5s"
	never = "10m"
)

// settle is how long that is in this cell.
func (c cell) settle() string {
	switch {
	case c.helds() && c.life.second:
		return never
	case c.commit == commitsLate && c.sent() && (c.life.again || c.life.waits):
		return later
	case c.commit == commitsLate && c.sent():
		return never
	}
	return soon
}

// sent reports whether the program ends with what the row is about sent, of the lives in
// which the upstream holds that.
func (c cell) sent() bool { return c.step == "" || c.atSending() }

// atSending reports whether the step is that of the row's own sending.
func (c cell) atSending() bool {
	return strings.HasPrefix(c.step, "upstream.request_written of a "+c.life.sending)
}

// helds reports whether the upstream holds what the row is about until it is let go.
func (c cell) helds() bool { return c.commit == commitsAfter || c.commit == commitsLate }

// firstPassings is how often a step is a row of its own, and morePassings in a life of which only
// some steps are.
const (
	firstPassings = 2
	morePassings  = 4
)

// crash is a cell while it is gone through.
type crash struct {
	*world
	cell
	watching watching
	// disk is below the program's state, nil for none.
	disk *disk
	// remounted is how many disks there were before that.
	remounted int
	// bank is that of a life that has one of its own.
	bank *upstream
	// late says that the upstream still holds what it will commit when the program runs
	// again.
	late bool
}

// run goes through the cell and returns the steps that the program took. It reports whether
// the program came to the step.
func (c cell) run(t *testing.T) (steps []string, reached bool) {
	t.Helper()
	w := prepare(t, redispatching, func(s *settings) {
		s.Settle, s.Response, s.Total = c.settle(), "90s", "90s"
		s.HTTP1 = c.life.accepts // In HTTP/2 an answer has no end before its handler has.
	})
	dir := w.settings.Dir
	x := &crash{world: w, cell: c, watching: watching{
		Ledger: filepath.Join(dir, "state", "ledger"), Shadow: filepath.Join(dir, "shadow"),
		Steps: powerloss.Steps{Trace: filepath.Join(dir, "trace"), Begun: filepath.Join(dir, "begun"), Kill: c.step},
	}}
	if err := errors.Join(os.Mkdir(x.watching.Shadow, 0o700), x.mount()); err != nil {
		t.Fatal(err)
	}
	if !c.life.second && c.atSending() {
		x.watching.Await = filepath.Join(dir, "arrived")
	}
	if c.life.prepare != nil {
		c.life.prepare(x)
	}
	c.life.arm(x)
	switch {
	case c.life.second:
		x.firstLife()
	case c.life.before != nil:
		c.life.before(x)
	}
	x.armedLife()
	x.strike()
	x.after()
	steps = x.steps()
	return steps, slices.Contains(steps, c.step)
}

// steps are those that the program took so far.
func (x *crash) steps() []string {
	x.t.Helper()
	text, err := os.ReadFile(x.watching.Trace)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		x.t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	return lines[:len(lines)-1]
}

// firstLife is that of a process that is killed while the upstream holds what it sent.
func (x *crash) firstLife() {
	x.t.Helper()
	x.mustSpawnWatched()
	go x.ask()
	x.upstream().await("the sending is held", held)
	x.child.kill()
	if x.life.lost {
		x.losePowerAndGoOn()
	}
	if x.commit == commitsBefore || x.commit == commitsNever || x.life.decides && x.commit == commitsAfter {
		x.Release()
		x.quiet()
	}
}

// try opens a run, or nil if the program is gone.
func (x *crash) try(item string) *scriptRun {
	run, err := x.tryOpen(item, takeover)
	if err != nil {
		return nil
	}
	return run
}

// ask has done what the life does, and reports whether it is.
func (x *crash) ask() bool { return x.life.ask(x) }

// upstream is where the work is done.
func (x *crash) upstream() *upstream { return x.life.upstream(x) }

// Release lets the upstream go on.
func (x *crash) Release() { x.upstream().Release(gateOfMatrix) }

// holds reports whether the upstream has something in hand.
func (x *crash) holds() bool {
	t := x.upstream().tally()
	return held(t) && len(t.Of(oracle.KindEnded)) < t.Heads()
}

// spawnWatched starts a process whose steps are followed.
func (x *crash) spawnWatched() error {
	text, err := json.Marshal(&x.watching)
	if err != nil {
		return err
	}
	x.environment = []string{watchVar + "=" + string(text)}
	defer func() { x.environment = nil }()
	err = x.spawn("")
	x.t.Cleanup(x.explain) // Before it is killed.
	return err
}

func (x *crash) mustSpawnWatched() {
	x.t.Helper()
	if err := x.spawnWatched(); err != nil {
		x.t.Fatalf("%v\n%v", err, x.output)
	}
}

// armedLife is that of the process which ends at the step. It is killed where it doesn't
// come there.
func (x *crash) armedLife() {
	x.t.Helper()
	if x.life.second || x.life.first {
		x.begin()
	}
	if err := x.spawnWatched(); err != nil {
		if !errors.Is(err, errDied) || !x.child.killed() {
			x.t.Fatalf("%v\n%v", err, x.output)
		}
		return
	}
	if x.life.first {
		x.child.kill()
		return
	}
	if !x.life.second {
		x.begin()
	}
	if x.life.decides && x.commit == commitsLate {
		x.Release()
		x.quiet()
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		x.work()
	}()
	if x.watching.Await != "" {
		x.poll("the sending has arrived", func() bool { return x.arrived(x.upstream().tally()) })
		if err := os.WriteFile(x.watching.Await, nil, 0o600); err != nil {
			x.t.Fatal(err)
		}
	}
	x.poll("the program has come to its end, or as far as it can", func() bool {
		select {
		case <-worked:
			return true
		case <-x.child.gone:
			return true
		default:
			return x.stuck()
		}
	})
	x.child.kill()
	<-worked
	if !x.child.killed() {
		x.t.Fatalf("the program ended by itself: %v", x.child.err)
	}
}

// arrived reports whether the upstream has read what is sent, and holds it if it will.
func (x *crash) arrived(t oracle.Tally) bool {
	if x.helds() {
		return held(t)
	}
	return received(x.life.identity, x.life.sendings())(t)
}

// stuck reports whether the program won't get any further, since the upstream holds what was
// sent.
func (x *crash) stuck() bool {
	if x.watching.Await != "" || !x.holds() {
		return false
	}
	last := "upstream.request_written of a " + x.life.sending + " #1"
	switch {
	case x.life.second:
		last = fmt.Sprintf("after sync of log: observed_absent #%d", firstPassings)
	case x.life.last != "":
		last = fmt.Sprintf("%s #%d", x.life.last, firstPassings)
	}
	return slices.Contains(x.steps(), last)
}

// work is what the scripts and people of the armed life do.
func (x *crash) work() {
	if done := x.ask(); done && x.life.last == "" {
		return
	}
	if err := x.world.settle(); err == nil {
		x.ask()
	}
}

// begin has the program count its steps from now on.
func (x *crash) begin() {
	x.t.Helper()
	if err := os.WriteFile(x.watching.Begun, nil, 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// strike does to the disk what the ending does, and lets the upstream commit what it commits
// while nothing runs.
func (x *crash) strike() {
	x.t.Helper()
	if err := x.lose(); err != nil {
		x.t.Fatal(err)
	}
	x.settings.Settle = soon
	if x.late = x.commit == commitsLate && x.holds(); x.late {
		return
	}
	x.Release()
	x.quiet()
}

// after lets the work come to its end, and judges it.
func (x *crash) after() {
	x.t.Helper()
	x.mustSpawn()
	if x.late {
		if x.cell.settle() == never {
			x.ask()
		}
		x.Release()
		x.quiet()
	}
	x.sure = x.life.accepts // No time is waited for that a record of an accepted mutation has.
	done, effects := false, 0
	for tries := 0; tries < 5 && (!done || effects == 0); tries++ {
		done = x.ask()
		if err := errors.Join(x.world.settle(), x.check()); err != nil {
			x.t.Fatal(err)
		}
		effects = x.upstream().tally().Effects(x.life.identity)
	}
	if effects != 1 || !done {
		x.t.Errorf("%s took effect %d times; done %v", x.life.identity, effects, done)
	}
	report, err := x.api.VerifyLedger(x.t.Context(), nil)
	if err != nil || !report.Sound {
		x.t.Errorf("the ledger: %+v, %v", report, err)
	}
	if err := x.child.end(); err != nil {
		x.t.Errorf("the program ended with %v", err)
	}
}

// String names a cell as a subtest.
func (c cell) String() string {
	return fmt.Sprintf("%s/%s/%s/%s", c.life.name, c.commit, c.ending, c.step)
}

// matrixVar asks for the whole matrix.
const matrixVar = "KEEP_TEST_MATRIX"

// TestCrashMatrix goes through cells of the crash matrix: all of them if KEEP_TEST_MATRIX is
// "all", else some for each life, chosen by a fixed seed.
func TestCrashMatrix(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts processes")
	}
	all := os.Getenv(matrixVar) == "all"
	known, err := openResults()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = known.Close() }) // Each line is written as a whole.
	for i, l := range lives() {
		t.Run(l.name, func(t *testing.T) {
			if !all {
				t.Parallel() // Else one after another, so that what is cut short has whole ones.
			}
			for j, commit := range commits {
				if l.first && commit != commitsBefore || !all && !l.first && (j != i%len(commits) || l.again) {
					continue
				}
				t.Run(commit, func(t *testing.T) {
					t.Parallel()
					goThrough(t, l, commit, all, known)
				})
			}
		})
	}
}

// goThrough goes through the cells of a life and commit: all, or a few that are chosen by
// their names.
func goThrough(t *testing.T, l life, commit string, all bool, known *results) {
	t.Helper()
	steps, _ := cell{life: l, commit: commit}.run(t)
	rows := stepsToEndAt(t, steps, l, commit)
	if len(rows) == 0 {
		t.Fatal("the life came to none of its steps")
	}
	var cells []cell
	for _, ending := range endings {
		chosen := rows
		if !all {
			h := fnv.New64a()
			_, _ = h.Write([]byte(l.name + commit + ending))
			random := rand.New(rand.NewPCG(h.Sum64(), 0))
			random.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
			chosen = rows[:min(l.few(ending), len(rows))]
		}
		for _, step := range chosen {
			c := cell{life: l, commit: commit, ending: ending, step: step}
			h := fnv.New64a()
			_, _ = h.Write([]byte(c.String()))
			c.seed = h.Sum64()
			cells = append(cells, c)
		}
	}
	known.add(t, fmt.Sprintf("plan|%s|%s|%d", l.name, commit, len(cells)))
	for _, c := range cells {
		c.judge(t, known)
	}
}

// judge runs the cell as a subtest that says what came of it, unless that is known.
func (c cell) judge(t *testing.T, known *results) {
	t.Helper()
	t.Run(strings.ReplaceAll(c.ending+" at "+c.step, "/", "|"), func(t *testing.T) {
		t.Parallel()
		line := fmt.Sprintf("cell|%s|%s|%s|%s|", c.life.name, c.step, c.ending, c.commit)
		if known.has(line) {
			t.Skip("it was gone through before")
		}
		outcome := "wrong"
		t.Cleanup(func() { // After every other one, which may find something wrong, too.
			if t.Failed() {
				outcome = "wrong"
			}
			known.add(t, line+outcome)
		})
		if _, reached := c.run(t); reached {
			outcome = "judged"
		} else {
			outcome = "missed"
		}
	})
}

// stepsToEndAt are the steps of a trace that are rows; one that the list of rows doesn't
// have fails the test.
func stepsToEndAt(t *testing.T, trace []string, l life, commit string) []string {
	t.Helper()
	known := matrixSteps(t)
	var rows []string
	for _, line := range trace {
		name, passing, _ := strings.Cut(line, " #")
		row := strings.TrimPrefix(strings.TrimPrefix(name, "before "), "after ")
		if !slices.Contains(known, row) {
			t.Errorf("%s, commits %s: no row names the step %q: give it one in %s", l.name, commit, name, stepsFile)
		}
		if l.rows != nil && !l.rows(name) {
			continue
		}
		if n, err := strconv.Atoi(passing); err == nil && n <= l.passings() {
			rows = append(rows, line)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows)
}

// stepsFile has the names of all steps that a trace may hold; a sync or rename counts as two,
// before it and after it.
const stepsFile = "testdata/matrix/steps.txt"

func matrixSteps(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(stepsFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
