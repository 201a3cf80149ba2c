package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// book remembers, where a file is given, which breaks were caught, so that a run that was
// interrupted can be gone on with. What was noted counts only for the same edits, in the
// same code beside them, under the same tests.
type book struct {
	root   string
	file   *os.File
	caught map[string]string
}

func openBook(o options) (*book, error) {
	b := &book{root: o.root, caught: map[string]string{}}
	if o.book == "" {
		return b, nil
	}
	var err error
	if b.file, err = os.OpenFile(o.book, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(b.file)
	for lines.Scan() {
		sum, by, whole := strings.Cut(lines.Text(), " ")
		if whole {
			b.caught[sum] = by
		}
	}
	return b, lines.Err()
}

// look returns the break's digest, "" without a file, and what noticed it before.
func (b *book) look(one *broken) (sum, by string, err error) {
	if b.file == nil {
		return "", "", nil
	}
	sum, err = b.sum(one)
	return sum, b.caught[sum], err
}

// note writes down that the break was caught; anything else is tried again.
func (b *book) note(sum string, t tried) {
	if b.file != nil && t.err == nil {
		_, _ = fmt.Fprintln(b.file, sum, t.by)
	}
}

func (b *book) close() {
	if b.file != nil {
		_ = b.file.Close()
	}
}

// sum is the digest of the edits and tests, and of the Go files in their folders.
func (b *book) sum(one *broken) (string, error) {
	h := sha256.New()
	dirs := []string{one.pkg()}
	for _, e := range one.edits {
		_, _ = fmt.Fprintf(h, "%q %q %q\n", e.file, e.before, e.after)
		dirs = append(dirs, "./"+filepath.Dir(e.file))
	}
	_, _ = fmt.Fprintf(h, "%q\n", one.tests)
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		files, err := filepath.Glob(filepath.Join(b.root, dir, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			_, _ = fmt.Fprintf(h, "%s %d\n", filepath.Base(file), len(text))
			_, _ = h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
