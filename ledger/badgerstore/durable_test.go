package badgerstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A sync or rename elsewhere would be no step that a test can end the process at.
func TestEachSyncAndRenameCanBeWatched(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	bare := regexp.MustCompile(`\.Sync\(\)|os\.Rename\(|Fdatasync|Msync|[^.a-z]fdatasync\(`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "datasync_") || file == "durable.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := bare.Find(text); found != nil {
			t.Errorf("%s calls %s: let it go through durable.go", file, found)
		}
	}
}
