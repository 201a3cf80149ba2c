// Command house counts this project: lines by room, the methods of ledger.Store, words and
// sentences of the documents. With -post it also counts what one POST runs.
//
//	make house
//	make house POST=1
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// rooms are counted together, each a list of folders; a folder that ends in "..." has those below it.
var rooms = [][]string{
	{"..."},
	{"ledger/badgerstore..."}, {"ledger"}, {"rules..."}, {"proxy...", "dispatch..."}, {"admin..."}, {"cmd...", "cli..."},
	{"app", "config"}, {"upstream", "reconcilers"}, {"proof..."},
}

func main() {
	post := flag.Bool("post", false, "count the functions and files that one POST runs, too")
	flag.Parse()
	if err := run(*post); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(post bool) error {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	files := slices.DeleteFunc(strings.Fields(string(out)), func(name string) bool {
		_, err := os.Stat(name)
		return err != nil
	})
	fmt.Println("| what | now |\n| --- | --- |")
	for _, room := range rooms {
		lines, err := linesOf(files, room)
		if err != nil {
			return err
		}
		name := strings.ReplaceAll(strings.Join(room, " + "), "...", "")
		if name == "" {
			name = "all"
		}
		fmt.Printf("| lines without tests: %s | %d |\n", name, lines)
	}
	methods, err := methodsOf("ledger", "Store")
	if err != nil {
		return err
	}
	fmt.Printf("| methods of ledger.Store | %d |\n", methods)
	if err := words(files); err != nil {
		return err
	}
	if post {
		return onePost()
	}
	return nil
}

// linesOf counts the lines of Go files that are no tests; the tools' own module counts, too.
func linesOf(files, room []string) (lines int, err error) {
	for _, name := range files {
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		in := func(folder string) bool {
			parent, below := strings.CutSuffix(folder, "...")
			dir := filepath.Dir(name)
			return dir == parent || below && (parent == "" || strings.HasPrefix(dir, parent+"/"))
		}
		if !slices.ContainsFunc(room, in) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		lines += strings.Count(string(text), "\n")
	}
	return lines, nil
}

// methodsOf counts the methods of an interface, with those of the interfaces of its package that it embeds.
func methodsOf(dir, name string) (int, error) {
	types := map[string]*ast.InterfaceType{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, err
	}
	for _, file := range names {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if t, ok := spec.Type.(*ast.InterfaceType); ok {
					types[spec.Name.Name] = t
				}
			}
			return true
		})
	}
	var count func(name string) int
	count = func(name string) (n int) {
		if types[name] == nil {
			return 0
		}
		for _, f := range types[name].Methods.List {
			n += len(f.Names)
			if id, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
				n += count(id.Name)
			}
		}
		return n
	}
	if types[name] == nil {
		return 0, fmt.Errorf("%s has no interface %s", dir, name)
	}
	return count(name), nil
}
