package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Finding is one place where the source breaks a rule.
type Finding struct {
	// File is the path from the module's root; a folder's if the package as a
	// whole is meant.
	File string
	// Line counts from 1; 0 for the whole.
	Line int
	// Problem says what is wrong and what to do.
	Problem string
}

// String writes the finding as compilers do.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem)
}

// source is one parsed Go file.
type source struct {
	file string // path from the root
	pkg  string // its folder
	test bool
	ast  *ast.File
	fset *token.FileSet
}

func (s source) at(pos token.Pos, format string, args ...any) Finding {
	return Finding{s.file, s.fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// Check reads the module at the root of tree and returns everything that breaks
// a rule, by file and line.
func Check(tree fs.FS) []Finding { return check(parse(tree)) }

func check(sources []source, findings []Finding) []Finding {
	for _, s := range sources {
		findings = append(findings, checkImports(s)...)
		findings = append(findings, checkInit(s)...)
		findings = append(findings, checkSleep(s)...)
	}
	findings = append(findings, checkConfined(sources)...)
	findings = append(findings, checkPackages(sources)...)
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return findings
}

// parse reads every Go file outside testdata, hidden folders and nested modules.
func parse(tree fs.FS) (sources []source, findings []Finding) {
	names, err := goFiles(tree)
	if err != nil {
		findings = append(findings, Finding{File: ".", Problem: err.Error()})
	}
	for _, name := range names {
		s, err := parseFile(tree, name)
		if err != nil {
			findings = append(findings, Finding{File: name, Problem: err.Error()})
			continue
		}
		sources = append(sources, s)
	}
	return sources, findings
}

func goFiles(tree fs.FS) (names []string, err error) {
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return skip(tree, name, d.Name())
		case path.Ext(name) == ".go":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

func skip(tree fs.FS, name, base string) error {
	if name == "." {
		return nil
	}
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(name, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func parseFile(tree fs.FS, name string) (source, error) {
	data, err := fs.ReadFile(tree, name)
	if err != nil {
		return source{}, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	return source{file: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: file, fset: fset}, nil
}

// checkImports holds our own imports of one file against the table.
func checkImports(s source) []Finding {
	r, ok := find(s.pkg)
	if !ok {
		return nil // reported once, for the package
	}
	var findings []Finding
	for _, spec := range s.ast.Imports {
		target, ours := ownImport(spec)
		if !ours || target == s.pkg && s.test || r.allows(target, s.test) {
			continue
		}
		findings = append(findings, s.at(spec.Pos(), "%s may not import %s: %s", s.pkg, target, r.describe(s.test)))
	}
	return findings
}

// ownImport returns the folder that an import of ours names.
func ownImport(spec *ast.ImportSpec) (string, bool) {
	p := importPath(spec)
	if p == module {
		return ".", true
	}
	return strings.CutPrefix(p, module+"/")
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

func find(pkg string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return covers(r.pkg, pkg) })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// covers reports whether a pattern of the table means the folder.
func covers(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}

func (r row) allows(target string, test bool) bool {
	allowed := r.may
	if strings.HasSuffix(r.pkg, "/...") {
		allowed = append(slices.Clone(allowed), r.pkg)
	}
	if test {
		allowed = slices.Concat(allowed, r.tests, doubles)
	}
	return slices.ContainsFunc(allowed, func(pattern string) bool { return covers(pattern, target) })
}

func (r row) describe(test bool) string {
	what := "nothing of ours"
	if len(r.may) > 0 {
		what = "only " + strings.Join(r.may, ", ")
	}
	if test {
		return what + "; its tests besides " + strings.Join(slices.Concat(r.tests, doubles), ", ")
	}
	return what
}

// checkInit refuses init functions: what they do can be neither injected nor
// refused with an error.
func checkInit(s source) []Finding {
	var findings []Finding
	for _, decl := range s.ast.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			findings = append(findings, s.at(f.Pos(), "init function: make it a function that a caller calls"))
		}
	}
	return findings
}

// checkConfined holds third-party imports against confined.
func checkConfined(sources []source) []Finding {
	var findings []Finding
	for _, c := range confined {
		files := 0
		for _, s := range sources {
			spec := importOf(s, c.lib)
			if spec == nil {
				continue
			}
			// A test may compare us with the library itself.
			if s.pkg == c.pkg && !s.test {
				files++
			}
			switch {
			case c.pkg == "":
				findings = append(findings, s.at(spec.Pos(), "nothing may import %s", c.lib))
			case s.test && c.tests != "" && s.pkg == c.tests:
			case s.pkg != c.pkg:
				findings = append(findings, s.at(spec.Pos(), "only %s may import %s", c.pkg, c.lib))
			case !s.test && c.files > 0 && files > c.files:
				findings = append(findings, s.at(spec.Pos(), "%s is imported by more than %d file of %s", c.lib, c.files, c.pkg))
			}
		}
	}
	return findings
}

// importOf returns the file's first import of lib or of a package below it.
func importOf(s source, lib string) *ast.ImportSpec {
	i := slices.IndexFunc(s.ast.Imports, func(spec *ast.ImportSpec) bool {
		p := importPath(spec)
		return p == lib || strings.HasPrefix(p, lib+"/")
	})
	if i < 0 {
		return nil
	}
	return s.ast.Imports[i]
}

// checkPackages requires a row and a package comment for each package.
func checkPackages(sources []source) []Finding {
	documented := map[string]bool{}
	for _, s := range sources {
		documented[s.pkg] = documented[s.pkg] || hasPackageComment(s)
	}
	var findings []Finding
	for pkg, ok := range documented {
		if _, known := find(pkg); !known {
			findings = append(findings, Finding{File: pkg, Problem: "a package without a row in the import table of internal/arch"})
		}
		if !ok {
			findings = append(findings, Finding{File: pkg, Problem: "no package comment that begins with \"Package NAME\" or, for a program, \"Command NAME\""})
		}
	}
	return findings
}

func hasPackageComment(s source) bool {
	name := s.ast.Name.Name
	prefix := "Package " + strings.TrimSuffix(name, "_test")
	if name == "main" {
		prefix = "Command " + path.Base(s.pkg)
	}
	return s.ast.Doc != nil && strings.HasPrefix(s.ast.Doc.Text(), prefix)
}
