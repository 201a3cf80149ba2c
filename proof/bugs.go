package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// bug is one that was taken out, or never made, put back into a copy of the tree.
type bug struct {
	name string
	// stage names what should catch it: histories, or a test of the ledger as pkg and name.
	stage string
	// edits are made in the copy.
	edits []edit
	// sentence is what the judge must say; a stage that fails otherwise has not caught it.
	sentence string
}

// edit replaces a text within one declaration, "folder Name" or "folder Type.Method". The old text
// occurs in it exactly once.
type edit struct{ in, before, after string }

// twice is what the judge says of a second effect, and of what may become one.
const twice = `took effect [0-9]+ times|recorded as failed, but took effect`

// noting begins a command whose answer, of this type, is given before it is synced.
func noting(answer string) string {
	return "func(fn func(*command) (" + answer + ", error)) (out " + answer + ", err error) {\n\t\tif err = l.Healthy(); err != nil {\n\t\t\treturn out, err\n\t\t}\n" +
		"\t\tl.Note(func(tx Tx) error {\n\t\t\tout, err = fn(l.command(tx))\n\t\t\treturn err\n\t\t})\n\t\treturn out, err\n\t}(func(c *command) (" + answer + ", error) {"
}

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
	for _, b := range bugs {
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
	for _, e := range b.edits {
		if err := e.apply(dir); err != nil {
			return "", "", err
		}
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
	dir, name, _ := strings.Cut(e.in, " ")
	path, from, to, err := declaration(filepath.Join(root, dir), name)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	within := string(text[from:to])
	if n := strings.Count(within, e.before); n != 1 {
		return fmt.Errorf("%s holds the old text %d times, not once: %q", e.in, n, e.before)
	}
	edited := string(text[:from]) + strings.Replace(within, e.before, e.after, 1) + string(text[to:])
	return os.WriteFile(path, []byte(edited), 0o600)
}

// declaration finds a function, a method (Type.Method) or a variable of a package. It returns its file
// and where in it the declaration is, with the line break at its end.
func declaration(dir, name string) (path string, from, to int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", 0, 0, err
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return "", 0, 0, err
		}
		for _, d := range file.Decls {
			if declared(d) == name {
				return path, set.Position(d.Pos()).Offset, set.Position(d.End()).Offset + 1, nil
			}
		}
	}
	return "", 0, 0, fmt.Errorf("%s declares no %s", dir, name)
}

// declared is the name of a declaration, for a method with that of its type.
func declared(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if id, ok := of.(*ast.Ident); ok {
			return id.Name + "." + d.Name.Name
		}
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
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
