package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// broken is a line that keeps a promise, broken in a copy of the tree.
type broken struct {
	// promise is a part of the sentence of docs/promises.md that the line keeps; it is in
	// one row only, and the same for all breaks of that row.
	promise string
	// how says what is broken, in a few words.
	how   string
	edits []edit
	// tests are those of the row that must notice, all of one package: "pkg.TestName".
	tests []string
	// kept says which other guard keeps the promise all the same, where no test can notice:
	// then it must survive.
	kept string
}

// breaksByRoom are all breaks, in the order of the rooms.
var breaksByRoom = [][]broken{
	ledgerBreaks, recordBreaks, gateBreaks, absenceBreaks, decisionBreaks, storeBreaks, proxyBreaks, upstreamBreaks, reconcilerBreaks, ruleBreaks,
	readBreaks, hostBreaks, missedBreaks, namedBreaks, lateBreaks, doorBreaks, restBreaks, smallBreaks, foundBreaks, heedBreaks, askedBreaks, unseenBreaks,
}

func allBreaks() []broken { return slices.Concat(breaksByRoom...) }

// pkg is the package of the break's tests, as go knows it.
func (b *broken) pkg() string {
	name, _, _ := strings.Cut(b.tests[0], ".Test")
	return "./" + name
}

// run is the expression that fits the tests and no other.
func runOf(tests []string) string {
	var names []string
	for _, test := range tests {
		_, name, _ := strings.Cut(test, ".Test")
		names = append(names, "Test"+name)
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// matches reports whether the break is one of those that were asked for.
func (b *broken) matches(expression *regexp.Regexp) bool {
	return expression.MatchString(strings.Join(append([]string{b.promise, b.how, b.edits[0].file}, b.tests...), "\n"))
}

// drawBreaks draws up to n of the breaks that match, in their order: one of each promise, as
// long as there are promises, and then of the others.
func drawBreaks(o options) (drawn []broken, of int) {
	all := slices.DeleteFunc(allBreaks(), func(b broken) bool { return !b.matches(o.match) })
	var picked, others []int
	has := map[string]bool{}
	for _, i := range rand.New(rand.NewPCG(o.seed, 0)).Perm(len(all)) {
		if promise := all[i].promise; has[promise] {
			others = append(others, i)
		} else {
			picked, has[promise] = append(picked, i), true
		}
	}
	picked = append(picked, others...)
	picked = picked[:min(o.breaks, len(all))]
	slices.Sort(picked)
	for _, i := range picked {
		drawn = append(drawn, all[i])
	}
	return drawn, len(all)
}

// promisesOf counts the promises that breaks are about.
func promisesOf(all []broken) int {
	has := map[string]bool{}
	for _, b := range all {
		has[b.promise] = true
	}
	return len(has)
}

// breaksStage breaks lines in copies of the tree, one at a time in each, and has the tests
// that are named beside the promise notice.
func breaksStage(ctx context.Context, o options) part {
	p := part{header: []string{"promise", "what is broken", "where", "caught by"}}
	drawn, of := drawBreaks(o)
	results := tryBreaks(ctx, o, drawn, &p)
	caught, kept := 0, 0
	for i, b := range drawn {
		by, err := results[i].by, results[i].err
		switch {
		case err != nil && b.kept != "" && errors.Is(err, errSurvived):
			by = "survives: " + b.kept
			kept++
		case err != nil:
			p.bad = append(p.bad, fmt.Sprintf("%s (%s): %v", b.how, b.edits[0].file, err))
			by = strings.ToUpper(firstLine(err.Error()))
		case b.kept != "":
			p.bad = append(p.bad, fmt.Sprintf("%s (%s): it was caught by %s, so that no other guard need be named", b.how, b.edits[0].file, by))
		default:
			caught++
		}
		p.rows = append(p.rows, []string{b.promise, b.how, "`" + b.edits[0].file + "`", by})
	}
	resumed := ""
	if o.book != "" {
		resumed = " What an interrupted run had tried of these in the same code counts, and its time doesn't."
	}
	p.says = fmt.Sprintf("%d of %d lines that keep a promise, of %d rows of promises.md, were drawn by the seed %d and broken in a copy, one at a time: "+
		"of %d a test noticed that the row of the promise names; %d change nothing, since another guard keeps the promise.%s",
		len(drawn), of, promisesOf(drawn), o.seed, caught, kept, resumed)
	return p
}

// tried is what came of a break.
type tried struct {
	by  string
	err error
}

// tryBreaks tries each, as many at once as there are processors. Tests that fail without
// any edit are the part's own fault.
func tryBreaks(ctx context.Context, o options, drawn []broken, p *part) []tried {
	results := make([]tried, len(drawn))
	book, err := openBook(o)
	if err != nil {
		p.bad = append(p.bad, err.Error())
		return results
	}
	defer book.close()
	var left []int
	sums := make([]string, len(drawn))
	for i := range drawn {
		var err error
		if sums[i], results[i].by, err = book.look(&drawn[i]); results[i].by == "" {
			results[i].err = cmp.Or(err, errors.New("not tried"))
			left = append(left, i)
		}
	}
	queue := make(chan int, len(left))
	for _, i := range left {
		queue <- i
	}
	close(queue)
	var failed []error
	var mu sync.Mutex
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(left)) {
		all.Go(func() {
			err := inCopy(ctx, o.root, func(dir string) {
				for i := range queue {
					if ctx.Err() != nil {
						return
					}
					by, err := drawn[i].try(ctx, dir)
					mu.Lock()
					results[i] = tried{by, err}
					fmt.Fprintf(o.progress, "breaks: %s: %s: %s\n", drawn[i].edits[0].file, drawn[i].how, cmp.Or(by, fmt.Sprint(err)))
					book.note(sums[i], results[i])
					mu.Unlock()
				}
			})
			mu.Lock()
			failed = append(failed, err)
			mu.Unlock()
		})
	}
	all.Wait()
	err = inCopy(ctx, o.root, func(dir string) { p.bad = append(p.bad, soundTests(ctx, o, dir, drawn)...) })
	if err = errors.Join(append(failed, err)...); err != nil {
		p.bad = append(p.bad, err.Error())
	}
	return results
}

// inCopy does something in a copy of the tree.
func inCopy(ctx context.Context, root string, do func(dir string)) error {
	dir, err := newCopy(ctx, root)
	if err != nil {
		return err
	}
	do(dir)
	return os.RemoveAll(dir)
}

// soundTests says which of the tests fail without any edit: they would notice everything.
func soundTests(ctx context.Context, o options, dir string, drawn []broken) (bad []string) {
	byPackage := map[string][]string{}
	var order []string
	for _, b := range drawn {
		if byPackage[b.pkg()] == nil {
			order = append(order, b.pkg())
		}
		byPackage[b.pkg()] = append(byPackage[b.pkg()], b.tests...)
	}
	for _, pkg := range order {
		fmt.Fprintf(o.progress, "breaks: the tests of %s on the tree as it is\n", pkg)
		if out, err := goTest(ctx, dir, pkg, runOf(byPackage[pkg])); err != nil {
			bad = append(bad, fmt.Sprintf("tests of %s fail without any edit: %v\n%s", pkg, err, tail(out)))
		}
	}
	return bad
}

// everything matches every break.
var everything = regexp.MustCompile("")

var errSurvived = errors.New("survived: each test passed")

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (Test[A-Za-z0-9]+) `)

// try makes the edits, runs the tests, and takes the edits back. It returns the tests that
// noticed. What doesn't build, and what doesn't end in time, is not caught.
func (b *broken) try(ctx context.Context, dir string) (by string, err error) {
	back, err := put(dir, b.edits)
	if err != nil {
		return "", err
	}
	out, failed := goTest(ctx, dir, b.pkg(), runOf(b.tests))
	if err := back(); err != nil {
		return "", err
	}
	return noticed(out, failed)
}

// noticed reads the output of go test.
func noticed(out string, failed error) (by string, err error) {
	if failed == nil {
		return "", errSurvived
	}
	var names []string
	for _, m := range failedTest.FindAllStringSubmatch(out, -1) {
		names = append(names, "`"+m[1]+"`")
	}
	switch {
	case strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]"):
		return "", fmt.Errorf("does not build\n%s", tail(out))
	case strings.Contains(out, "panic: test timed out"):
		return "", errors.New("timed out: a test that hangs says nothing")
	case len(names) == 0:
		return "", fmt.Errorf("no test failed, but go test did\n%s", tail(out))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", "), nil
}

// goTest runs tests of a package in a tree. Vetting is left out: it would notice in the
// place of the tests.
func goTest(ctx context.Context, dir, pkg, run string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-trimpath", "-vet=off", "-ldflags=-w", "-count", "1", "-timeout", "8m", "-run", run, pkg)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
