package badgerstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// filesIn returns the paths of a folder's entries whose names end in one of suffixes, in order. A folder that isn't
// there has none. filepath.Glob would not do: it reads the folder's own name as a pattern.
func filesIn(dir string, suffixes ...string) (paths []string, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range all {
		if slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(f.Name(), suffix) }) {
			paths = append(paths, filepath.Join(dir, f.Name()))
		}
	}
	return paths, err
}
