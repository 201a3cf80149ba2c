package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// named are edits with what they are for.
type named struct {
	name  string
	edits []edit
}

// Edits that don't compile would be found out only when the stage that makes them runs.
func TestWhatEachEditMakesCanBeBuilt(t *testing.T) {
	t.Parallel()
	var all []named
	for _, b := range allBugs() {
		all = append(all, named{"the bug " + b.name, b.edits})
	}
	for _, b := range allBreaks() {
		all = append(all, named{"the break " + b.how, b.edits})
	}
	tree, err := newTree("..", all)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range together(all) {
		var edits []edit
		for _, n := range group {
			edits = append(edits, n.edits...)
		}
		if tree.build(edits) == nil {
			continue
		}
		for _, n := range group {
			if err := tree.build(n.edits); err != nil {
				t.Errorf("%s doesn't compile: %v", n.name, err)
			}
		}
	}
}

// together puts into groups what changes different files: what one edit makes of its file
// compiles with the rest of the package or not, whatever is edited elsewhere. Few groups are
// checked in a fraction of the time.
func together(all []named) [][]named {
	var groups [][]named
	var files []map[string]bool
	for _, n := range all {
		at := 0
		for at < len(groups) && slices.ContainsFunc(n.edits, func(e edit) bool { return files[at][e.file] }) {
			at++
		}
		if at == len(groups) {
			groups, files = append(groups, nil), append(files, map[string]bool{})
		}
		groups[at] = append(groups[at], n)
		for _, e := range n.edits {
			files[at][e.file] = true
		}
	}
	return groups
}

// The same with edits that are wrong in ways of their own.
func TestWhatDoesNotCompileIsFoundOut(t *testing.T) {
	t.Parallel()
	const file, before = "part.go", "\treturn \"\", false\n"
	text := "package a\n\nfunc last(m map[string]string) (string, bool) {\n" + before + "}\n\nvar _, _ = last(nil)\n"
	for name, after := range map[string]string{
		"":                     "\treturn \"a\", true\n",
		"expected":             "\treturn (\n",
		"declared and not":     "\tn := 1\n\treturn \"\", false\n",
		"undefined":            "\treturn none, false\n",
		"not enough return":    "\treturn \"\"\n",
		"cannot use":           "\treturn 1, false\n",
		"holds the text that":  before,
		"imported and not use": "\treturn \"\", false\n}\n\nfunc init() {\n",
	} {
		dir := t.TempDir()
		text := text
		edits := []edit{{file, before, after}}
		switch {
		case strings.HasPrefix(name, "imported"):
			edits = append(edits, edit{file, "package a\n", "package a\n\nimport \"unsafe\"\n"})
		case strings.HasPrefix(name, "holds"):
			edits[0].before = "none"
		}
		mod := "module keep-proxy\n\ngo 1.24\n"
		if err := errors.Join(os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600), os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600)); err != nil {
			t.Fatal(err)
		}
		tree, err := newTree(dir, []named{{name, edits}})
		if err != nil {
			t.Fatal(err)
		}
		if err := tree.build(edits); (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// tree type-checks edited packages against what the others export, without compiling.
type tree struct {
	root  string
	files *token.FileSet
	// parsed are the files of the packages that edits are in, by folder and path.
	parsed map[string]map[string]*ast.File
	paths  map[string]string
	other  types.Importer
}

// newTree reads the packages that the edits are in, and has go build what these import.
func newTree(root string, all []named) (*tree, error) {
	t := &tree{root: root, files: token.NewFileSet(), parsed: map[string]map[string]*ast.File{}, paths: map[string]string{}}
	for _, n := range all {
		for _, e := range n.edits {
			t.parsed[filepath.Dir(e.file)] = map[string]*ast.File{}
		}
	}
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,DepOnly"}
	for dir := range t.parsed {
		args = append(args, "./"+dir)
	}
	list := exec.Command("go", args...)
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string   `json:"ImportPath"`
			Dir        string   `json:"Dir"`
			Export     string   `json:"Export"`
			GoFiles    []string `json:"GoFiles"`
			CgoFiles   []string `json:"CgoFiles"`
			DepOnly    bool     `json:"DepOnly"`
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if exports[p.ImportPath] = p.Export; p.DepOnly {
			continue
		}
		if err := t.read(p.ImportPath, p.Dir, append(p.GoFiles, p.CgoFiles...)); err != nil {
			return nil, err
		}
	}
	t.other = importer.ForCompiler(t.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return t, nil
}

func (t *tree) read(path, dir string, names []string) error {
	root, err := filepath.Abs(t.root)
	if err == nil {
		dir, err = filepath.Rel(root, dir)
	}
	if err != nil {
		return err
	}
	t.paths[dir] = path
	for _, name := range names {
		file := filepath.Join(dir, name)
		if t.parsed[dir][file], err = parser.ParseFile(t.files, filepath.Join(t.root, file), nil, parser.SkipObjectResolution); err != nil {
			return err
		}
	}
	return nil
}

// build makes the edits and type-checks what they make of each package that they are in.
func (t *tree) build(edits []edit) error {
	texts := map[string]string{}
	for _, e := range edits {
		text, known := texts[e.file]
		if !known {
			b, err := os.ReadFile(filepath.Join(t.root, e.file))
			if err != nil {
				return err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.before); n != 1 {
			return fmt.Errorf("%s holds the text that is to be replaced %d times, not once: %q", e.file, n, e.before)
		}
		texts[e.file] = strings.Replace(text, e.before, e.after, 1)
	}
	edited := map[string]map[string]*ast.File{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		file, err := parser.ParseFile(t.files, filepath.Join(t.root, name), texts[name], parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.Dir(name)
		if t.parsed[dir][name] == nil {
			continue // Of another system.
		}
		if edited[dir] == nil {
			edited[dir] = maps.Clone(t.parsed[dir])
		}
		edited[dir][name] = file
	}
	for _, dir := range slices.Sorted(maps.Keys(edited)) {
		var files []*ast.File
		for _, name := range slices.Sorted(maps.Keys(edited[dir])) {
			files = append(files, edited[dir][name])
		}
		config := types.Config{Importer: t.other, Sizes: types.SizesFor("gc", "amd64")}
		if _, err := config.Check(t.paths[dir], t.files, files, nil); err != nil {
			return err
		}
	}
	return nil
}
