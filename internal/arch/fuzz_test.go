package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// What broke a parser once, and what the fuzzer found worth keeping, is tried by every run
// of the tests.
func TestEveryFuzzTargetHasItsInputs(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	targets := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range fuzzTarget.FindAllSubmatch(text, -1) {
			targets++
			inputs, err := os.ReadDir(filepath.Join(filepath.Dir(path), "testdata", "fuzz", string(m[1])))
			if err != nil || len(inputs) == 0 {
				t.Errorf("%s: %s has no inputs in testdata/fuzz: %v", path, m[1], err)
			}
		}
		return nil
	})
	if err != nil || targets == 0 {
		t.Errorf("%d fuzz targets, %v", targets, err)
	}
}
