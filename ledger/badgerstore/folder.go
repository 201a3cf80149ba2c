package badgerstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// filesIn returns the paths of what lies in a folder under names that end in one of suffixes, in
// order; of a folder that isn't there, none. A pattern for the whole path would not do: the letters
// that mean something in patterns are letters as others in the name of a folder, so that it could find
// nothing here, or what lies in a folder beside it.
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
