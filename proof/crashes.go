package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// crashTests are the tests that end the program, or its ledger, at an instant: how, which
// package, and which tests.
var crashTests = []struct{ how, pkg, run string }{
	{"SIGKILL", "./integration", "^(TestKilledAtEachCrashPoint|TestKilledAgainWhileReconciling|TestKilledAtRandomMoments)$"},
	{
		"SIGKILL, loss of power and torn writes while several scripts fill the log, and it is folded", "./integration",
		"^TestEndedWhileTheRingTurns$",
	},
	{"SIGKILL of the ledger alone", "./ledger/badgerstore", "^(TestKilledAtEachPoint|TestNothingAcknowledgedIsLostWhenKilled|TestARebuildThatIsKilledGoesOn)$"},
	{
		"SIGKILL amid concurrent callers, what they saw held against a model (porcupine)", "./ledger/badgerstore",
		"^TestCommandsOfConcurrentCallersAreLinearizable$",
	},
	{
		"loss of power, from copies at each sync of the log and of the witness", "./ledger/badgerstore",
		"^(TestALossOfPowerAtEachSync|TestTheWitnessIsDurableBeforeItsEpoch|TestASyncThatFailsOnceStopsTheLedger)$",
	},
	{"a disk that is full at each page", "./ledger/badgerstore", "^(TestADiskThatFillsAtEachPage|TestNothingAcknowledgedIsLostOnAFullDisk)$"},
	{
		"torn, flipped, cut, lost and older files", "./ledger/badgerstore",
		"^(TestDamageNeverLosesSilently|TestAFoldThatIsMissingIsDamage|TestWitnessesThatDontFit|TestDamagedBodyFileIsNeverRead)$",
	},
}

// crashKills is how often the whole program is killed at random moments.
const crashKills = "400"

var passedLine = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

// crashesStage ends real processes at each durability step and at random moments.
func crashesStage(ctx context.Context, o options) part {
	p := part{header: []string{"how", "where", "ended and judged"}}
	total := 0
	for _, c := range crashTests {
		fmt.Fprintf(o.progress, "crashes: %s\n", c.how)
		cmd := exec.CommandContext(ctx, "go", "test", c.pkg, "-run", c.run, "-count", "1", "-timeout", "90m", "-v")
		cmd.Dir, cmd.Env = o.root, append(os.Environ(), "KEEP_TEST_KILLS="+crashKills)
		out, err := cmd.CombinedOutput()
		if err != nil {
			p.bad = append(p.bad, fmt.Sprintf("%s: %v\n%s", c.how, err, tail(string(out))))
		}
		counts := endings(string(out))
		for _, where := range slices.Sorted(maps.Keys(counts)) {
			total += counts[where]
			p.rows = append(p.rows, []string{c.how, where, fmt.Sprint(counts[where])})
		}
	}
	p.says = fmt.Sprintf("%d endings, each judged by what the upstreams synced, or, of the ledger alone, by what it had acknowledged. "+
		"Moments at which a journey was over before it came to them count as judged too.", total)
	return p
}

// endings counts the innermost tests that passed, by the first two parts of their names.
func endings(out string) map[string]int {
	counts := map[string]int{}
	var names []string
	for _, m := range passedLine.FindAllStringSubmatch(out, -1) {
		if m[1] == "PASS" {
			names = append(names, m[2])
		}
	}
	for _, name := range names {
		if slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			continue
		}
		parts := strings.SplitN(name, "/", 3)
		counts["`"+strings.Join(parts[:min(2, len(parts))], "/")+"`"]++
	}
	return folded(counts)
}

// manyAlike is from how many rows on those that differ in a number alone are one.
const manyAlike = 20

var number = regexp.MustCompile(`[0-9]+`)

// folded joins endings that a test numbered: nobody reads a row for each of a thousand pages.
func folded(counts map[string]int) map[string]int {
	pattern := func(where string) string {
		test, part, _ := strings.Cut(where, "/")
		return test + "/" + number.ReplaceAllString(part, "N")
	}
	alike := map[string]int{}
	for where := range counts {
		alike[pattern(where)]++
	}
	out := map[string]int{}
	for where, n := range counts {
		if p := pattern(where); alike[p] >= manyAlike {
			where = p
		}
		out[where] += n
	}
	return out
}

// said are lines in which a test says something, or that it failed.
var said = regexp.MustCompile(`^\s*(--- FAIL|panic:|repeat: |[a-z0-9_]+_test\.go:[0-9]+: )`)

// tail is the end of what the tests of an output said; of one without that, its own end.
func tail(out string) string {
	all := strings.Split(strings.TrimSpace(out), "\n")
	var lines []string
	for _, line := range all {
		if said.MatchString(line) && !strings.Contains(line, "cell|") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		lines = all
	}
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}

const tailLines = 40
