package integration

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// resultsVar names a file that has what came of each cell of the crash matrix. Cells that it has
// are not gone through again, so that a matrix which was cut short goes on.
const resultsVar = "KEEP_TEST_MATRIX_RESULTS"

// results are that file.
type results struct {
	mu sync.Mutex
	// file is nil where results aren't kept.
	file  *os.File
	known string
}

func openResults() (*results, error) {
	r := &results{}
	path := os.Getenv(resultsVar)
	if path == "" {
		return r, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r.known = "\n" + string(text)
	r.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return r, err
}

// has reports whether the file had a whole line that begins so.
func (r *results) has(line string) bool {
	_, rest, found := strings.Cut(r.known, "\n"+line)
	return found && strings.Contains(rest, "\n")
}

// add says the line, and writes it down.
func (r *results) add(t *testing.T, line string) {
	t.Helper()
	t.Log(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return
	}
	if _, err := fmt.Fprintln(r.file, line); err != nil {
		t.Error(err)
	}
}

// Close closes the file.
func (r *results) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
