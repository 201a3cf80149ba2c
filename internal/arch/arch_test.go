package arch

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// house is the module's source.
var house = sync.OnceValues(func() ([]source, []Finding) { return parse(os.DirFS("../..")) })

func TestTheModuleObeysTheTable(t *testing.T) {
	t.Parallel()
	sources, findings := house()
	if !slices.ContainsFunc(sources, func(s source) bool { return s.file == "internal/arch/arch.go" }) {
		t.Fatal("the module's root was not found: this very package was not read")
	}
	for _, f := range check(sources, findings) {
		t.Error(f)
	}
}

func TestEveryPatternOfTheTableIsARow(t *testing.T) {
	t.Parallel()
	for _, r := range table {
		for _, target := range slices.Concat(r.may, r.tests, doubles) {
			if !slices.ContainsFunc(table, func(o row) bool { return o.pkg == target }) {
				t.Errorf("%s may import %s, which is no row", r.pkg, target)
			}
		}
	}
}

func TestTheTableHasNoCycle(t *testing.T) {
	t.Parallel()
	var visit func(pkg string, trail []string)
	visit = func(pkg string, trail []string) {
		if slices.Contains(trail, pkg) {
			t.Errorf("cycle: %s", strings.Join(append(trail, pkg), " → "))
			return
		}
		for _, r := range table {
			if r.pkg == pkg {
				for _, target := range r.may {
					visit(target, append(slices.Clone(trail), pkg))
				}
			}
		}
	}
	for _, r := range table {
		visit(r.pkg, nil)
	}
}

// files makes a tree of files from path → text.
func files(texts map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, text := range texts {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return tree
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const rules = "// Package rules is documented.\npackage rules\n"
	const proxy = "// Package proxy is documented.\npackage proxy\n"
	cases := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"an import that the table allows passes", map[string]string{
			"proxy/a.go": proxy + `import "keep-proxy/rules"`,
		}, nil},
		{"an import that the table does not list is refused", map[string]string{
			"rules/a.go": rules + `import "keep-proxy/ledger"`,
		}, []string{"rules/a.go:3: rules may not import ledger: only internal/coding, internal/strictyaml, internal/verdict"}},
		{"a package of ours that does not exist is refused as well", map[string]string{
			"proxy/a.go": proxy + `import "keep-proxy/proxy/internal/x"`,
		}, []string{"proxy/a.go:3: proxy may not import proxy/internal/x: only proxy/strict, proxy/h1, dispatch, rules, ledger, upstream, internal/background, internal/fault, internal/clock, internal/hello, internal/hop, internal/names, internal/masking, internal/verdict"}},
		{"another module whose name begins like ours is not ours", map[string]string{
			"rules/a.go": rules + `import "keep-proxyish/ledger"`,
		}, nil},
		{"an import behind a build constraint is seen", map[string]string{
			"rules/a.go": "//go:build windows\n\n" + rules + `import "keep-proxy/ledger"`,
		}, []string{"rules/a.go:5: rules may not import ledger: only internal/coding, internal/strictyaml, internal/verdict"}},
		{"a test may import doubles", map[string]string{
			"proxy/a.go":      proxy,
			"proxy/a_test.go": "package proxy_test\nimport \"keep-proxy/proxy\"\nimport \"keep-proxy/ledger/ledgertest\"",
		}, nil},
		{"a package's code may not import doubles", map[string]string{
			"proxy/a.go": proxy + `import "keep-proxy/ledger/ledgertest"`,
		}, []string{"proxy/a.go:3: proxy may not import ledger/ledgertest: only proxy/strict, proxy/h1, dispatch, rules, ledger, upstream, internal/background, internal/fault, internal/clock, internal/hello, internal/hop, internal/names, internal/masking, internal/verdict"}},
		{"a test may import no other room", map[string]string{
			"rules/a.go":      rules,
			"rules/a_test.go": "package rules\nimport \"keep-proxy/proxy\"",
		}, []string{"rules/a_test.go:2: rules may not import proxy: only internal/coding, internal/strictyaml, internal/verdict; its tests besides ledger/ledgertest, internal/fakes/..., internal/clock"}},
		{"packages of one tree may import each other", map[string]string{
			"internal/fakes/bank/a.go": "// Package bank is documented.\npackage bank\nimport \"keep-proxy/internal/fakes/oracle\"",
		}, nil},
		{"a star stands for part of a name", map[string]string{
			"ledger/pgstore/a.go": "// Package pgstore is documented.\npackage pgstore\nimport \"keep-proxy/ledger\"",
		}, nil},
		{"a package without a row is refused", map[string]string{
			"util/a.go": "// Package util is documented.\npackage util",
		}, []string{"util: a package without a row in the import table of internal/arch"}},
		{"a package below a plain row is another package", map[string]string{
			"rules/sub/a.go": "// Package sub is documented.\npackage sub",
		}, []string{"rules/sub: a package without a row in the import table of internal/arch"}},
		{"a package without a comment is refused", map[string]string{
			"rules/a.go": "package rules",
		}, []string{`rules: no package comment that begins with "Package NAME" or, for a program, "Command NAME"`}},
		{"a licence header is no package comment", map[string]string{
			"rules/a.go": "// Copyright somebody.\npackage rules",
		}, []string{`rules: no package comment that begins with "Package NAME" or, for a program, "Command NAME"`}},
		{"a program's comment names the command", map[string]string{
			"cmd/keep-proxy/main.go": "// Command keep-proxy runs.\npackage main",
		}, nil},
		{"badger elsewhere is refused, whatever its version", map[string]string{
			"ledger/badgerstore/a.go": "// Package badgerstore is documented.\npackage badgerstore\nimport _ \"github.com/dgraph-io/badger/v4\"",
			"proxy/a.go":              proxy + `import _ "github.com/dgraph-io/badger/v4/options"`,
		}, []string{"proxy/a.go:3: only ledger/badgerstore may import github.com/dgraph-io/badger"}},
		{"a second file with goproxy is refused", map[string]string{
			"proxy/a.go": proxy + `import _ "github.com/elazarl/goproxy"`,
			"proxy/b.go": "package proxy\nimport _ \"github.com/elazarl/goproxy/transport\"",
		}, []string{"proxy/b.go:2: github.com/elazarl/goproxy is imported by more than 1 file of proxy"}},
		{"cgo is refused", map[string]string{
			"rules/a.go": rules + `import "C"`,
		}, []string{"rules/a.go:3: nothing may import C"}},
		{"an init function is refused", map[string]string{
			"rules/a.go": rules + "func init() {}",
		}, []string{"rules/a.go:3: init function: make it a function that a caller calls"}},
		{"a method called init is no init function", map[string]string{
			"rules/a.go": rules + "type T struct{}\nfunc (T) init() {}",
		}, nil},
		{"a sleep in a test is refused, by whatever name", map[string]string{
			"rules/a.go":      rules,
			"rules/a_test.go": "package rules\nimport (\n\"testing\"\nclock \"time\"\n)\nfunc TestA(*testing.T) { clock.Sleep(1) }",
		}, []string{"rules/a_test.go:6: time.Sleep in a test: wait for a signal, or use testing/synctest"}},
		{"a sleep that moves fake time passes", map[string]string{
			"rules/a.go":      rules,
			"rules/a_test.go": "package rules\nimport (\n\"testing\"\n\"testing/synctest\"\n\"time\"\n)\nfunc TestA(t *testing.T) { synctest.Test(t, func(*testing.T) { time.Sleep(1) }) }",
		}, nil},
		{"a file that does not parse is a finding", map[string]string{
			"rules/a.go": "package",
		}, []string{"rules/a.go: rules/a.go:1:8: expected 'IDENT', found 'EOF'"}},
		{"testdata, hidden folders and nested modules are left out", map[string]string{
			"rules/testdata/a.go": "package",
			".cache/a.go":         "package",
			"tools/go.mod":        "module keep-proxy/tools",
			"tools/a.go":          "package",
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range Check(files(c.files)) {
				got = append(got, f.String())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

func TestThePackagesSayHowTheyFail(t *testing.T) {
	t.Parallel()
	sources, _ := house()
	for _, f := range checkFailure(sources) {
		t.Error(f)
	}
}

func TestCheckFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text string
		want       int
	}{
		"a section passes":                      {"rules/doc.go", "// Package rules judges.\n//\n// # Failure\n//\n// It refuses.\npackage rules", 0},
		"a longer heading passes":               {"rules/doc.go", "// Package rules judges.\n//\n// # Failure behaviour\n//\n// It refuses.\npackage rules", 0},
		"a paragraph passes":                    {"rules/doc.go", "// Package rules judges.\n//\n// Failure behaviour: it refuses.\npackage rules", 0},
		"nothing is said":                       {"rules/doc.go", "// Package rules judges.\npackage rules", 1},
		"an empty section says nothing":         {"rules/doc.go", "// Package rules judges.\n//\n// # Failure\npackage rules", 1},
		"so does one with another below it":     {"rules/doc.go", "// Package rules judges.\n//\n// # Failure\n//\n// # Caveats\n//\n// None.\npackage rules", 1},
		"a word about failure is no statement":  {"rules/doc.go", "// Package rules judges. Failure is rare.\npackage rules", 1},
		"what only tests need says what it can": {"internal/fakes/bank/doc.go", "// Package bank moves money.\npackage bank", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sources, findings := parse(files(map[string]string{c.file: c.text}))
			if got := checkFailure(sources); len(got) != c.want || len(findings) > 0 {
				t.Errorf("got %v, %v; want %d findings", got, findings, c.want)
			}
		})
	}
}
