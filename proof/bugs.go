package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// bug is one that was taken out, or never made, put back into a copy of the tree.
type bug struct {
	name string
	// stage names what should catch it: histories, or a test of the ledger as pkg and name.
	stage string
	// edits are made in the copy; each old text must occur exactly once.
	edits []edit
	// sentence is what the judge must say; a stage that fails otherwise has not caught it.
	sentence string
}

type edit struct{ file, before, after string }

// twice is what the judge says of a second effect, and of what may become one.
const twice = `took effect [0-9]+ times|recorded as failed, but took effect`

// bugs are those of the list that every proof must catch, and some of our own.
var bugs = []bug{
	{
		name: "sent before the claim is synced", stage: "histories",
		sentence: twice + `|one vendor key carried two payloads|went out before its claim was durable`,
		edits: []edit{{
			"ledger/claim.go", "err := l.update(ctx, func(c *command) (err error) {\n\t\tcl := ",
			"var err error\n\tif err := l.Healthy(); err != nil {\n\t\treturn Claimed{}, err\n\t}\n\tl.Note(func(tx Tx) (failed error) {\n\t\tc := l.command(tx)\n" +
				"\t\tdefer func() { err = failed }()\n\t\tcl := ",
		}},
	},
	{
		name: "tried again on a timeout", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"upstream/sender.go", "return d.sendH1()\n", again("!ev.Head && !ev.NotSent")}},
	},
	{
		name: "GetBody set: sent again on a stale connection", stage: "histories", sentence: `took effect [0-9]+ times`,
		edits: []edit{{"upstream/sender.go", "return d.sendH1()\n", again(`ev.Reused && !ev.Head && !ev.NotSent && ev.ErrorClass != "timeout"`)}},
	},
	{
		name: "a lost owner is dispatched again", stage: "histories", sentence: twice,
		edits: []edit{
			{
				"ledger/table.go", "{InFlight, OnOwnerLost, asks, unsent, NeedsReconcile, EffectQueue, \"\"}",
				"{InFlight, OnOwnerLost, asks, unsent, Failed, EffectResolve, \"\"}",
			},
			{
				"ledger/table.go", "{InFlight, OnOwnerLost, 0, asks | committed | unsent, Indeterminate, 0, giveUp}",
				"{InFlight, OnOwnerLost, 0, asks | committed | unsent, Failed, EffectResolve, \"\"}",
			},
		},
	},
	{
		name: "503 judged as failed", stage: "histories", sentence: twice,
		edits: []edit{{"upstream/statusrules.go", "{statuses: []int{425, 429}, kind: Failed", "{statuses: []int{425, 429, 503}, kind: Failed"}},
	},
	{
		name: "absence believed at once", stage: "histories", sentence: twice,
		edits: []edit{{"ledger/absence.go", "case !Settled(m, o.At, c.Process()) || !Settled(m, c.now, c.Process()):", "case false:"}},
	},
	{
		name: "the vendor key is renewed after a believed absence", stage: "histories", sentence: `vendor key was renewed after a sending of unknown outcome`,
		edits: []edit{{
			"ledger/effect.go", "if r.Effects.Has(EffectNewKey) {",
			"if r.Effects.Has(EffectNewKey) || r.On == OnObservedAbsent && r.To == Failed {",
		}},
	},
	{
		name: "answered before the outcome is durable", stage: "histories", sentence: `told that [a-z]+ happened before that was durable`,
		edits: []edit{{
			"ledger/finish.go", "\treturn l.finishing(ctx, func(c *command) (*Mutation, *Run, error) { return c.finish(&f) })\n",
			"\tvar out Finished\n\terr := l.Healthy()\n\tif err != nil {\n\t\treturn Finished{}, err\n\t}\n" +
				"\tl.Note(func(tx Tx) error {\n\t\tc := l.command(tx)\n\t\tout.Mutation, out.Run, err = c.finish(&f)\n\t\treturn err\n\t})\n\treturn out, err\n",
		}},
	},
	{
		name: "a later sending's failure clears an earlier unknown", stage: "histories", sentence: twice + `|a run went on after it was stopped`,
		edits: []edit{{"ledger/command.go", "FactEarlier.If(at > 0 && m.openBefore(at))", "FactEarlier.If(false)"}},
	},
	{
		name: "the journal is written over before the log is synced", stage: "./ledger/badgerstore TestALossOfPowerBeforeEachSync",
		sentence: `what was acknowledged is gone`,
		edits:    []edit{{"ledger/badgerstore/persist.go", "if err := s.log.sync(); err != nil {", "if err := error(nil); err != nil {"}},
	},
	{
		name: "the gate isn't asked within the claim", stage: "histories",
		sentence: `went out while another outcome of its scope was unknown|a run read after it was (over|stopped)`,
		edits: []edit{
			{"ledger/claim.go", "c.checkAllowance, c.checkScope, ", "c.checkAllowance, "},
			{
				"proxy/gate.go", "func (p *Proxy) standing(c caller) ledger.Admission {",
				"func (p *Proxy) standing(c caller) ledger.Admission {\n\tif true {\n\t\treturn ledger.Admission{Open: true}\n\t}",
			},
		},
	},
}

// allBugs are all lists.
func allBugs() []bug { return slices.Concat(bugs, moreBugs, scopeBugs) }

// again is a second sending under a condition.
func again(condition string) string {
	return `a := d.sendH1()
	if ev := a.Evidence(); ` + condition + ` {
		if c, why := s.connection(ctx, p, started); why == nil {
			if d, why := s.begin(ctx, r, p, c, started); why == nil {
				return d.sendH1()
			}
		}
	}
	return a
`
}

// bugHistories is in how many histories a bug has to be caught at most.
const bugHistories = 10_000

// bugsStage puts each bug into a copy of the tree and lets the stage that should catch it
// run there.
func bugsStage(ctx context.Context, o options) part {
	p := part{header: []string{"bug", "stage", "caught after", "what the judge said"}}
	caught := 0
	tried := 0
	for _, b := range allBugs() {
		if !o.match.MatchString(b.name) {
			continue
		}
		tried++
		fmt.Fprintf(o.progress, "bugs: %s\n", b.name)
		after, said, err := b.hunt(ctx, o)
		if err != nil {
			p.bad = append(p.bad, fmt.Sprintf("%s: %v", b.name, err))
			after, said = "not caught", strings.ReplaceAll(err.Error(), "\n", " ")
		} else {
			caught++
		}
		fmt.Fprintf(o.progress, "  %s: %s\n", after, said)
		p.rows = append(p.rows, []string{b.name, b.stage, after, said})
	}
	p.says = fmt.Sprintf("%d of %d bugs that were put back into a copy were caught, each by a sentence of the judge that is about it.", caught, tried)
	return p
}

var caughtLine = regexp.MustCompile(`history ([0-9]+) of [0-9]+: (.*)`)

// hunt runs the stage on a copy with the bug.
func (b bug) hunt(ctx context.Context, o options) (after, said string, err error) {
	dir, err := newCopy(ctx, o.root)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := put(dir, b.edits); err != nil {
		return "", "", err
	}
	n := min(o.histories, bugHistories)
	args := []string{"test", "./proof/histories", "-run", "^TestHistories$", "-histories", fmt.Sprint(n), "-seed", fmt.Sprint(o.seed)}
	if pkg, test, ok := strings.Cut(b.stage, " "); ok {
		args = []string{"test", pkg, "-run", "^" + test + "$"}
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-count", "1", "-timeout", "8m")...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", "", fmt.Errorf("%s passed with it (%d histories)", b.stage, n)
	}
	if said := regexp.MustCompile(b.sentence).Find(out); b.stage != "histories" && said != nil {
		return "1 test", string(said), nil
	}
	m := caughtLine.FindSubmatch(out)
	if m == nil {
		return "", "", fmt.Errorf("the stage failed otherwise:\n%s", out)
	}
	said = string(m[2])
	if !regexp.MustCompile(b.sentence).Match(out) {
		return "", "", fmt.Errorf("it was caught by another sentence: %s", said)
	}
	return string(m[1]) + " histories", said, nil
}

// apply makes the edit in a tree.
func (e edit) apply(root string) error {
	path := filepath.Join(root, e.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), e.before); n != 1 {
		return fmt.Errorf("%s holds the text that is to be replaced %d times, not once: %q", e.file, n, e.before)
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), e.before, e.after, 1)), 0o600)
}

// put makes edits in a tree, all or none of them, and returns what takes them back.
func put(root string, edits []edit) (back func() error, err error) {
	was := map[string][]byte{}
	back = func() error {
		var errs []error
		for path, text := range was {
			errs = append(errs, os.WriteFile(path, text, 0o600))
		}
		return errors.Join(errs...)
	}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		if _, known := was[path]; !known {
			if was[path], err = os.ReadFile(path); err != nil {
				delete(was, path)
				return nil, errors.Join(err, back())
			}
		}
		if err := e.apply(root); err != nil {
			return nil, errors.Join(err, back())
		}
	}
	return back, nil
}

// newCopy makes a copy of the tree in a folder of its own.
func newCopy(ctx context.Context, root string) (string, error) {
	dir, err := os.MkdirTemp("", "keep-copy-")
	if err != nil {
		return "", err
	}
	if err := copyTree(ctx, root, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

// copyTree copies what git knows, and what it doesn't know yet, but nothing ignored.
func copyTree(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		if name == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // Deleted, and not committed yet.
		}
		if err != nil {
			return err
		}
		path := filepath.Join(to, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
